package jobplan

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/launch/inventory"
)

// Secrets returns the Secrets that the containers of a Job read, in the order of
// the manifest, each once.
func Secrets(job *batchv1.Job) []inventory.Reference {
	var secrets []inventory.Reference
	spec := job.Spec.Template.Spec
	eachReference(&spec, func(kind string, name *string) {
		secret := inventory.Refer(kind, job.Namespace, *name)
		if kind == inventory.SecretKind && *name != "" && !slices.Contains(secrets, secret) {
			secrets = append(secrets, secret)
		}
	})
	return secrets
}

// NamedSecrets returns the Secrets that rules allow an account to read by their names, in a
// namespace or, without one, in all.
func NamedSecrets(namespace string, rules []rbacv1.PolicyRule) []inventory.Reference {
	var secrets []inventory.Reference
	reads := access.Verbs(access.Request{Resource: "secrets"}, "get", "list", "watch")
	for _, rule := range rules {
		if !slices.ContainsFunc(reads, func(read access.Request) bool { return covers(rule, read) }) {
			continue
		}
		for _, name := range rule.ResourceNames {
			secrets = append(secrets, inventory.Refer(inventory.SecretKind, namespace, name))
		}
	}
	return secrets
}

// typeOf is the request that reads the type of a Secret.
func typeOf(secret inventory.Reference) access.Request {
	return access.Request{Verb: "list", Resource: "secrets", Namespace: secret.Namespace, Name: secret.Name}
}

// SecretReads returns the requests by which rules read Secrets of any name, sorted. The
// requests have no namespace.
func SecretReads(rules []rbacv1.PolicyRule) []access.Request {
	var reads []access.Request
	for _, read := range access.Verbs(access.Request{Resource: "secrets"}, "get", "list", "watch") {
		if slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return grants(rule, read) }) {
			reads = append(reads, read)
		}
	}
	return reads
}

// grants is true for a rule that allows a request for objects of any name.
func grants(rule rbacv1.PolicyRule, request access.Request) bool {
	return len(rule.ResourceNames) == 0 && covers(rule, request)
}

// covers is true for a rule that allows a request, whatever the names of its objects.
func covers(rule rbacv1.PolicyRule, request access.Request) bool {
	includes := func(values []string, value string) bool {
		return slices.Contains(values, value) || slices.Contains(values, "*")
	}
	return includes(rule.Verbs, request.Verb) &&
		includes(rule.APIGroups, request.Group) && includes(rule.Resources, request.Resource)
}
