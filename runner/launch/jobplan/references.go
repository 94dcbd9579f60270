package jobplan

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/runner/launch/credential"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/manifestpolicy"
)

// eachReference calls visit for every reference of a pod to a Secret that its
// containers can read, or to a kind of object that a release may contain, with a
// pointer to the name. The kubelet alone reads image pull secrets.
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
		visit(inventory.ConfigMapKind, &source.ConfigMap.Name)
	}
	if source.Secret != nil {
		visit(inventory.SecretKind, &source.Secret.SecretName)
	}
	if source.Projected == nil {
		return
	}
	for _, projection := range source.Projected.Sources {
		if projection.ConfigMap != nil {
			visit(inventory.ConfigMapKind, &projection.ConfigMap.Name)
		}
		if projection.Secret != nil {
			visit(inventory.SecretKind, &projection.Secret.Name)
		}
	}
}

func eachContainerReference(container *corev1.Container, visit func(kind string, name *string)) {
	for _, from := range container.EnvFrom {
		if from.ConfigMapRef != nil {
			visit(inventory.ConfigMapKind, &from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			visit(inventory.SecretKind, &from.SecretRef.Name)
		}
	}
	for _, variable := range container.Env {
		if variable.ValueFrom == nil {
			continue
		}
		if selected := variable.ValueFrom.ConfigMapKeyRef; selected != nil {
			visit(inventory.ConfigMapKind, &selected.Name)
		}
		if selected := variable.ValueFrom.SecretKeyRef; selected != nil {
			visit(inventory.SecretKind, &selected.Name)
		}
	}
}

// ImagesOf are the images of the containers and volumes of a Job.
func ImagesOf(job *batchv1.Job) []string {
	spec := job.Spec.Template.Spec
	var images []string
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		images = append(images, container.Image)
	}
	for _, volume := range spec.Volumes {
		if volume.Image != nil {
			images = append(images, volume.Image.Reference)
		}
	}
	return images
}

func referencesOf(job *batchv1.Job) []inventory.Reference {
	spec := job.Spec.Template.Spec // a copy, whose ServiceAccount may be set
	spec.ServiceAccountName = accountName(spec)
	var found []inventory.Reference
	eachReference(&spec, func(kind string, name *string) {
		found = append(found, inventory.Refer(kind, job.Namespace, *name))
	})
	return found
}

func (c catalog) referredBy(job *batchv1.Job) []inventory.Reference {
	return slices.DeleteFunc(referencesOf(job), func(ref inventory.Reference) bool { return c.manifests[ref] == nil })
}

// DefaultAccount is the ServiceAccount of pods that name none.
const DefaultAccount = "default"

// AccountOf returns the name of the ServiceAccount that a pod runs as.
func AccountOf(spec corev1.PodSpec) string { return cmp.Or(accountName(spec), DefaultAccount) }

func accountName(spec corev1.PodSpec) string {
	if spec.ServiceAccountName == "" {
		return spec.DeprecatedServiceAccount
	}
	return spec.ServiceAccountName
}

// Secrets returns the Secrets and ConfigMaps that the containers of a Job read, in the order of the manifest, each once.
func Secrets(job *batchv1.Job) []inventory.Reference {
	var secrets []inventory.Reference
	spec := job.Spec.Template.Spec
	eachReference(&spec, func(kind string, name *string) {
		secret := inventory.Refer(kind, job.Namespace, *name)
		if credential.Holds(secret) && !slices.Contains(secrets, secret) {
			secrets = append(secrets, secret)
		}
	})
	return secrets
}

// NamedSecrets returns the Secrets and ConfigMaps that rules allow an account to read by their names, in a
// namespace or, without one, in all.
func NamedSecrets(namespace string, rules []rbacv1.PolicyRule) []inventory.Reference {
	var secrets []inventory.Reference
	for _, kind := range []string{inventory.SecretKind, inventory.ConfigMapKind} {
		for _, name := range manifestpolicy.Named(rules, credential.Resource(kind)) {
			if secret := inventory.Refer(kind, namespace, name); credential.Holds(secret) {
				secrets = append(secrets, secret)
			}
		}
	}
	return secrets
}
