package accountcopy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

// maxErrorLinesOfCopy bounds the lines of an error that has a line for each rule.
const maxErrorLinesOfCopy = 5

// maxCopiedRules bounds the rules of a copy. Those of cluster-admin are about one for each API group.
const maxCopiedRules = 1000

func build(c *jobplan.Copy, run jobplan.Run, account *corev1.ServiceAccount, grants []rights.Grant, api rights.API) {
	c.Objects = []payload.Object{&corev1.ServiceAccount{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: run.Meta(c.Original.Namespace, run.Suffixed(c.Original.Name)),
		ImagePullSecrets: account.ImagePullSecrets, AutomountServiceAccountToken: account.AutomountServiceAccountToken,
	}}
	count := 0
	for _, grant := range grants {
		reading := confine(run, grant.Namespace, api.Reads(grant.Rules))
		c.Omitted = append(c.Omitted, reading.Omitted...)
		if grant.Namespace != "" { // paths are granted in the whole cluster only
			reading.Rules = slices.DeleteFunc(reading.Rules, func(rule rbacv1.PolicyRule) bool { return len(rule.NonResourceURLs) > 0 })
		}
		count += len(reading.Rules)
		if len(reading.Rules) > 0 {
			c.Objects = append(c.Objects, roleOfCopy(run, c.Original, grant.Namespace, reading.Rules)...)
		}
	}
	slices.Sort(c.Omitted)
	c.Omitted = slices.Compact(c.Omitted)
	if count > maxCopiedRules {
		c.Objects, c.Failed = nil, &Error{Account: c.Original, Err: fmt.Errorf("its read access has %d rules, more than %d", count, maxCopiedRules)}
	}
}

// What the copy in a run that is confined to one namespace lacks.
const (
	omittedOutside = "access outside of the namespace"
	omittedSecrets = "Secrets"
)

// confine is what a run may read of a grant in a namespace. A run in the management cluster of a hosted
// cluster reads in the namespace of the control plane only, and no Secret there.
func confine(run jobplan.Run, namespace string, reading rights.Reading) rights.Reading {
	switch {
	case run.Namespace == "" || len(reading.Rules) == 0:
		return reading
	case namespace != run.Namespace:
		return rights.Reading{Omitted: []string{omittedOutside}}
	}
	var rules []rbacv1.PolicyRule
	for _, rule := range reading.Rules {
		if slices.Contains(rule.APIGroups, "") && slices.Contains(rule.Resources, "secrets") {
			reading.Omitted = append(reading.Omitted, omittedSecrets)
			rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(resource string) bool { return resource == "secrets" })
		}
		if len(rule.Resources) > 0 || len(rule.NonResourceURLs) > 0 {
			rules = append(rules, rule)
		}
	}
	reading.Rules = rules
	return reading
}

// roleOfCopy is a role with its binding to the copy, in a namespace or in the whole cluster.
func roleOfCopy(run jobplan.Run, original inventory.Reference, namespace string, rules []rbacv1.PolicyRule) []payload.Object {
	// A namespace has no dot, so the name is unique.
	meta := run.Meta(namespace, run.Suffixed("preflight-copy."+original.Namespace+"."+original.Name))
	refer := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: original.Namespace, Name: run.Suffixed(original.Name)}}
	if namespace == "" {
		return []payload.Object{
			&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}, ObjectMeta: meta, Rules: rules},
			&rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"}, ObjectMeta: meta, Subjects: subjects, RoleRef: refer},
		}
	}
	refer.Kind = "Role"
	return []payload.Object{
		&rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: meta, Subjects: subjects, RoleRef: refer},
	}
}

// Error means that a ServiceAccount cannot be copied.
type Error struct {
	Account inventory.Reference
	Err     error
}

func (e *Error) Error() string {
	return fmt.Sprintf("no temporary copy of %s can be created: %s", e.Account, words.FirstLines(e.Err.Error(), maxErrorLinesOfCopy))
}

func (e *Error) Unwrap() error { return e.Err }
