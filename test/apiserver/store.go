package apiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// key identifies an object.
type key struct {
	schema.GroupVersionResource

	namespace, name string
}

// event is a change of an object.
type event struct {
	kind    string
	key     key
	content map[string]any
	version int
}

// store has the objects and their changes.
type store struct {
	objects map[key]map[string]any
	events  []event
	version int
	// changed is closed at the next change.
	changed chan struct{}
	closed  bool
}

func newStore() store { return store{objects: map[key]map[string]any{}, changed: make(chan struct{})} }

// close ends the watches.
func (s *store) close() {
	if !s.closed {
		s.closed = true
		close(s.changed)
	}
}

// put creates or replaces an object, and assigns its metadata.
func (s *store) put(at key, content map[string]any) map[string]any {
	s.version++
	metadata := metadataOf(content)
	kind := "ADDED"
	earlier, exists := s.objects[at]
	if exists {
		kind = "MODIFIED"
		for _, field := range []string{"uid", "creationTimestamp"} {
			metadata[field] = metadataOf(earlier)[field]
		}
	} else {
		setDefault(metadata, "uid", fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version))
		if created, found := metadata["creationTimestamp"]; !found || created == nil {
			metadata["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		}
		setDefault(metadata, "generation", 1)
	}
	metadata["name"], metadata["resourceVersion"] = at.name, strconv.Itoa(s.version)
	if at.namespace != "" {
		metadata["namespace"] = at.namespace
	}
	s.objects[at] = content
	s.report(event{kind: kind, key: at, content: content})
	return content
}

// remove deletes an object, and what it owns.
func (s *store) remove(at key) {
	content, found := s.objects[at]
	if !found {
		return
	}
	s.version++
	delete(s.objects, at)
	s.report(event{kind: "DELETED", key: at, content: content})
	uid := text(metadataOf(content), "uid")
	for _, other := range slices.Collect(maps.Keys(s.objects)) {
		if isOwned(s.objects[other], uid) {
			s.remove(other)
		}
	}
}

func isOwned(content map[string]any, uid string) bool {
	owners, _ := metadataOf(content)["ownerReferences"].([]any)
	return slices.ContainsFunc(owners, func(owner any) bool {
		reference, _ := owner.(map[string]any)
		return uid != "" && text(reference, "uid") == uid
	})
}

func (s *store) report(e event) {
	e.version = s.version
	e.content = clone(e.content)
	s.events = append(s.events, e)
	if !s.closed {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// selection selects objects of a resource.
type selection struct {
	of     key
	labels labels.Selector
	// name is that of the only object; empty for all.
	name string
}

func (s selection) has(at key, content map[string]any) bool {
	set := labels.Set{}
	found, _ := metadataOf(content)["labels"].(map[string]any)
	for name, value := range found {
		set[name] = fmt.Sprint(value)
	}
	return at.GroupVersionResource == s.of.GroupVersionResource && (s.of.namespace == "" || s.of.namespace == at.namespace) &&
		(s.name == "" || s.name == at.name) && s.labels.Matches(set)
}

// list are the selected objects by namespace and name.
func (s *store) list(selected selection) []key {
	var found []key
	for at, content := range s.objects {
		if selected.has(at, content) {
			found = append(found, at)
		}
	}
	slices.SortFunc(found, func(a, b key) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	})
	return found
}

func metadataOf(content map[string]any) map[string]any {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		content["metadata"] = metadata
	}
	return metadata
}

func nameOf(content map[string]any) (namespace, name string) {
	return text(metadataOf(content), "namespace"), text(metadataOf(content), "name")
}

func text(of map[string]any, field string) string {
	value, _ := of[field].(string)
	return value
}

func setDefault(of map[string]any, field string, value any) {
	if found, ok := of[field]; !ok || found == "" {
		of[field] = value
	}
}

// clone is a deep copy of JSON.
func clone(content map[string]any) map[string]any {
	copied := map[string]any{}
	encoded, err := json.Marshal(content)
	if err == nil {
		err = json.Unmarshal(encoded, &copied)
	}
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return copied
}

// merge applies a merge patch (RFC 7386).
func merge(into, patch map[string]any) {
	for name, value := range patch {
		part, isObject := value.(map[string]any)
		present, hasObject := into[name].(map[string]any)
		switch {
		case value == nil:
			delete(into, name)
		case isObject && hasObject:
			merge(present, part)
		default:
			into[name] = value
		}
	}
}
