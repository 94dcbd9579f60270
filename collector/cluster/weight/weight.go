// Package weight answers: how much memory does a response of an API server occupy once it is decoded?
//
// An element of two bytes may become a struct of a kilobyte, so the size of a response says little. What is
// decoded as a type that is known weighs as much as that type; anything else, as the largest that it could be.
package weight

// What a part of a response occupies at most, in bytes. A slice that grows by append occupies 2.25 times its
// elements while it is copied.
const (
	// ofItem is for an element of a list: the largest is a CronJob.
	ofItem = 4 << 10
	// ofElement is for an element within an object: the largest is a container.
	ofElement = 1 << 10
	// ofMap is for an object that is no element: a map, or what a pointer leads to.
	ofMap    = 336
	ofMember = 64
	ofScalar = 32
	// PerByte is for each byte of a text: the text itself, two copies, and the strings that are made of it.
	PerByte = 4
	// grown is the factor of a slice that grows, in quarters.
	grown = 9
)

// MaxLevels bounds the depth of objects, arrays and messages. What is deeper is [TooMuch].
const MaxLevels = 1000

// TooMuch is the weight of what must not be decoded.
const TooMuch = int64(1) << 40

// JSON weighs texts in JSON, one after another, as they are read. The zero value is ready.
type JSON struct {
	weight   int64
	arrays   []bool // true for an array, the innermost last
	inString bool
	escaped  bool
}

// Add reads the next part, and returns the weight of the heaviest text of which a part was in it, as far as that
// was read.
func (j *JSON) Add(text []byte) int64 {
	heaviest := j.weight
	for len(text) > 0 {
		before := len(text)
		ended := false
		if j.inString {
			text = j.skipString(text)
		} else {
			text, ended = j.skipToString(text)
		}
		j.weight += int64(before-len(text)) * PerByte
		heaviest = max(heaviest, j.weight)
		if ended {
			j.weight = 0
		}
	}
	return heaviest
}

// skipToString weighs what is before the next string, and returns what follows its quote, or what follows the
// text where it ends before.
func (j *JSON) skipToString(text []byte) (rest []byte, ended bool) {
	for at, character := range text {
		switch character {
		case '"':
			j.inString = true
			return text[at+1:], false
		case '{', '[', 'n': // n for null, which is an empty struct in an array of them
			j.weight += j.ofValue(character)
			if character == 'n' {
				continue
			}
			if j.arrays = append(j.arrays, character == '['); len(j.arrays) > MaxLevels {
				j.weight, j.arrays = TooMuch, j.arrays[:MaxLevels]
			}
		case '}', ']':
			if j.arrays = j.arrays[:max(0, len(j.arrays)-1)]; len(j.arrays) == 0 {
				return text[at+1:], true
			}
		case ',':
			j.weight += ofScalar
		case ':':
			j.weight += ofMember
		}
	}
	return nil, false
}

func (j *JSON) ofValue(first byte) int64 {
	switch last := len(j.arrays) - 1; {
	case last < 0, !j.arrays[last]:
		return ofMap
	case first == '[':
		return ofMember
	case last <= 1:
		return ofItem
	}
	return ofElement
}

// skipString returns what follows the string, or nothing within it.
func (j *JSON) skipString(text []byte) []byte {
	for at, character := range text {
		switch {
		case j.escaped:
			j.escaped = false
		case character == '\\':
			j.escaped = true
		case character == '"':
			j.inString = false
			return text[at+1:]
		}
	}
	return nil
}
