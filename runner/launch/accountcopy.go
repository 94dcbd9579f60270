package launch

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/runner/payload"
)

// ReasonAccountNotCopied is reported for a check that is to run as an existing
// ServiceAccount, of which no temporary copy can be created. A check never runs as an
// existing ServiceAccount, which may have write access.
//
// Cause: the user may not create roles, or does not have the read access of the
// ServiceAccount, and Kubernetes allows no user to grant permissions that it does not
// have; or the ServiceAccount has too many rules.
//
// Remedy: run the preflight as a user with the permissions that the message names, or
// accept the finding.
const ReasonAccountNotCopied finding.Reason = "AccountNotCopied"

// maxCopiedRules bounds the rules of a copy. Those of cluster-admin are about one
// for each API group.
const maxCopiedRules = 1000

// accountCopy is a temporary copy of a ServiceAccount that is not of the release.
type accountCopy struct {
	// original is the ServiceAccount of the cluster.
	original reference
	// objects are the copy, its roles and their bindings.
	objects []payload.Object
	// omitted describes read access of the original that the copy lacks.
	omitted []string
	// unread is the error for which the copy has no permissions: those of the original
	// may not be read.
	unread error
	// failed is the error for which there is no copy.
	failed error
}

// explain returns the error of the API server for an object, as a notCopiedError if the
// object is one of the copy that the user may not create.
func (c accountCopy) explain(object reference, err error) error {
	ofCopy := slices.ContainsFunc(c.objects, func(each payload.Object) bool { return referenceTo(each) == object })
	if !ofCopy || !apierrors.IsForbidden(err) {
		return err
	}
	return &notCopiedError{account: c.original, err: err}
}

// build makes the objects of the copy.
func (c *accountCopy) build(run Run, account *corev1.ServiceAccount, grants []rights.Grant, api rights.API) {
	c.objects = []payload.Object{&corev1.ServiceAccount{
		TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: run.meta(c.original.namespace, run.suffixed(c.original.name)),
		ImagePullSecrets: account.ImagePullSecrets, AutomountServiceAccountToken: account.AutomountServiceAccountToken,
	}}
	count := 0
	for _, grant := range grants {
		reading := api.Reads(grant.Rules)
		c.omitted = append(c.omitted, reading.Omitted...)
		if grant.Namespace != "" { // paths are granted in the whole cluster only
			reading.Rules = slices.DeleteFunc(reading.Rules, func(rule rbacv1.PolicyRule) bool { return len(rule.NonResourceURLs) > 0 })
		}
		count += len(reading.Rules)
		if len(reading.Rules) > 0 {
			c.objects = append(c.objects, c.role(run, grant.Namespace, reading.Rules)...)
		}
	}
	slices.Sort(c.omitted)
	c.omitted = slices.Compact(c.omitted)
	if count > maxCopiedRules {
		c.objects, c.failed = nil, &notCopiedError{account: c.original, err: fmt.Errorf("its read access has %d rules, more than %d", count, maxCopiedRules)}
	}
}

// role is a role with its binding to the copy, in a namespace or in the whole cluster.
func (c *accountCopy) role(run Run, namespace string, rules []rbacv1.PolicyRule) []payload.Object {
	// A namespace has no dot, so the name is unique.
	meta := run.meta(namespace, run.suffixed("preflight-copy."+c.original.namespace+"."+c.original.name))
	refer := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.original.namespace, Name: run.suffixed(c.original.name)}}
	if namespace == "" {
		return []payload.Object{
			&rbacv1.ClusterRole{TypeMeta: typeMeta(rbacVersion, "ClusterRole"), ObjectMeta: meta, Rules: rules},
			&rbacv1.ClusterRoleBinding{TypeMeta: typeMeta(rbacVersion, "ClusterRoleBinding"), ObjectMeta: meta, Subjects: subjects, RoleRef: refer},
		}
	}
	refer.Kind = "Role"
	return []payload.Object{
		&rbacv1.Role{TypeMeta: typeMeta(rbacVersion, "Role"), ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{TypeMeta: typeMeta(rbacVersion, "RoleBinding"), ObjectMeta: meta, Subjects: subjects, RoleRef: refer},
	}
}

// notCopiedError means that a ServiceAccount cannot be copied.
type notCopiedError struct {
	account reference
	err     error
}

func (e *notCopiedError) Error() string {
	return fmt.Sprintf("no temporary copy of %s can be created: %s", e.account, firstLines(e.err.Error()))
}

func (e *notCopiedError) Unwrap() error { return e.err }
