// Package weight answers: how much memory does a response of an API server occupy once it is decoded?
//
// An element of two bytes may become a struct of a kilobyte, so the size of a response says little. Data of a
// known type weighs as much as that type; other data weighs as much as the largest type that it could have.
package weight

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

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
	// PerByte is the weight of each byte of a text: the text itself, two copies, and the strings in it.
	PerByte = 4
	// grown is the factor of a slice that grows, in quarters.
	grown = 9
)

// MaxLevels bounds the depth of objects, arrays and messages. Deeper ones are [TooMuch].
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

// Add reads the next part, and returns the weight of the heaviest text that overlaps it, as far as it was read.
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

// Prefix is how Kubernetes begins an object in protobuf.
const Prefix = "k8s\x00"

// Protobuf returns the weight of an object with the Prefix, as client-go decodes it: by the kind that it names. An
// object of an unknown kind weighs as much as any object could.
func Protobuf(object []byte) int64 {
	return int64(len(object))*PerByte + ofObject(object, 0)
}

func ofObject(object []byte, level int) int64 {
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(object[len(Prefix):]); err != nil {
		return 0 // nothing decodes it
	}
	var of fields
	if kind := kinds()[unknown.GroupVersionKind()]; kind != nil {
		of = fieldsOf(kind)
	}
	return ofMessage(unknown.Raw, of, level)
}

// kinds are the types that client-go decodes from protobuf.
var kinds = sync.OnceValue(func() map[schema.GroupVersionKind]reflect.Type { //nolint:gochecknoglobals // a constant that is computed once
	all := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(all))
	utilruntime.Must(metav1.AddMetaToScheme(all))
	return all.AllKnownTypes()
})

// ofMessage is the weight of what is made of a message, beside the struct itself; of is nil where its type is unknown.
func ofMessage(message []byte, of fields, level int) (weight int64) {
	if level > MaxLevels {
		return TooMuch
	}
	for len(message) > 0 && weight < TooMuch {
		number, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return weight
		}
		whole := protowire.ConsumeFieldValue(number, kind, message[size:])
		if whole < 0 {
			return weight
		}
		var value []byte
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message[size:])
		}
		message = message[size+whole:]
		if of == nil {
			weight += ofAny(value, kind, level)
		} else if field, ok := of[number]; ok {
			weight += field.weight(value, level)
		}
	}
	return weight
}

// ofAny is the weight of a field of an unknown type: a value that can be a message is one.
func ofAny(value []byte, kind protowire.Type, level int) int64 {
	switch {
	case kind != protowire.BytesType || !isMessage(value):
		return ofScalar
	case level == 0: // the items of a list
		return ofItem + ofMessage(value, nil, level+1)
	}
	return ofElement + ofMessage(value, nil, level+1)
}

func isMessage(value []byte) bool {
	for len(value) > 0 {
		_, _, size := protowire.ConsumeField(value)
		if size < 0 {
			return false
		}
		value = value[size:]
	}
	return true
}

// fields are the fields of a struct in protobuf, by number. A decoder skips others.
type fields map[protowire.Number]field

type field struct {
	of reflect.Type
	// repeated is false for a slice that is a message of its own, such as Verbs.
	repeated bool
}

// weight returns the memory that a value of the field occupies, besides the struct that contains it.
func (f field) weight(value []byte, level int) int64 {
	switch f.of.Kind() { //nolint:exhaustive // the struct contains all other kinds
	case reflect.Slice:
		switch elem := f.of.Elem(); {
		case elem.Kind() == reflect.Uint8 && bytes.HasPrefix(value, []byte(Prefix)): // an event of a watch has an object
			return ofObject(value, level+1)
		case elem.Kind() == reflect.Uint8:
			return 0
		case f.repeated, elem.Kind() == reflect.Struct: // of which not all have that in their tag
			return sizeOf(elem)*grown/4 + within(value, elem, level)
		default:
			return ofMessage(value, fields{1: {of: f.of, repeated: true}}, level+1)
		}
	case reflect.Pointer:
		return sizeOf(f.of.Elem()) + within(value, f.of.Elem(), level)
	case reflect.Map:
		entry := ofMember + 4*sizeOf(f.of.Elem())
		if f.of.Elem().Kind() == reflect.String {
			return entry
		}
		return entry + ofMessage(value, fields{2: {of: f.of.Elem()}}, level+1)
	}
	return within(value, f.of, level)
}

func sizeOf(of reflect.Type) int64 { return int64(of.Size()) } //nolint:gosec // a Go type has kilobytes at most

func within(value []byte, of reflect.Type, level int) int64 {
	if of.Kind() != reflect.Struct {
		return 0
	}
	return ofMessage(value, fieldsOf(of), level+1)
}

var known sync.Map //nolint:gochecknoglobals // caches the fields of each type

func fieldsOf(of reflect.Type) fields {
	cached, _ := known.Load(of)
	if found, ok := cached.(fields); ok {
		return found
	}
	found := fields{}
	for each := range of.Fields() {
		tag := strings.Split(each.Tag.Get("protobuf"), ",")
		if len(tag) < 3 {
			continue
		}
		if number, err := strconv.ParseInt(tag[1], 10, 32); err == nil {
			found[protowire.Number(number)] = field{of: each.Type, repeated: tag[2] == "rep"}
		}
	}
	known.Store(of, found)
	return found
}
