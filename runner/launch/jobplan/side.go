package jobplan

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/runner/launch/manifestpolicy"
	"github.com/openshift/update-preflight/runner/payload"
)

// placement decides in which cluster, and in which namespace, the objects of a release are. The zero
// value is that of a cluster which is its own management cluster.
type placement struct {
	// controlPlane is the namespace of the control plane of a hosted cluster, in its management cluster.
	controlPlane string
}

func (p placement) side(management bool) check.Side {
	if management && p.controlPlane != "" {
		return check.Management
	}
	return check.Guest
}

// job is the author's Job where it runs.
func (p placement) job(manifest payload.Job) payload.Job {
	if p.side(manifest.Management) == check.Management {
		manifest.Job = manifest.Job.DeepCopy()
		manifest.Job.Namespace = p.controlPlane
	}
	return manifest
}

// catalogs are the supporting objects of each cluster.
func (p placement) catalogs(supporting []payload.Supporting) (guest, management catalog) {
	var below, above []payload.Supporting
	for _, manifest := range supporting {
		if p.side(manifest.Management) == check.Guest {
			below = append(below, manifest)
			continue
		}
		manifest.Object = p.moved(manifest.Object)
		above = append(above, manifest)
	}
	return newCatalog(below), newCatalog(above).confined()
}

// moved is a supporting object in the namespace of the control plane, with the ServiceAccounts that it
// binds.
func (p placement) moved(object payload.Object) payload.Object {
	copied, ok := object.DeepCopyObject().(payload.Object)
	if !ok {
		return object
	}
	if object.GetNamespace() != "" {
		copied.SetNamespace(p.controlPlane)
	}
	subjects, _ := BindingOf(copied)
	for i := range subjects {
		if subjects[i].Kind == rbacv1.ServiceAccountKind {
			subjects[i].Namespace = p.controlPlane
		}
	}
	return copied
}

// confined adds the violations of the policy for the namespace of a control plane.
func (c catalog) confined() catalog {
	for _, manifest := range c.manifests {
		manifest.violations = append(manifest.violations, manifestpolicy.ControlPlane(manifest.manifest.Object)...)
	}
	return c
}
