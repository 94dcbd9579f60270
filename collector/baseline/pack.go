package baseline

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	// format is the version of the packed form.
	format = 1
	// MaxPacked bounds a packed State, in bytes.
	MaxPacked = 8 << 20
	// maxText bounds its text, in bytes.
	maxText = 256 << 20
	// MaxObjects bounds its objects.
	MaxObjects = 1_000_000
)

// packed is the JSON of a State: each namespace once, and of an object what is not the default.
type packed struct {
	Format    int                                        `json:"format"`
	Taken     time.Time                                  `json:"taken"`
	ClusterID string                                     `json:"clusterID"`
	Version   string                                     `json:"version"`
	Image     string                                     `json:"image"`
	Unread    map[Kind]string                            `json:"unread,omitempty"`
	Objects   map[string]map[Kind]map[string]packedState `json:"objects"`
}

type packedState struct {
	Desired int32 `json:"d,omitempty"`
	// Missing is Desired less Ready.
	Missing    int32    `json:"m,omitempty"`
	Restarts   float64  `json:"s,omitempty"`
	Revision   string   `json:"r,omitempty"`
	Generation int64    `json:"g,omitempty"`
	Detail     string   `json:"t,omitempty"`
	Problems   []string `json:"p,omitempty"`
}

// Pack encodes the State: gzip of JSON, of about 25 bytes for each object. It leaves out the times and messages of
// problems.
func (s State) Pack() ([]byte, error) {
	if len(s.Objects) > MaxObjects {
		return nil, fmt.Errorf("the state of the cluster has more than %d objects", MaxObjects)
	}
	whole := packed{
		Format: format, Taken: s.Taken.UTC().Truncate(time.Second), ClusterID: s.ClusterID, Version: s.Version, Image: s.Image,
		Unread: s.Unread, Objects: map[string]map[Kind]map[string]packedState{},
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
		kinds[key.Kind][key.Name] = object.packed()
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

func (o Object) packed() packedState {
	state := packedState{Desired: o.Desired, Missing: o.Desired - o.Ready, Restarts: o.Restarts, Revision: o.Revision, Generation: o.Generation, Detail: o.Detail}
	for _, each := range o.Problems {
		state.Problems = append(state.Problems, each.Reason)
	}
	return state
}

// Unpack decodes a packed State. It is an error if the bytes are none, have the format of another version of the
// tool, or are too large.
func Unpack(data []byte) (State, error) {
	if len(data) > MaxPacked {
		return State{}, fmt.Errorf("the baseline has %d bytes, more than %d", len(data), MaxPacked)
	}
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return State{}, fmt.Errorf("the baseline is not gzip: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(compressed, maxText+1))
	if err != nil {
		return State{}, fmt.Errorf("the baseline cannot be decompressed: %w", err)
	}
	if len(text) > maxText {
		return State{}, fmt.Errorf("the baseline has more than %d bytes of text", maxText)
	}
	var whole packed
	if err := json.Unmarshal(text, &whole); err != nil {
		return State{}, fmt.Errorf("the baseline cannot be decoded: %w", err)
	}
	if whole.Format != format {
		return State{}, fmt.Errorf("the baseline has the format %d of another version of the tool; this one reads %d", whole.Format, format)
	}
	return whole.state()
}

func (p packed) state() (State, error) {
	state := State{Taken: p.Taken, ClusterID: p.ClusterID, Version: p.Version, Image: p.Image, Unread: p.Unread, Objects: map[Key]Object{}}
	for namespace, kinds := range p.Objects {
		for kind, objects := range kinds {
			for name, found := range objects {
				if len(state.Objects) >= MaxObjects {
					return State{}, fmt.Errorf("the baseline has more than %d objects", MaxObjects)
				}
				state.Objects[Key{Kind: kind, Namespace: namespace, Name: name}] = found.object()
			}
		}
	}
	return state, nil
}

func (p packedState) object() Object {
	object := Object{Desired: p.Desired, Ready: p.Desired - p.Missing, Restarts: p.Restarts, Revision: p.Revision, Generation: p.Generation, Detail: p.Detail}
	for _, reason := range slices.Compact(slices.Sorted(slices.Values(p.Problems))) {
		object.Problems = append(object.Problems, Problem{Reason: reason})
	}
	return object
}
