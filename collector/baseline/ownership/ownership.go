// Package ownership answers: does the release decide about this object, or a user?
//
// [Of] reads the ClusterOperators, and [Owners.Proves] decides. Objects that are not proven to belong to the
// release belong to a user, even in namespaces that begin with "openshift-", where users also install operators.
package ownership

import (
	"cmp"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/snapshot"
)

// Owners are the objects that the ClusterOperators name as their own. The zero value proves ownership only by the
// objects themselves.
type Owners struct {
	related []configv1.ObjectReference
	// Named are the objects that are named one by one, by the name of their ClusterOperator.
	Named map[string][]configv1.ObjectReference
}

// Of are the owners in a cluster with these operators.
func Of(operators []configv1.ClusterOperator) Owners {
	made := Owners{Named: map[string][]configv1.ObjectReference{}}
	for i := range operators {
		made.related = append(made.related, operators[i].Status.RelatedObjects...)
		for _, each := range operators[i].Status.RelatedObjects {
			if each.Name != "" && each.Resource != "namespaces" {
				made.Named[operators[i].Name] = append(made.Named[operators[i].Name], each)
			}
		}
	}
	slices.SortFunc(made.related, func(a, b configv1.ObjectReference) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Group, b.Group), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Name, b.Name))
	})
	made.related = slices.Compact(made.related)
	return made
}

// installed is the namespace of operators that users install for all namespaces.
const installed = "openshift-operators"

// Namespace reports whether a ClusterOperator names a namespace as its own. Without ClusterOperators that name anything, as in a part
// of an archive, the name of the namespace decides.
func (o Owners) Namespace(name string) bool {
	if len(o.related) == 0 {
		return name != installed && snapshot.OfCluster(name)
	}
	return name != "" && o.names(schema.GroupResource{Resource: "namespaces"}, "", name)
}

// names reports whether a ClusterOperator names an object as its own, alone or with all of its resource in a namespace.
func (o Owners) names(resource schema.GroupResource, namespace, name string) bool {
	return slices.ContainsFunc(o.related, func(r configv1.ObjectReference) bool {
		if r.Name == "" && r.Namespace == "" { // all of a resource, such as all CustomResourceDefinitions, for a must-gather
			return false
		}
		return r.Group == resource.Group && r.Resource == resource.Resource && cmp.Or(r.Name, name) == name &&
			cmp.Or(r.Namespace, namespace) == namespace
	})
}

// Proves reports whether the object is proven to belong to the release: the cluster-version operator applies or
// owns it, or a ClusterOperator names it or its namespace, and no person created it. An object whose owner belongs
// to the release does so, too; the caller must follow owners.
func (o Owners) Proves(resource schema.GroupResource, object metav1.Object) bool {
	switch {
	case Applied(object):
		return true
	case o.Namespace(object.GetNamespace()), o.names(resource, object.GetNamespace(), object.GetName()):
		return snapshot.HandMade(object) == "" && !ofOLM(object)
	}
	return false
}

// profiles begins the annotations by which a manifest of the release states in which profiles of clusters it is applied
// (cluster-version-operator docs, "What do I put in /manifests?").
const profiles = "include.release.openshift.io/"

// fieldManager is the field manager of the cluster-version operator.
const fieldManager = "cluster-version-operator"

// Applied reports whether the cluster-version operator applies an object: it owns or has written it, or the object has the
// annotation that each manifest has.
func Applied(object metav1.Object) bool {
	for name := range object.GetAnnotations() {
		if strings.HasPrefix(name, profiles) {
			return true
		}
	}
	return slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return r.Kind == "ClusterVersion" && strings.HasPrefix(r.APIVersion, configv1.GroupName+"/")
	}) || slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource == "" && strings.HasPrefix(entry.Manager, fieldManager)
	})
}

// ofOLM reports whether OLM created an object for an operator: except for one, OLM does not install the release's
// own operators.
func ofOLM(object metav1.Object) bool {
	owner := object.GetLabels()["olm.owner"]
	return owner != "" && owner != "packageserver"
}
