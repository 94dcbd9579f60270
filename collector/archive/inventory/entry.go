package inventory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/s2"
	"k8s.io/apimachinery/pkg/api/meta"
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
		return Entry{}, of, fmt.Errorf("the object %q belongs to namespace %q, but is in the directory of %q", of.Metadata.Name,
			of.Metadata.Namespace, place.Namespace)
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
	if err := errors.Join(refuseNames(of.Metadata.Name, cmp.Or(namespace, "none"), of.APIVersion, of.Kind),
		refuseKind(place, group.Group, of.Kind)); err != nil {
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
var encoded = sync.Pool{New: func() any { return new([]byte) }} //nolint:gochecknoglobals // all calls share the pool

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

// fits reports whether a kind belongs to the resource by the rules of Kubernetes, or is a plural itself, such as
// Endpoints and SecurityContextConstraints.
func (r Resource) fits(group, kind string) bool {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Kind: kind})
	singular := strings.ToLower(kind)
	return r.Group == group && slices.Contains([]string{plural.Resource, singular, singular + "s", singular + "es"}, r.Name)
}

// irregular reports whether the name of a resource of the group need not follow from its kind: that
// of NodeMetrics is nodes, and a definition of another vendor may have any plural.
func irregular(group string) bool {
	if group == "metrics.k8s.io" {
		return true
	}
	known := strings.HasSuffix(group, "k8s.io") || strings.HasSuffix(group, "openshift.io") || group == "operators.coreos.com"
	return strings.Contains(group, ".") && !known
}

// refuseKind returns an error for an object that is not of the resource of its place, if it has one.
func refuseKind(place layout.Place, group, kind string) error {
	expected := Resource{place.Group, place.Resource}
	if place.Resource == "" || expected.fits(group, kind) || group == expected.Group && irregular(group) {
		return nil
	}
	return fmt.Errorf("it has the kind %s, where %s are expected", schema.GroupKind{Group: group, Kind: kind}, expected)
}

// refuseList is refuseKind for a list; one that kubectl has put together has objects of any kind.
func refuseList(place layout.Place, list objects.List) error {
	if list.Kind == "" || list.Kind == objects.AnyList {
		return nil
	}
	group := schema.FromAPIVersionAndKind(list.APIVersion, list.Kind).Group
	kind, ok := itemKind(list)
	if err := refuseKind(place, group, kind); ok && err == nil {
		return nil
	}
	return fmt.Errorf("its list has the kind %s, where %s are expected", schema.GroupKind{Group: group, Kind: list.Kind},
		Resource{place.Group, place.Resource})
}

func itemKind(list objects.List) (string, bool) {
	kind, ok := strings.CutSuffix(list.Kind, "List")
	return kind, ok && kind != ""
}

// of is the resource of a kind. Where that can be the resource by which a file is named, it is; a
// name without a group matches any.
func (r Resource) of(apiVersion, kind string) Resource {
	plural, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(apiVersion, kind))
	if named := (Resource{plural.Group, r.Name}); r.names(named) && named.fits(plural.Group, kind) {
		return named
	}
	return Resource{plural.Group, plural.Resource}
}

// names reports whether a file with this name, whose group may be empty, has objects of the resource.
func (r Resource) names(other Resource) bool {
	return r.Name == other.Name && (r.Group == "" || r.Group == other.Group)
}

// OpenHosted reads both clusters of a dump of HyperShift ("hypershift dump cluster"): the management cluster, and
// below hostedcluster-NAME the guest of the hosted cluster of that name, which is nil if it is missing.
func OpenHosted(ctx context.Context, name string, paths ...string) (management, guest *Inventory, err error) {
	management, guest = &Inventory{tables: map[part]*Table{}}, &Inventory{tables: map[part]*Table{}}
	trees, err := loadAll(ctx, paths, &management.leftOut)
	if err != nil {
		return nil, nil, err
	}
	var below, above []*tree
	for _, each := range trees {
		switch {
		case strings.Contains("/"+each.root.Dir+"/", "/hostedcluster-"+name+"/"):
			below = append(below, each)
		case each.hosted(), strings.Contains(each.root.Dir, "external-infra-clusters"):
			management.leftOut.add(each.title, "it belongs to another cluster")
		default:
			above = append(above, each)
		}
	}
	if len(above) == 0 {
		return nil, nil, fmt.Errorf("no management cluster was found; found: %s", titles(trees))
	}
	if err := management.holdOne(above); err != nil {
		return nil, nil, err
	}
	if len(below) == 0 {
		return management, nil, nil
	}
	return management, guest, guest.holdOne(below)
}

// holdOne is hold for trees of one cluster, which may name none.
func (i *Inventory) holdOne(trees []*tree) error {
	trees, unread := separate(trees)
	if len(trees) == 0 { // of which nothing else is there
		trees, unread = unread, nil
	}
	for _, each := range unread {
		i.leftOut.add(each.title, "it is not known to belong to the cluster: "+each.unreadVersion())
	}
	id := ""
	for _, each := range trees {
		found := each.clusterID()
		if id != "" && found != "" && found != id {
			return fmt.Errorf("several clusters were found, %s and %s, where one is expected: %s", id, found, titles(trees))
		}
		if found != "" {
			id = found
		}
	}
	i.hold(id, trees)
	return nil
}
