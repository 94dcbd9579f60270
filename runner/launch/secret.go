package launch

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/retry"
)

// ReasonRefusedTokenSecret is reported for a check whose containers, or whose account, read a
// Secret of type kubernetes.io/service-account-token. The read-only guard does not apply to
// its token, which is not that of the check's pod.
//
// Cause: a volume or an environment variable of the manifest refers to the Secret, or a role of
// the check's account names it.
//
// Remedy: report it to the owners of the component. To update without this check,
// accept the finding.
const ReasonRefusedTokenSecret finding.Reason = "RefusedTokenSecret"

// tokenSecretError means that the containers of a check read a token that the guard
// does not recognize.
type tokenSecretError struct {
	secret reference
}

func (e *tokenSecretError) Error() string {
	return fmt.Sprintf("%s has a token of a ServiceAccount: a preflight may not have an identity that the read-only guard does not recognize", e.secret)
}

// secretsOf returns the Secrets that the containers of a Job read, in the order of
// the manifest, each once.
func secretsOf(job *batchv1.Job) []reference {
	var secrets []reference
	spec := job.Spec.Template.Spec
	eachReference(&spec, func(kind string, name *string) {
		secret := reference{kind, job.Namespace, *name}
		if kind == secretKind && *name != "" && !slices.Contains(secrets, secret) {
			secrets = append(secrets, secret)
		}
	})
	return secrets
}

// namedSecrets returns the Secrets that rules allow an account to read by their names, in a
// namespace or, without one, in all.
func namedSecrets(namespace string, rules []rbacv1.PolicyRule) []reference {
	var secrets []reference
	reads := access.Verbs(access.Request{Resource: "secrets"}, "get", "list", "watch")
	for _, rule := range rules {
		if !slices.ContainsFunc(reads, func(read access.Request) bool { return covers(rule, read) }) {
			continue
		}
		for _, name := range rule.ResourceNames {
			secrets = append(secrets, reference{secretKind, namespace, name})
		}
	}
	return secrets
}

// secretsOf returns the Secrets that a check reads: in its containers, and with the
// permissions of its account.
func (p Plan) secretsOf(check Check) []reference {
	secrets := secretsOf(check.Job)
	for _, bound := range p.bound(accountOf(check)) {
		secrets = append(secrets, namedSecrets(bound.namespace, bound.rules)...)
	}
	return secrets
}

// typeOf is the request that reads the type of a Secret.
func typeOf(secret reference) access.Request {
	return access.Request{Verb: "list", Resource: "secrets", Namespace: secret.namespace, Name: secret.name}
}

// rejectToken returns a tokenSecretError for a Secret of that type. It reads no
// content of the Secret. No error is returned for a Secret that does not exist yet, or
// that the user may not list.
func rejectToken(ctx context.Context, client metadata.Interface, secret reference) error {
	var found *metav1.PartialObjectMetadataList
	err := retry.Do(ctx, func(ctx context.Context) (err error) {
		found, err = client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(secret.namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.Set{
				metav1.ObjectNameField: secret.name,
				"type":                 string(corev1.SecretTypeServiceAccountToken),
			}.String(),
			Limit: 1,
		})
		return err
	})
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("could not read the type of %s: %w", secret, err)
	case len(found.Items) > 0:
		return &tokenSecretError{secret: secret}
	}
	return nil
}

// SecretReads returns the requests by which the Rules of the account read Secrets of
// any name, sorted. The requests have no namespace.
func (a Account) SecretReads() []access.Request {
	var reads []access.Request
	for _, read := range access.Verbs(access.Request{Resource: "secrets"}, "get", "list", "watch") {
		if slices.ContainsFunc(a.Rules, func(rule rbacv1.PolicyRule) bool { return grants(rule, read) }) {
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
