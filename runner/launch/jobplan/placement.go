package jobplan

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/runner/payload"
)

// placed is a release for the hosted cluster whose control plane is in this namespace of its management cluster:
// the objects for that cluster are there, with the ServiceAccounts that they bind, whatever namespaces
// their manifests name. Without a namespace the cluster is its own management cluster, and no object is for
// another.
func placed(release *payload.Release, controlPlane string) *payload.Release {
	copied := *release
	copied.Jobs, copied.Supporting = nil, nil
	for _, each := range release.Jobs {
		if each.Management = each.Management && controlPlane != ""; each.Management {
			each.Job = each.Job.DeepCopy()
			each.Job.Namespace = controlPlane
		}
		copied.Jobs = append(copied.Jobs, each)
	}
	for _, each := range release.Supporting {
		if each.Management = each.Management && controlPlane != ""; each.Management {
			each.Object = moved(each.Object, controlPlane)
		}
		copied.Supporting = append(copied.Supporting, each)
	}
	return &copied
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
