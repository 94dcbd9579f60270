package launch

import (
	corev1 "k8s.io/api/core/v1"
)

// follower turns the references of one pod to the copies of what the release
// brings. What the release does not bring keeps its name: it must be in the
// cluster already.
type follower struct {
	catalog   catalog
	namespace string
	needs     []reference
}

// follow changes spec, and returns what of the catalog it refers to.
func (c catalog) follow(namespace string, spec *corev1.PodSpec) []reference {
	f := follower{catalog: c, namespace: namespace}
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = spec.DeprecatedServiceAccount
	}
	spec.DeprecatedServiceAccount = ""
	f.rename("ServiceAccount", &spec.ServiceAccountName)
	for i := range spec.Volumes {
		f.volume(&spec.Volumes[i].VolumeSource)
	}
	for i := range spec.InitContainers {
		f.container(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		f.container(&spec.Containers[i])
	}
	return f.needs
}

func (f *follower) rename(kind string, name *string) {
	ref := reference{kind, f.namespace, *name}
	if f.catalog.entries[ref] == nil {
		return
	}
	*name = f.catalog.run.suffixed(*name)
	f.needs = append(f.needs, ref)
}

func (f *follower) volume(source *corev1.VolumeSource) {
	if source.ConfigMap != nil {
		f.rename("ConfigMap", &source.ConfigMap.Name)
	}
	if source.Projected == nil {
		return
	}
	for _, projection := range source.Projected.Sources {
		if projection.ConfigMap != nil {
			f.rename("ConfigMap", &projection.ConfigMap.Name)
		}
	}
}

func (f *follower) container(container *corev1.Container) {
	for _, from := range container.EnvFrom {
		if from.ConfigMapRef != nil {
			f.rename("ConfigMap", &from.ConfigMapRef.Name)
		}
	}
	for _, variable := range container.Env {
		if variable.ValueFrom != nil && variable.ValueFrom.ConfigMapKeyRef != nil {
			f.rename("ConfigMap", &variable.ValueFrom.ConfigMapKeyRef.Name)
		}
	}
}
