// Package after answers: which cluster is updated in the tests of what comes after an update?
//
// [New] makes a cluster of OpenShift in memory, [World.Update] brings it to another release as the real one does, and
// the tables of its tests break it, or change it without breaking it. [World.Observe] reads it as the program does.
package after

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Ref identifies an object. Of two kinds of one name, one is named with its group: "Service.serving.knative.dev".
type Ref struct{ Kind, Namespace, Name string }

// World is a cluster whose objects are changed in place.
type World struct {
	// noon is the time of the last look.
	noon    time.Time
	objects map[Ref]map[string]any
	alerts  []Alert
	// kinds are those that are served.
	kinds map[string]Kind
	// made counts what was made, for names.
	made int
	// guest is true for the guest of a hosted cluster that is read without its management cluster.
	guest bool
}

// Alert is an alert that is firing.
type Alert struct {
	Name, Namespace, Severity string
	Since                     time.Time
	// Pod is the label of its instance; empty for none.
	Pod string
}

// The releases of the update.
const (
	From = "4.18.1"
	To   = "4.18.2"
)

// At is a time before noon, as objects state it.
func (w *World) At(before time.Duration) string { return w.noon.Add(-before).Format(time.RFC3339) }

// Set creates or replaces an object. The content is JSON without its kind and name.
func (w *World) Set(ref Ref, content string) {
	object := map[string]any{}
	if err := json.Unmarshal([]byte(content), &object); err != nil {
		panic(fmt.Sprintf("%v: %v: %s", ref, err, content))
	}
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	w.made++
	metadata["name"] = ref.Name
	if ref.Namespace != "" {
		metadata["namespace"] = ref.Namespace
	}
	if metadata["uid"] == nil {
		metadata["uid"] = fmt.Sprintf("00000000-0000-4000-8001-%012d", w.made)
	}
	if metadata["generation"] == nil {
		metadata["generation"] = int64(1)
	}
	if metadata["creationTimestamp"] == nil {
		metadata["creationTimestamp"] = w.At(30 * 24 * time.Hour)
	}
	served, known := w.kinds[ref.Kind]
	if !known {
		panic(fmt.Sprintf("%v is of a kind that is not served", ref))
	}
	object["metadata"], object["kind"], object["apiVersion"] = metadata, ref.plain(), served.API
	w.objects[ref] = object
}

// Put sets one field of an object, by its path: a value of JSON, or a text. Its controller observes each generation at
// once.
func (w *World) Put(ref Ref, path string, value any) {
	object, ok := w.objects[ref]
	if !ok {
		panic(fmt.Sprintf("there is no %v", ref))
	}
	if number, ok := value.(int); ok {
		value = int64(number)
	}
	if err := unstructured.SetNestedField(object, value, strings.Split(path, ".")...); err != nil {
		panic(err)
	}
	status, _ := object["status"].(map[string]any)
	if observed := status["observedGeneration"]; path == "metadata.generation" && observed != nil {
		status["observedGeneration"] = value
		if _, isText := observed.(string); isText { // of Argo Rollouts
			status["observedGeneration"] = fmt.Sprint(value)
		}
	}
}

// Annotate sets annotations of an object beside its others.
func (w *World) Annotate(ref Ref, annotations map[string]string) {
	object := w.Object(ref)
	all := object.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, annotations)
	object.SetAnnotations(all)
}

// Object is an object with the methods of its metadata.
func (w *World) Object(ref Ref) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: w.objects[ref]}
}

// Condition sets a condition of an object, that has had its status since then.
func (w *World) Condition(ref Ref, kind, status, reason string, since time.Duration) {
	object := w.objects[ref]
	all, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	all = slices.DeleteFunc(all, func(each any) bool {
		condition, ok := each.(map[string]any)
		return ok && condition["type"] == kind
	})
	all = append(all, map[string]any{"type": kind, "status": status, "reason": reason, "message": reason, "lastTransitionTime": w.At(since)})
	w.Put(ref, "status.conditions", all)
}

// Delete deletes an object.
func (w *World) Delete(ref Ref) {
	if _, ok := w.objects[ref]; !ok {
		panic(fmt.Sprintf("there is no %v", ref))
	}
	delete(w.objects, ref)
}

// Exists reports whether there is an object.
func (w *World) Exists(ref Ref) bool { return w.objects[ref] != nil }

// FireFor has an alert fire since then, for one pod.
func (w *World) FireFor(name, namespace, pod, severity string, since time.Duration) {
	w.alerts = append(w.alerts, Alert{Name: name, Namespace: namespace, Severity: severity, Since: w.noon.Add(-since), Pod: pod})
}

// Fire has an alert fire since then.
func (w *World) Fire(name, namespace, severity string, since time.Duration) {
	w.alerts = append(w.alerts, Alert{Name: name, Namespace: namespace, Severity: severity, Since: w.noon.Add(-since)})
}

// Silence ends all alerts.
func (w *World) Silence() { w.alerts = nil }

// Refs are the objects of a kind in a namespace whose names begin so, sorted.
func (w *World) Refs(kind, namespace, prefix string) []Ref {
	var refs []Ref
	for ref := range w.objects {
		if ref.Kind == kind && ref.Namespace == namespace && strings.HasPrefix(ref.Name, prefix) {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, func(a, b Ref) int { return strings.Compare(a.Name, b.Name) })
	return refs
}

// Objects are all objects.
func (w *World) Objects(tb testing.TB) []*unstructured.Unstructured {
	tb.Helper()
	var all []*unstructured.Unstructured
	for ref := range w.objects {
		all = append(all, w.Object(ref))
	}
	return all
}

// Clone is an independent copy.
func (w *World) Clone() *World {
	next := &World{
		noon: w.noon, objects: map[Ref]map[string]any{}, alerts: slices.Clone(w.alerts), made: w.made, guest: w.guest,
		kinds: maps.Clone(w.kinds),
	}
	for ref, object := range w.objects {
		next.objects[ref] = (&unstructured.Unstructured{Object: object}).DeepCopy().Object
	}
	return next
}
