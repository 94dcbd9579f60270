package objects

import (
	"encoding/json"
	"fmt"
)

// refuseDuplicates returns an error for valid JSON in which an object has a key twice:
// encoding/json takes the last of them.
func refuseDuplicates(valid []byte) error {
	// keys are those of the objects that are open; nil for an array.
	var keys []map[string]bool
	for i := 0; i < len(valid); i++ {
		switch valid[i] {
		case '{':
			keys = append(keys, map[string]bool{})
		case '[':
			keys = append(keys, nil)
		case '}', ']':
			keys = keys[:max(len(keys)-1, 0)]
		case '"':
			end := stringEnd(valid, i)
			if isKey(valid, end) && len(keys) > 0 {
				if err := note(keys[len(keys)-1], valid[i:end]); err != nil {
					return err
				}
			}
			i = end - 1
		}
	}
	return nil
}

// stringEnd is the offset behind a string that begins at an offset.
func stringEnd(valid []byte, begin int) int {
	for i := begin + 1; i < len(valid); i++ {
		switch valid[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(valid)
}

// isKey reports whether a colon follows.
func isKey(valid []byte, at int) bool {
	for ; at < len(valid); at++ {
		switch valid[at] {
		case ' ', '\t', '\r', '\n':
		default:
			return valid[at] == ':'
		}
	}
	return false
}

func note(keys map[string]bool, quoted []byte) error {
	var key string
	if err := json.Unmarshal(quoted, &key); err != nil {
		return err
	}
	if keys[key] {
		return fmt.Errorf("it has the key %q twice in one object", key)
	}
	keys[key] = true
	return nil
}
