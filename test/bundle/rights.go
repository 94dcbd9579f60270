package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// Widened is a permission that the manifests grant in one namespace, and the bundle in all of them.
type Widened struct {
	// Namespace is that of the manifests; Role is the name of the Role there.
	Namespace, Role string
	// Permission is what the controller may do, for example "create secrets".
	Permission string
}

// rights are the permissions of a bundle.
type rights struct {
	// cluster and namespaced are the rules of the ServiceAccount, one list for each role.
	cluster, namespaced [][]rbacv1.PolicyRule
	// objects are the roles and bindings that stay objects of the bundle.
	objects []*unstructured.Unstructured
	widened []Widened
}

// assigner assigns roles and bindings.
type assigner struct {
	parts
	rights

	// bound are the roles that are rules of the ServiceAccount.
	bound map[*unstructured.Unstructured]bool
	// inOne are the rules of the Roles of other namespaces, in the order of their bindings.
	inOne []foreign
}

// foreign are the rules of a Role of another namespace than that of the operator.
type foreign struct {
	role  *unstructured.Unstructured
	rules []rbacv1.PolicyRule
}

// assign decides what becomes of the roles and bindings, by one rule: OLM grants the ServiceAccount of the operator rules
// in the namespace of the operator, or in all namespaces, and in no other single one. What is bound to another subject, or
// to a role that the manifests do not have, is an object of the bundle where OLM can create it there.
func assign(p parts) (rights, error) {
	a := assigner{parts: p, bound: map[*unstructured.Unstructured]bool{}}
	var failures []error
	for _, binding := range p.bindings {
		failures = append(failures, a.bind(binding))
	}
	for _, role := range p.roles {
		if !a.bound[role] {
			failures = append(failures, a.keep(role))
		}
	}
	if err := errors.Join(failures...); err != nil {
		return rights{}, err
	}
	a.widen()
	return a.rights, nil
}

// bind assigns a binding with its role.
func (a *assigner) bind(object *unstructured.Unstructured) error {
	var binding rbacv1.RoleBinding // the fields of a ClusterRoleBinding are the same
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding); err != nil {
		return fmt.Errorf("%s: %w", named(object), err)
	}
	own := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace.GetName(), Name: a.account}
	if !slices.Contains(binding.Subjects, own) {
		return a.keep(object)
	}
	if len(binding.Subjects) > 1 {
		return fmt.Errorf("%s has other subjects beside the ServiceAccount of the controller: make two of it", named(object))
	}
	role := a.role(binding)
	if role == nil {
		return a.keep(object)
	}
	var content rbacv1.ClusterRole // the fields of a Role are the same, but for aggregationRule
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &content); err != nil {
		return fmt.Errorf("%s: %w", named(role), err)
	}
	if content.AggregationRule != nil {
		return fmt.Errorf("%s is aggregated, and has rules only in a cluster", named(role))
	}
	a.bound[role] = true
	switch object.GetNamespace() {
	case "":
		a.cluster = append(a.cluster, content.Rules)
	case a.namespace.GetName():
		a.namespaced = append(a.namespaced, content.Rules)
	default:
		a.inOne = append(a.inOne, foreign{role: object, rules: content.Rules})
	}
	return nil
}

// role returns the role of a binding; nil if the manifests do not have it.
func (a *assigner) role(binding rbacv1.RoleBinding) *unstructured.Unstructured {
	namespace := ""
	if binding.RoleRef.Kind == "Role" {
		namespace = binding.Namespace
	}
	at := slices.IndexFunc(a.roles, func(role *unstructured.Unstructured) bool {
		return role.GetKind() == binding.RoleRef.Kind && role.GetName() == binding.RoleRef.Name && role.GetNamespace() == namespace
	})
	if at < 0 {
		return nil
	}
	return a.roles[at]
}

// keep keeps a role or a binding as an object of the bundle.
func (a *assigner) keep(object *unstructured.Unstructured) error {
	if object.GetNamespace() != "" && object.GetNamespace() != a.namespace.GetName() {
		return fmt.Errorf("a bundle cannot carry %s: OLM creates no role and no binding in this namespace, and the rules for the "+
			"ServiceAccount are not known: bind a Role of the manifests", named(object))
	}
	a.objects = append(a.objects, object)
	return nil
}

// widen grants the rules of other namespaces in all of them, and records those that this adds.
func (a *assigner) widen() {
	everywhere := slices.Concat(a.cluster...)
	for _, each := range a.inOne {
		a.cluster = append(a.cluster, each.rules)
		_, missing := validation.Covers(everywhere, each.rules)
		for _, permission := range permissions(missing) {
			a.widened = append(a.widened, Widened{Namespace: each.role.GetNamespace(), Role: each.role.GetName(), Permission: permission})
		}
	}
	a.cluster = distinct(a.cluster)
	a.namespaced = distinct(a.namespaced)
}

// distinct removes equal lists: OLM derives the names of its roles from the rules.
func distinct(all [][]rbacv1.PolicyRule) [][]rbacv1.PolicyRule {
	var found [][]rbacv1.PolicyRule
	for _, rules := range all {
		if !slices.ContainsFunc(found, func(other []rbacv1.PolicyRule) bool { return fmt.Sprint(other) == fmt.Sprint(rules) }) {
			found = append(found, rules)
		}
	}
	return found
}

// permissions are atomic rules as texts, those of one resource in one text.
func permissions(rules []rbacv1.PolicyRule) []string {
	var resources []string
	verbs := map[string][]string{}
	for _, rule := range rules {
		resource := strings.Join(slices.Concat(rule.Resources, rule.NonResourceURLs), ",")
		if group := strings.Join(rule.APIGroups, ","); group != "" {
			resource += "." + group
		}
		if names := strings.Join(rule.ResourceNames, ","); names != "" {
			resource += " " + names
		}
		if verbs[resource] == nil {
			resources = append(resources, resource)
		}
		verbs[resource] = append(verbs[resource], rule.Verbs...)
	}
	var texts []string
	for _, resource := range resources {
		texts = append(texts, strings.Join(verbs[resource], ", ")+" "+resource)
	}
	slices.SortFunc(texts, cmp.Compare[string])
	return texts
}

// entries are the rules as entries of an install strategy.
func (p *parts) entries(all [][]rbacv1.PolicyRule) []any {
	var entries []any
	for _, rules := range all {
		entries = append(entries, map[string]any{"serviceAccountName": p.account, "rules": rules})
	}
	return entries
}
