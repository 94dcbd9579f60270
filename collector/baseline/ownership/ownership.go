// Package ownership answers: does the release decide about this object, or a user?
//
// [Of] is made from the ClusterOperators, and [Owners.Proves] decides. What is not proven to be of the release is a user's,
// also in namespaces that begin with "openshift-": operators that users install are in such.
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

// Owners are what the ClusterOperators name as theirs. The zero value proves only by what objects state.
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

// Proves reports whether the object is proven to be of the release: the cluster-version operator applies or owns it, or a
// ClusterOperator names it or its namespace, and no person made it. That of an owner which is of the release is as well,
// which the caller has to follow.
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

// fieldManager is that of the cluster-version operator.
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

// ofOLM reports whether OLM made an object for an operator: those of the release but one are not installed by it.
func ofOLM(object metav1.Object) bool {
	owner := object.GetLabels()["olm.owner"]
	return owner != "" && owner != "packageserver"
}
