package objects

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// refuseDuplicates returns an error for valid JSON of an object or a list in which an object has a
// key twice.
func refuseDuplicates(valid []byte) error { return RefuseDuplicates(valid, "items", "metadata") }

// RefuseDuplicates returns an error for valid JSON in which an object has a key twice:
// encoding/json takes the last of them. It also ignores case, so that the outermost object, and
// those below it whose keys are all in fixed, must not have keys that differ only by case. The keys
// of other objects, such as labels, may.
func RefuseDuplicates(valid []byte, fixed ...string) error {
	open := []level{{below: true}}
	for i := 0; i < len(valid); i++ {
		current := &open[len(open)-1]
		switch valid[i] {
		case '{':
			open = append(open, level{keys: map[string]string{}, fixed: current.below})
		case '[':
			open = append(open, level{below: current.below})
		case '}', ']':
			open = open[:max(len(open)-1, 1)]
		case '"':
			end := stringEnd(valid, i)
			if isKey(valid, end) && current.keys != nil {
				if err := current.note(valid[i:end], fixed); err != nil {
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

// level is an object or an array that is open.
type level struct {
	// keys are those of an object so far, by their folded text where it is fixed; nil for an array.
	keys  map[string]string
	fixed bool
	// below is true where an object that is the current value is fixed.
	below bool
}

func (l *level) note(quoted []byte, fixed []string) error {
	var key string
	if err := json.Unmarshal(quoted, &key); err != nil {
		return err
	}
	same := key
	if l.fixed {
		same = strings.Map(fold, key)
		l.below = slices.Contains(fixed, same)
	}
	first, twice := l.keys[same]
	switch {
	case twice && first == key:
		return fmt.Errorf("it has the key %q twice in one object", key)
	case twice:
		return fmt.Errorf("it has the keys %q and %q in one object, which differ only by case", first, key)
	}
	l.keys[same] = key
	return nil
}

// fold is a character for all that encoding/json takes for the same: the Kelvin sign is a k.
func fold(r rune) rune {
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		if unicode.IsLower(next) && next < unicode.MaxASCII {
			return next
		}
	}
	return r
}
