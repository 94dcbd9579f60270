package jobplan

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/runner/launch/credential"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/manifestpolicy"
)

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
