package launch

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// eachReference calls visit with every reference of a pod to an object that a
// release may bring: its kind and a pointer to the name.
func eachReference(spec *corev1.PodSpec, visit func(kind string, name *string)) {
	visit("ServiceAccount", &spec.ServiceAccountName)
	for i := range spec.Volumes {
		eachVolumeReference(&spec.Volumes[i].VolumeSource, visit)
	}
	for i := range spec.InitContainers {
		eachContainerReference(&spec.InitContainers[i], visit)
	}
	for i := range spec.Containers {
		eachContainerReference(&spec.Containers[i], visit)
	}
}

func eachVolumeReference(source *corev1.VolumeSource, visit func(kind string, name *string)) {
	if source.ConfigMap != nil {
		visit("ConfigMap", &source.ConfigMap.Name)
	}
	if source.Projected == nil {
		return
	}
	for _, projection := range source.Projected.Sources {
		if projection.ConfigMap != nil {
			visit("ConfigMap", &projection.ConfigMap.Name)
		}
	}
}

func eachContainerReference(container *corev1.Container, visit func(kind string, name *string)) {
	for _, from := range container.EnvFrom {
		if from.ConfigMapRef != nil {
			visit("ConfigMap", &from.ConfigMapRef.Name)
		}
	}
	for _, variable := range container.Env {
		if variable.ValueFrom != nil && variable.ValueFrom.ConfigMapKeyRef != nil {
			visit("ConfigMap", &variable.ValueFrom.ConfigMapKeyRef.Name)
		}
	}
}

// referredBy are the supporting objects that the author's Job refers to.
func (c catalog) referredBy(job *batchv1.Job) []reference {
	spec := job.Spec.Template.Spec // a copy, whose account may be set
	spec.ServiceAccountName = accountName(spec)
	var found []reference
	eachReference(&spec, func(kind string, name *string) {
		if ref := (reference{kind, job.Namespace, *name}); c.entries[ref] != nil {
			found = append(found, ref)
		}
	})
	return found
}

// follow changes the references of a pod to the copies of what the release
// brings. What the release does not bring keeps its name: it must exist in the
// cluster.
func (b binder) follow(namespace string, spec *corev1.PodSpec) {
	spec.ServiceAccountName, spec.DeprecatedServiceAccount = accountName(*spec), ""
	eachReference(spec, func(kind string, name *string) {
		if b.catalog.entries[reference{kind, namespace, *name}] != nil {
			*name = b.run.suffixed(*name)
		}
	})
}

func accountName(spec corev1.PodSpec) string {
	if spec.ServiceAccountName == "" {
		return spec.DeprecatedServiceAccount
	}
	return spec.ServiceAccountName
}
