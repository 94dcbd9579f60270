// Package placement answers: in which namespace are the objects of a release for a management cluster?
//
// [Of] returns the release with its objects where a run has them.
package placement

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/runner/payload"
)

// Of is a release for the hosted cluster whose control plane is in this namespace of its management cluster:
// the objects for that cluster are there, with the ServiceAccounts that they bind, whatever namespaces
// their manifests name. Without a namespace the cluster is its own management cluster, and no object is for
// another.
func Of(release *payload.Release, controlPlane string) *payload.Release {
	placed := *release
	placed.Jobs, placed.Supporting = nil, nil
	for _, each := range release.Jobs {
		if each.Management = each.Management && controlPlane != ""; each.Management {
			each.Job = each.Job.DeepCopy()
			each.Job.Namespace = controlPlane
		}
		placed.Jobs = append(placed.Jobs, each)
	}
	for _, each := range release.Supporting {
		if each.Management = each.Management && controlPlane != ""; each.Management {
			each.Object = moved(each.Object, controlPlane)
		}
		placed.Supporting = append(placed.Supporting, each)
	}
	return &placed
}

// moved is a supporting object in a namespace, with the ServiceAccounts that it binds.
func moved(object payload.Object, namespace string) payload.Object {
	copied, ok := object.DeepCopyObject().(payload.Object)
	if !ok {
		return object
	}
	if object.GetNamespace() != "" {
		copied.SetNamespace(namespace)
	}
	var subjects []rbacv1.Subject
	switch binding := copied.(type) {
	case *rbacv1.RoleBinding:
		subjects = binding.Subjects
	case *rbacv1.ClusterRoleBinding:
		subjects = binding.Subjects
	}
	for i := range subjects {
		if subjects[i].Kind == rbacv1.ServiceAccountKind {
			subjects[i].Namespace = namespace
		}
	}
	return copied
}
