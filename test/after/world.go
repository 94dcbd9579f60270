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
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ref identifies an object.
type Ref struct{ Kind, Namespace, Name string }

// World is a cluster whose objects are changed in place.
type World struct {
	// noon is the time of the last look.
	noon    time.Time
	objects map[Ref]map[string]any
	alerts  []Alert
	// made counts what was made, for names.
	made int
	// guest is true for the guest of a hosted cluster that is read without its management cluster.
	guest bool
}

// Alert is an alert that is firing.
type Alert struct {
	Name, Namespace, Severity string
	Since                     time.Time
}

// The releases of the update.
const (
	From = "4.18.1"
	To   = "4.18.2"
)

// At is a time before noon, as objects state it.
func (w *World) At(before time.Duration) string { return w.noon.Add(-before).Format(time.RFC3339) }

// apis are the groups and versions of kinds.
func apis() map[string]string {
	return map[string]string{
		"ClusterVersion": "config.openshift.io/v1", "ClusterOperator": "config.openshift.io/v1", "Infrastructure": "config.openshift.io/v1", "Network": "config.openshift.io/v1",
		"MachineConfigPool": "machineconfiguration.openshift.io/v1", "MachineSet": "machine.openshift.io/v1beta1", "Node": "v1", "Pod": "v1", "Service": "v1", "Namespace": "v1",
		"PersistentVolumeClaim": "v1", "ReplicationController": "v1", "Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1",
		"EndpointSlice": "discovery.k8s.io/v1", "Route": "route.openshift.io/v1", "IngressController": "operator.openshift.io/v1", "APIService": "apiregistration.k8s.io/v1",
		"CustomResourceDefinition": "apiextensions.k8s.io/v1", "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
		"StorageClass": "storage.k8s.io/v1", "CSIDriver": "storage.k8s.io/v1", "CSINode": "storage.k8s.io/v1", "VolumeAttachment": "storage.k8s.io/v1",
		"ClusterServiceVersion": "operators.coreos.com/v1alpha1", "Subscription": "operators.coreos.com/v1alpha1", "CertificateSigningRequest": "certificates.k8s.io/v1",
		"EgressIP": "k8s.ovn.org/v1", "EgressFirewall": "k8s.ovn.org/v1", "HostedCluster": "hypershift.openshift.io/v1beta1", "NodePool": "hypershift.openshift.io/v1beta1",
	}
}

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
	object["metadata"], object["kind"], object["apiVersion"] = metadata, ref.Kind, apis()[ref.Kind]
	w.objects[ref] = object
}

// Put sets one field of an object, by its path: a value of JSON, or a text.
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
}

// Annotate sets annotations of an object beside its others.
func (w *World) Annotate(ref Ref, annotations map[string]string) {
	object := w.object(ref)
	all := object.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, annotations)
	object.SetAnnotations(all)
}

// object is an object with the methods of its metadata.
func (w *World) object(ref Ref) *unstructured.Unstructured {
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

// Fire has an alert fire since then.
func (w *World) Fire(name, namespace, severity string, since time.Duration) {
	w.alerts = append(w.alerts, Alert{Name: name, Namespace: namespace, Severity: severity, Since: w.noon.Add(-since)})
}

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
		object := &unstructured.Unstructured{Object: w.objects[ref]}
		object.SetGroupVersionKind(schema.FromAPIVersionAndKind(apis()[ref.Kind], ref.Kind))
		all = append(all, object)
	}
	return all
}

// Clone is an independent copy.
func (w *World) Clone() *World {
	next := &World{noon: w.noon, objects: map[Ref]map[string]any{}, alerts: slices.Clone(w.alerts), made: w.made, guest: w.guest}
	for ref, object := range w.objects {
		next.objects[ref] = (&unstructured.Unstructured{Object: object}).DeepCopy().Object
	}
	return next
}
