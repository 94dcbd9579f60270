package baseline

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/words"
)

const (
	// format is the version of the packed form.
	format = 2
	// MaxPacked bounds a packed State, in bytes.
	MaxPacked = 8 << 20
	// maxText bounds its text, in bytes.
	maxText = 32 << 20
	// maxObject bounds the text of one object, in bytes.
	maxObject = 64 << 10
	// maxFact bounds a Revision and a Detail, in bytes.
	maxFact = 4 << 10
	// MaxObjects bounds its objects.
	MaxObjects = 300_000
)

// packed is the JSON of a State: each namespace once, and of an object what is not the default.
type packed struct {
	Format    int             `json:"format"`
	Taken     time.Time       `json:"taken"`
	ClusterID string          `json:"clusterID"`
	Version   string          `json:"version"`
	Image     string          `json:"image"`
	Unread    map[Kind]string `json:"unread,omitempty"`
	APIs      map[Kind]API    `json:"apis,omitempty"`
	Objects   packedObjects   `json:"objects"`
}

// packedObjects are objects by namespace, kind and name.
type packedObjects map[string]map[Kind]map[string]packedState

type packedState struct {
	Desired int32 `json:"d,omitempty"`
	// Missing is Desired less Ready.
	Missing    int32    `json:"m,omitempty"`
	Restarts   float64  `json:"s,omitempty"`
	Revision   string   `json:"r,omitempty"`
	Generation int64    `json:"g,omitempty"`
	Detail     string   `json:"t,omitempty"`
	Problems   []string `json:"p,omitempty"`
	UID        string   `json:"u,omitempty"`
	Release    bool     `json:"o,omitempty"`
	// Refs are KIND/NAMESPACE/NAME, with sameNamespace for the namespace of the object.
	Refs  []string `json:"f,omitempty"`
	Owner string   `json:"w,omitempty"`
}

// Pack encodes the State: gzip of JSON, about ten bytes for each object. It omits the times and messages of
// problems, and rounds Restarts to three digits.
func (s State) Pack() ([]byte, error) {
	if len(s.Objects) > MaxObjects {
		return nil, fmt.Errorf("the state of the cluster contains more than %d objects", MaxObjects)
	}
	whole := packed{
		Format: format, Taken: s.Taken.UTC().Truncate(time.Second), ClusterID: s.ClusterID, Version: s.Version, Image: s.Image,
		Unread: s.Unread, APIs: s.APIs, Objects: packedObjects{},
	}
	for key, object := range s.Objects {
		kinds := whole.Objects[key.Namespace]
		if kinds == nil {
			kinds = map[Kind]map[string]packedState{}
			whole.Objects[key.Namespace] = kinds
		}
		if kinds[key.Kind] == nil {
			kinds[key.Kind] = map[string]packedState{}
		}
		kinds[key.Kind][key.Name] = object.packed(key)
	}
	var buffer bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(json.NewEncoder(compressed).Encode(whole), compressed.Close()); err != nil {
		return nil, fmt.Errorf("the state of the cluster cannot be encoded: %w", err)
	}
	if buffer.Len() > MaxPacked {
		return nil, fmt.Errorf("the state of the cluster has %d bytes, more than %d", buffer.Len(), MaxPacked)
	}
	return buffer.Bytes(), nil
}

func (o Object) packed(key Key) packedState {
	state := packedState{
		UID: o.UID, Release: o.Release, Desired: o.Desired, Missing: o.Desired - o.Ready, Restarts: rounded(o.Restarts),
		Generation: o.Generation,
	}
	state.Revision, state.Detail = words.Cut(o.Revision, maxFact), words.Cut(o.Detail, maxFact)
	for _, each := range o.Problems {
		state.Problems = append(state.Problems, each.Reason)
	}
	for _, each := range o.Refs[:min(len(o.Refs), maxRefs)] {
		state.Refs = append(state.Refs, each.packed(key))
	}
	if o.Owner != (Key{}) {
		state.Owner = o.Owner.packed(key)
	}
	return state
}

// packed is a key as an object has it as a reference.
func (k Key) packed(from Key) string {
	if k.Namespace == from.Namespace {
		k.Namespace = sameNamespace
	}
	return string(k.Kind) + "/" + k.Namespace + "/" + k.Name
}

func unpackedKey(text string, from Key) Key {
	kind, rest, _ := strings.Cut(text, "/")
	namespace, name, _ := strings.Cut(rest, "/")
	if namespace == sameNamespace {
		namespace = from.Namespace
	}
	return Key{Kind: Kind(kind), Namespace: namespace, Name: name}
}

// sameNamespace stands for the object's own namespace in a reference.
const sameNamespace = "."

// maxRefs bounds the references of one object.
const maxRefs = 50

// rounded is a number with three digits: more of them would be most of what is packed. What is no number is 0.
func rounded(number float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(number, 'g', 3, 64), 64)
	if err != nil || math.IsNaN(short) || math.IsInf(short, 0) {
		return 0
	}
	return short
}

// Unpack decodes a packed State. It returns an error if the bytes are not a State, have the format of another
// version of the tool, or are too many.
func Unpack(data []byte) (State, error) {
	if len(data) > MaxPacked {
		return State{}, fmt.Errorf("the baseline has %d bytes, more than %d", len(data), MaxPacked)
	}
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return State{}, fmt.Errorf("the baseline is not gzip: %w", err)
	}
	text := &io.LimitedReader{R: compressed, N: maxText + 1}
	state, err := decode(text)
	if err == nil {
		_, err = io.Copy(io.Discard, text) // the checksum is at the end
	}
	if text.N <= 0 {
		return State{}, fmt.Errorf("the baseline is larger than %d bytes of text", maxText)
	}
	if err != nil {
		return State{}, fmt.Errorf("the baseline cannot be decoded: %w", err)
	}
	return state, nil
}

// decoder decodes a packed State object by object, so that what it takes is bounded by the objects that it accepts.
type decoder struct {
	from  *json.Decoder
	whole packed
	state State
	count int
}

func decode(text io.Reader) (State, error) {
	d := &decoder{from: json.NewDecoder(text), state: State{Objects: map[Key]Object{}}}
	if err := d.members(d.member); err != nil {
		return State{}, err
	}
	if d.whole.Format != format {
		return State{}, errFormat(d.whole.Format)
	}
	d.state.Taken, d.state.ClusterID, d.state.Version, d.state.Image, d.state.Unread = d.whole.Taken, d.whole.ClusterID, d.whole.Version,
		d.whole.Image, d.whole.Unread
	d.state.APIs = d.whole.APIs
	return d.state, nil
}

func errFormat(of int) error {
	return fmt.Errorf("it has format %d, which belongs to another version of the tool; this one reads %d", of, format)
}

// members calls do for each member of an object, with the name; do decodes its value.
func (d *decoder) members(do func(name string) error) error {
	if begin, err := d.from.Token(); err != nil || begin != json.Delim('{') {
		return errors.Join(err, errors.New("it is not the state of a cluster"))
	}
	for d.from.More() {
		name, err := d.from.Token()
		if err != nil {
			return err
		}
		if err := do(fmt.Sprint(name)); err != nil {
			return err
		}
	}
	_, err := d.from.Token()
	return err
}

// member decodes a member of the whole. The format is the first, so that another one is named before its objects are read.
func (d *decoder) member(name string) error {
	switch name {
	case "format":
		if err := d.value(&d.whole.Format); err != nil || d.whole.Format == format {
			return err
		}
		return errFormat(d.whole.Format)
	case "taken":
		return d.value(&d.whole.Taken)
	case "clusterID":
		return d.value(&d.whole.ClusterID)
	case "version":
		return d.value(&d.whole.Version)
	case "image":
		return d.value(&d.whole.Image)
	case "unread":
		return byKindOf(d, &d.whole.Unread)
	case "apis":
		return byKindOf(d, &d.whole.APIs)
	case "objects":
		return d.members(func(namespace string) error {
			return d.members(func(kind string) error {
				return d.members(func(name string) error {
					return d.object(Key{Kind: Kind(kind), Namespace: namespace, Name: name})
				})
			})
		})
	}
	return d.value(&json.RawMessage{})
}

// byKindOf decodes values by their kinds, one at a time: there may be more of them than one value may have.
func byKindOf[T any](d *decoder, into *map[Kind]T) error {
	*into = map[Kind]T{}
	return d.members(func(kind string) error {
		var of T
		err := d.value(&of)
		(*into)[Kind(kind)] = of
		return err
	})
}

func (d *decoder) object(key Key) error {
	if d.count++; d.count > MaxObjects {
		return fmt.Errorf("it contains more than %d objects", MaxObjects)
	}
	var found packedState
	if err := d.value(&found); err != nil {
		return fmt.Errorf("%s: %w", words.External(key.String()), err)
	}
	d.state.Objects[key] = found.object(key)
	return nil
}

// value decodes a value of bounded size.
func (d *decoder) value(into any) error {
	var text json.RawMessage
	if err := d.from.Decode(&text); err != nil {
		return err
	}
	if len(text) > maxObject {
		return fmt.Errorf("a value has %d bytes, more than %d", len(text), maxObject)
	}
	return json.Unmarshal(text, into)
}

func (p packedState) object(key Key) Object {
	object := Object{
		UID: p.UID, Release: p.Release, Desired: p.Desired, Ready: p.Desired - p.Missing, Restarts: p.Restarts,
		Revision: p.Revision, Generation: p.Generation, Detail: p.Detail,
	}
	for _, reason := range slices.Compact(slices.Sorted(slices.Values(p.Problems))) {
		object.Problems = append(object.Problems, Problem{Reason: reason})
	}
	for _, each := range p.Refs {
		object.Refs = append(object.Refs, unpackedKey(each, key))
	}
	if p.Owner != "" {
		object.Owner = unpackedKey(p.Owner, key)
	}
	return object
}
