package objects

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// refuseDuplicates returns an error for valid JSON of an object or a list in which an object has a key twice.
func refuseDuplicates(valid []byte) error { return RefuseDuplicates(valid, "items", "metadata") }

// RefuseDuplicates returns an error for valid JSON in which an object has a key twice:
// encoding/json takes the last of them. It also ignores case, so that the outermost object, and
// those below it whose keys are all in fixed, must not have keys that differ only by case. The keys
// of other objects, such as labels, may.
func RefuseDuplicates(valid []byte, fixed ...string) error {
	open, ok := stacks.Get().(*stack)
	if !ok {
		return errors.ErrUnsupported // the pool has no others
	}
	if len(valid) <= maxKept {
		defer stacks.Put(open)
	}
	open.reset()
	for i := 0; i < len(valid); i++ {
		switch valid[i] {
		case '{':
			open.push(true)
		case '[':
			open.push(false)
		case '}', ']':
			open.pop()
		case '"':
			end := stringEnd(valid, i)
			if current := open.last(); current.object && isKey(valid, end) {
				if err := current.note(valid[i:end], fixed); err != nil {
					return err
				}
			}
			i = end - 1
		}
	}
	return nil
}

// isKey reports whether a colon follows.
func isKey(valid []byte, at int) bool {
	at = skipSpace(valid, at)
	return at < len(valid) && valid[at] == ':'
}

// stack has the objects and arrays that are open. What was open before keeps its memory.
type stack struct {
	levels []level
	depth  int
}

// maxKept bounds the JSON whose memory may be kept until the next, in bytes: the keys are in it.
const maxKept = 1 << 20

var stacks = sync.Pool{New: func() any { return &stack{} }} //nolint:gochecknoglobals // all calls share the pool

func (s *stack) reset() {
	s.depth = 0
	s.push(false)
	s.last().below = true
}

func (s *stack) last() *level { return &s.levels[s.depth-1] }

func (s *stack) push(object bool) {
	fixed := s.depth > 0 && s.last().below
	if s.depth++; s.depth > len(s.levels) {
		s.levels = append(s.levels, level{})
	}
	s.last().begin(object, fixed)
}

func (s *stack) pop() { s.depth = max(s.depth-1, 1) }

// maxCompared is the number of keys up to which a key is compared with each.
const maxCompared = 16

// level is an object or an array that is open.
type level struct {
	object bool
	// keys are the keys of an object so far, and ascending is true while each is greater than the one before, as
	// printers sort them. known contains them once they are many, and do not ascend.
	keys      []key
	ascending bool
	known     map[string]int
	// fixed is true for an object whose keys may not differ only by case.
	fixed bool
	// below is true where an object that is the current value is fixed.
	below bool
}

type key struct{ written, same []byte }

func (l *level) begin(object, fixed bool) {
	*l = level{object: object, keys: l.keys[:0], ascending: true, fixed: fixed && object, below: fixed && !object}
}

func (l *level) note(quoted []byte, fixed []string) error {
	same := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(same, '\\') >= 0 {
		var text string
		if err := json.Unmarshal(quoted, &text); err != nil {
			return err
		}
		same = []byte(text)
	}
	added := key{written: same, same: same}
	if l.fixed {
		added.same = foldAll(same)
		l.below = slices.Contains(fixed, string(added.same))
	}
	if first, twice := l.find(added.same); twice {
		if bytes.Equal(first.written, added.written) {
			return fmt.Errorf("it has the key %q twice in one object", added.written)
		}
		return fmt.Errorf("it has the keys %q and %q in one object, which differ only by case", first.written, added.written)
	}
	l.keys = append(l.keys, added)
	if l.known != nil {
		l.known[string(added.same)] = len(l.keys) - 1
	}
	return nil
}

// find is the key so far that has a text.
func (l *level) find(same []byte) (key, bool) {
	count := len(l.keys)
	if l.ascending = l.ascending && (count == 0 || bytes.Compare(l.keys[count-1].same, same) < 0); l.ascending {
		return key{}, false
	}
	if l.known == nil && count > maxCompared {
		l.known = make(map[string]int, 2*count)
		for i, each := range l.keys {
			l.known[string(each.same)] = i
		}
	}
	if l.known != nil {
		at, found := l.known[string(same)]
		if !found {
			return key{}, false
		}
		return l.keys[at], true
	}
	for _, each := range l.keys {
		if bytes.Equal(each.same, same) {
			return each, true
		}
	}
	return key{}, false
}

// foldAll is a text for all that encoding/json takes for the same.
func foldAll(text []byte) []byte {
	for i, c := range text {
		if c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf {
			return append(bytes.Clone(text[:i]), strings.Map(fold, string(text[i:]))...)
		}
	}
	return text
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
