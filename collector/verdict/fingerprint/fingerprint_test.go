package fingerprint_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
)

func node(name, kubelet string) *corev1.Node {
	return &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: kubelet}},
	}
}

func operator(name, version string) *configv1.ClusterOperator {
	return &configv1.ClusterOperator{
		TypeMeta:   metav1.TypeMeta{APIVersion: "config.openshift.io/v1", Kind: "ClusterOperator"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: configv1.ClusterOperatorStatus{Versions: []configv1.OperandVersion{
			{Name: "operator", Version: version}, {Name: "operand", Version: "1.0.0"},
		}},
	}
}

// definition is the CustomResourceDefinition with the name PLURAL.GROUP. The API server
// sets its generation.
func definition(name string) *unstructured.Unstructured {
	plural, group, _ := strings.Cut(name, ".")
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": group, "scope": "Cluster",
			"names": map[string]any{"plural": plural, "singular": strings.TrimSuffix(plural, "s"), "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
}

func TestChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		before, after []runtime.Object
		want          []string
	}{
		"Same": {
			reason: "equal objects are no change, in any order",
			before: []runtime.Object{node("a", "v1.36.1"), node("b", "v1.36.1"), operator("etcd", "5.0.3")},
			after:  []runtime.Object{operator("etcd", "5.0.3"), node("b", "v1.36.1"), node("a", "v1.36.1")},
		},
		"Node": {
			reason: "checks depend on every node",
			before: []runtime.Object{node("a", "v1.36.1"), node("b", "v1.36.1")},
			after:  []runtime.Object{node("a", "v1.36.2"), node("c", "v1.36.1")},
			want:   []string{"Node a has changed", "Node b was deleted", "Node c is new"},
		},
		"Operator": {
			reason: "an operator of another version may have migrated its resources",
			before: []runtime.Object{operator("etcd", "5.0.3")},
			after:  []runtime.Object{operator("etcd", "5.0.4")},
			want:   []string{"ClusterOperator etcd has changed"},
		},
		"OwnOperator": {
			reason: "the preflight's own operator is created after a verdict, and does not end it",
			before: []runtime.Object{operator("etcd", "5.0.3")},
			after:  []runtime.Object{operator("etcd", "5.0.3"), operator("update-preflight", "1.0.0")},
		},
		"OwnDefinition": {
			reason: "the controller is installed after a verdict, and does not end it",
			after:  []runtime.Object{definition(ownsignal.Definition)},
		},
		"Definition": {
			reason: "the target may drop a new API",
			after:  []runtime.Object{definition("widgets.example.com")},
			want:   []string{"CustomResourceDefinition widgets.example.com is new"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := read(t, tc.before)
			after := read(t, tc.after)
			changes := before.Changes(after)
			if diff := cmp.Diff(tc.want, changes); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			for _, change := range changes {
				if !fingerprint.IsChange(change) {
					t.Errorf("%q is certain", change)
				}
			}
		})
	}
}

// read is the fingerprint while the server has the objects.
func read(t *testing.T, objects []runtime.Object) fingerprint.Fingerprint {
	t.Helper()
	var found fingerprint.Fingerprint
	t.Run("", func(t *testing.T) {
		server.Create(t, objects...)
		found = fingerprint.Read(t.Context(), server.Snapshot(t).Cluster)
	})
	awaitRemoval(t, objects)
	return found
}

// awaitRemoval returns when the server has deleted the objects: it deletes the
// instances of a definition before the definition.
func awaitRemoval(t *testing.T, objects []runtime.Object) {
	t.Helper()
	for _, object := range objects {
		definition, ok := object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		name := "CustomResourceDefinition " + definition.GetName()
		for {
			if _, exists := fingerprint.Read(t.Context(), server.Snapshot(t).Cluster)[name]; !exists {
				break
			}
		}
	}
}

// A definition that is deleted and created again is a change.
func TestARecreatedDefinitionIsAChange(t *testing.T) {
	before := read(t, []runtime.Object{definition("gadgets.example.com")})
	after := read(t, []runtime.Object{definition("gadgets.example.com")})
	want := []string{"CustomResourceDefinition gadgets.example.com has changed"}
	if diff := cmp.Diff(want, before.Changes(after)); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// A kind that cannot be read never compares as unchanged.
func TestUnknownIsNotUnchanged(t *testing.T) {
	known := fingerprint.Read(t.Context(), server.Snapshot(t).Cluster)
	unread := fingerprint.Read(t.Context(), server.Unprivileged().Snapshot(t).Cluster)
	for name, changes := range map[string][]string{
		"Then": unread.Changes(maps.Clone(known)), "Now": known.Changes(unread), "Both": unread.Changes(unread),
	} {
		all := strings.Join(changes, "\n")
		if strings.Contains(all, "was deleted") || strings.Contains(all, "is new") {
			t.Errorf("%s: an unknown state is reported as a change:\n%s", name, all)
		}
		for _, kind := range []string{"ClusterVersion", "ClusterOperator", "Node", "CustomResourceDefinition"} {
			if !strings.Contains(all, "unknown whether a "+kind+" has changed") {
				t.Errorf("%s: the unknown %s is not reported:\n%s", name, kind, all)
			}
		}
	}
}

// What could not be read may be unchanged.
func TestUnreadIsNoChange(t *testing.T) {
	unread := fingerprint.Fingerprint{"? Node": "the server has changed"}
	for _, text := range append(unread.Changes(fingerprint.Fingerprint{}), "it was valid until 2026-11-21T09:00:00Z") {
		if fingerprint.IsChange(text) {
			t.Errorf("%q is not certain", text)
		}
	}
}
