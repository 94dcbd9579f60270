// Package field answers: which fields of an encoded object are kept, and which may it share with others?
//
// [Rules] are built from paths of fields; [Rules.Split] applies them to an object in protobuf before it is
// decoded. A path that a type does not have has no effect: all fields are kept.
package field

import (
	"errors"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Rules map the fields of a message, by number, to their treatment. Fields without a rule are kept.
type Rules map[protowire.Number]*rule

type rule struct {
	dropped bool
	// own is a field that differs between the pods of a controller, so that it is decoded for each.
	own bool
	// only is the key of the entry, or the type of the element, that is kept; empty for all.
	only string
	// within are its fields, if it is a message of which not all is kept.
	within Rules
}

// ErrEncoding is the error of data that is not a message.
var ErrEncoding = errors.New("it is not encoded as protobuf")

// Split divides a message into the part that objects may share and the object's own part, without dropped fields,
// and appends them to two messages of the same type.
func (r Rules) Split(message, common, own []byte) (newCommon, newOwn []byte, err error) {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return common, own, ErrEncoding
		}
		size := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if size < 0 {
			return common, own, ErrEncoding
		}
		whole := message[:tag+size]
		message = message[tag+size:]
		switch of := r[number]; {
		case of == nil:
			common = append(common, whole...)
		case of.dropped, of.only != "" && !of.is(whole[tag:]):
		case of.own && of.within == nil:
			own = append(own, whole...)
		case kind != protowire.BytesType, of.within == nil:
			common = append(common, whole...)
		default:
			if common, own, err = of.splitWithin(whole, tag, common, own); err != nil {
				return common, own, err
			}
		}
	}
	return common, own, nil
}

// splitWithin splits the message in a field, whose tag has that many bytes. The field itself is common, so that
// objects that differ in its presence differ in what is common.
func (r *rule) splitWithin(whole []byte, tag int, common, own []byte) (newCommon, newOwn []byte, err error) {
	value, _ := protowire.ConsumeBytes(whole[tag:])
	startCommon, startOwn := len(common), len(own)
	common, own = openMessage(common, whole[:tag]), openMessage(own, whole[:tag])
	bodyCommon, bodyOwn := len(common), len(own)
	if r.own {
		own, _, err = r.within.Split(value, own, nil)
		return common[:startCommon], closeMessage(own, bodyOwn), err
	}
	if common, own, err = r.within.Split(value, common, own); err != nil {
		return common, own, err
	}
	if len(own) == bodyOwn {
		return closeMessage(common, bodyCommon), own[:startOwn], nil
	}
	return closeMessage(common, bodyCommon), closeMessage(own, bodyOwn), nil
}

// sizeBytes is how many bytes the size of a message has, whatever it is: as many as 32 bits need.
const sizeBytes = 5

// openMessage appends a tag, and room for the size of what is appended next.
func openMessage(to, tag []byte) []byte {
	return append(append(to, tag...), make([]byte, sizeBytes)...)
}

// closeMessage sets the size of a message that begins there.
func closeMessage(of []byte, begin int) []byte {
	size := len(of) - begin
	for i := range sizeBytes {
		of[begin-sizeBytes+i] = byte(size>>(7*i))&0x7f | 0x80 //nolint:gosec // the mask keeps seven bits
	}
	of[begin-1] &^= 0x80
	return of
}

// is reports whether the first field of a message is the text that is kept.
func (r *rule) is(value []byte) bool {
	message, size := protowire.ConsumeBytes(value)
	if size < 0 {
		return false
	}
	number, kind, tag := protowire.ConsumeTag(message)
	if tag < 0 || number != 1 || kind != protowire.BytesType {
		return false
	}
	text, size := protowire.ConsumeBytes(message[tag:])
	return size >= 0 && string(text) == r.only
}

// Drop marks fields of a type by their paths in JSON. A path that ends in "[KEY]" keeps the entry with that key.
func (r Rules) Drop(of reflect.Type, paths ...string) {
	for _, path := range paths {
		path, only, keyed := strings.Cut(strings.TrimSuffix(path, "]"), "[")
		if marked := r.at(of, path); keyed {
			marked.only = only
		} else {
			marked.dropped = true
		}
	}
}

// Own marks fields of a type by their paths in JSON. All fields on the path must be structs: otherwise an object's
// own part would be added to the elements, or to the pointer's target, of another.
func (r Rules) Own(of reflect.Type, paths ...string) {
	for _, path := range paths {
		r.at(of, path).own = true
	}
}

// Owns reports whether a field is own.
func (r Rules) Owns() bool {
	for _, each := range r {
		if each.own || each.within.Owns() {
			return true
		}
	}
	return false
}

func (r Rules) at(of reflect.Type, path string) *rule {
	var found *rule
	for name := range strings.SplitSeq(path, ".") {
		numbers, next := numbersOf(of, name)
		if next == nil {
			return &rule{} // of no field, so that all is kept
		}
		for _, number := range numbers {
			if found != nil && found.within == nil {
				found.within = Rules{}
			}
			if found != nil {
				r = found.within
			}
			if r[number] == nil {
				r[number] = &rule{}
			}
			found = r[number]
		}
		of = next
	}
	return found
}

// numbersOf are the numbers of the fields that lead to a field of a struct by its name in JSON, which several are
// where its struct is inlined, and the type that it has or that its elements have.
func numbersOf(of reflect.Type, name string) ([]protowire.Number, reflect.Type) {
	for each := range of.Fields() {
		parts := strings.Split(each.Tag.Get("protobuf"), ",")
		if len(parts) < 2 { // a kind and a number
			continue
		}
		number, err := strconv.ParseInt(parts[1], 10, 32)
		if err != nil {
			continue
		}
		known, _, _ := strings.Cut(each.Tag.Get("json"), ",")
		if known == name {
			return []protowire.Number{protowire.Number(number)}, element(each.Type)
		}
		if known == "" && each.Type.Kind() == reflect.Struct {
			if rest, found := numbersOf(each.Type, name); found != nil {
				return append([]protowire.Number{protowire.Number(number)}, rest...), found
			}
		}
	}
	return nil, nil
}

func element(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	return of
}
