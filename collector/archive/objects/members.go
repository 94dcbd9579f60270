package objects

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Members calls do for each key of valid JSON of an object, and its value: neither is copied. Its error ends them.
func Members(object []byte, do func(key string, value []byte) error) error {
	at := skipSpace(object, 0)
	if at == len(object) || object[at] != '{' {
		return errors.New("it is not an object")
	}
	for at = skipSpace(object, at+1); at < len(object) && object[at] == '"'; at = nextMember(object, at) {
		end := stringEnd(object, at)
		key, err := Text(object[at:end])
		if err != nil {
			return err
		}
		begin := skipSpace(object, skipSpace(object, end)+1) // behind the colon
		at = valueEnd(object, begin)
		if err := do(key, object[begin:at]); err != nil {
			return err
		}
	}
	return nil
}

// Text is the value of valid JSON of a string, or of null, which is empty.
func Text(value []byte) (string, error) {
	if len(value) > 1 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1]), nil
	}
	var text string
	err := json.Unmarshal(value, &text)
	return text, err
}

// list is the JSON of a list, which is not copied; nil where there is none.
type list struct{ text []byte }

// UnmarshalJSON implements json.Unmarshaler.
func (l *list) UnmarshalJSON(text []byte) error {
	switch {
	case string(text) == "null":
		return nil
	case text[0] != '[':
		return errors.New("its items are not a list")
	}
	l.text = text
	return nil
}

// each calls do for each item.
func (l *list) each(do func(item []byte) error) error {
	for at := skipSpace(l.text, 1); at < len(l.text) && l.text[at] != ']'; at = nextMember(l.text, at) {
		end := valueEnd(l.text, at)
		if err := do(l.text[at:end]); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// nextMember is the offset of the next member of an object or a list, behind one that ends at an offset.
func nextMember(valid []byte, end int) int { return skipSpace(valid, skipSpace(valid, end)+1) }

// skipSpace is the offset of the next character that is no white space.
func skipSpace(valid []byte, at int) int {
	for at < len(valid) && (valid[at] == ' ' || valid[at] == '\t' || valid[at] == '\r' || valid[at] == '\n') {
		at++
	}
	return min(at, len(valid))
}

// stringEnd is the offset behind a string that begins at an offset.
func stringEnd(valid []byte, begin int) int {
	for at := begin + 1; at < len(valid); at++ {
		quote := bytes.IndexByte(valid[at:], '"')
		if quote < 0 {
			break
		}
		escape := bytes.IndexByte(valid[at:at+quote], '\\')
		if escape < 0 {
			return at + quote + 1
		}
		at += escape + 1 // the escaped character
	}
	return len(valid)
}

// valueEnd is the offset behind a value that begins at an offset.
func valueEnd(valid []byte, begin int) int {
	depth := 0
	for at := begin; at < len(valid); at++ {
		switch valid[at] {
		case '"':
			at = stringEnd(valid, at) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ' ', '\t', '\r', '\n', ',', ':':
			continue
		default: // a number, a boolean or null
			for at+1 < len(valid) && bytes.IndexByte([]byte(" \t\r\n,]}"), valid[at+1]) < 0 {
				at++
			}
		}
		if depth == 0 {
			return at + 1
		}
	}
	return len(valid)
}
