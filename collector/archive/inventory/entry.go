package inventory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"github.com/klauspost/compress/s2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/archive/objects"
)

// named matches what names an object. Findings put it into commands that people copy, so an
// archive has no other: API servers validate most names by a smaller set.
var named = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.:_@/-]*$`)

// Entry is one object, which is kept compressed.
type Entry struct {
	Namespace, Name string
	Version         string
	// revision is the resourceVersion.
	revision uint64
	uid      string
	packed   []byte
}

// Object is the object as JSON.
func (e Entry) Object() ([]byte, error) { return s2.Decode(nil, e.packed) }

// revisionOf is a resourceVersion as a number; 0, which is older than any, where it is none.
func revisionOf(version string) uint64 {
	revision, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return revision
}

// identity has the fields by which an object is found. Their names are case-sensitive.
type identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace       string `json:"namespace"`
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
		UID             string `json:"uid"`
	} `json:"metadata"`
}

func identify(object []byte) (identity, error) {
	var of identity
	err := kjson.UnmarshalCaseSensitivePreserveInts(object, &of)
	return of, err
}

func readEntries(from *file, kind string) (objects.List, []Entry, error) {
	if from.cause != "" {
		return objects.List{}, nil, fmt.Errorf("%s", from.cause)
	}
	var entries []Entry
	list, err := from.objects(func(object []byte) error {
		made, of, err := entryOf(object, from.place, kind)
		if err == nil {
			err = from.refuseTorn(object, of.Kind)
		}
		entries = append(entries, made)
		return err
	})
	if err == nil && from.place.Resource != "" {
		err = refuseList(from.place, list)
	}
	return list, entries, err
}

// entryOf gives an object the apiVersion, the kind and the namespace that follow from its place
// where it has none. One of another kind than the resource of its place is an error.
func entryOf(object []byte, place layout.Place, kind string) (Entry, identity, error) {
	of, err := identify(object)
	if err != nil {
		return Entry{}, of, err
	}
	if of.Metadata.Namespace != "" && place.Namespace != "" && of.Metadata.Namespace != place.Namespace {
		return Entry{}, of, fmt.Errorf("the object %q is of namespace %q, and stands in the directory of %q", of.Metadata.Name, of.Metadata.Namespace, place.Namespace)
	}
	if of.Metadata.Name == "" {
		of.Metadata.Name = place.Name
	}
	if of.Metadata.Name == "" {
		return Entry{}, of, fmt.Errorf("an object has no name")
	}
	if of.APIVersion == "" || of.Kind == "" {
		of.APIVersion, of.Kind = cmp.Or(of.APIVersion, place.APIVersion), cmp.Or(of.Kind, place.Kind, kind)
		if of.APIVersion == "" || of.Kind == "" {
			return Entry{}, of, fmt.Errorf("the object %q has no apiVersion or no kind", of.Metadata.Name)
		}
		if object, err = withType(object, of); err != nil {
			return Entry{}, of, err
		}
	}
	group, err := schema.ParseGroupVersion(of.APIVersion)
	if err != nil {
		return Entry{}, of, err
	}
	namespace := cmp.Or(of.Metadata.Namespace, place.Namespace)
	if err := errors.Join(refuseNames(of.Metadata.Name, cmp.Or(namespace, "none"), of.APIVersion, of.Kind), refuseKind(place, group.Group, of.Kind)); err != nil {
		return Entry{}, of, err
	}
	return Entry{
		Namespace: namespace, Name: of.Metadata.Name, Version: group.Version,
		revision: revisionOf(of.Metadata.ResourceVersion), uid: of.Metadata.UID, packed: encode(object),
	}, of, nil
}

func refuseNames(texts ...string) error {
	for _, text := range texts {
		if !named.MatchString(text) {
			return fmt.Errorf("%q is not part of the name of an object", text)
		}
	}
	return nil
}

func withType(object []byte, of identity) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"apiVersion": of.APIVersion, "kind": of.Kind} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		fields[name] = text
	}
	return json.Marshal(fields)
}

// encoded are buffers in which objects are compressed.
var encoded = sync.Pool{New: func() any { return new([]byte) }} //nolint:gochecknoglobals // a pool is shared

func encode(object []byte) []byte {
	buffer, ok := encoded.Get().(*[]byte)
	if !ok {
		return s2.Encode(nil, object) // the pool has no others
	}
	defer encoded.Put(buffer)
	packed := s2.Encode(*buffer, object)
	*buffer = packed[:cap(packed)]
	return bytes.Clone(packed)
}
