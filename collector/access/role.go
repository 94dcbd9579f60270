package access

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/words"
)

// Roles are the objects that grant these needs and nothing else: a ClusterRole and a
// Role for each namespace, all with this name, and their bindings to the subjects if
// there are any. Equal needs make equal objects.
func (n Needs) Roles(name string, subjects []rbacv1.Subject) []runtime.Object {
	requests, given := map[string][]Request{}, map[string][]rbacv1.PolicyRule{}
	for _, request := range Essential(slices.Concat(n.Required, n.Optional)) {
		requests[request.Namespace] = append(requests[request.Namespace], request)
	}
	for _, each := range n.Given {
		given[each.Namespace] = append(given[each.Namespace], each.Rule)
	}
	namespaces := slices.Sorted(maps.Keys(requests))
	namespaces = slices.AppendSeq(namespaces, maps.Keys(given))
	slices.Sort(namespaces)
	var objects []runtime.Object
	for _, namespace := range slices.Compact(namespaces) {
		rules := DistinctRules(append(merge(requests[namespace]), given[namespace]...))
		meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
		if namespace == "" {
			objects = append(objects, clusterRole(meta, rules, subjects)...)
			continue
		}
		objects = append(objects, role(meta, rules, subjects)...)
	}
	return objects
}

func clusterRole(meta metav1.ObjectMeta, rules []rbacv1.PolicyRule, subjects []rbacv1.Subject) []runtime.Object {
	objects := []runtime.Object{&rbacv1.ClusterRole{TypeMeta: typeMeta("ClusterRole"), ObjectMeta: meta, Rules: rules}}
	if len(subjects) > 0 {
		objects = append(objects, &rbacv1.ClusterRoleBinding{
			TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: meta, Subjects: subjects, RoleRef: refer("ClusterRole", meta.Name),
		})
	}
	return objects
}

func role(meta metav1.ObjectMeta, rules []rbacv1.PolicyRule, subjects []rbacv1.Subject) []runtime.Object {
	objects := []runtime.Object{&rbacv1.Role{TypeMeta: typeMeta("Role"), ObjectMeta: meta, Rules: rules}}
	if len(subjects) > 0 {
		objects = append(objects, &rbacv1.RoleBinding{
			TypeMeta: typeMeta("RoleBinding"), ObjectMeta: meta, Subjects: subjects, RoleRef: refer("Role", meta.Name),
		})
	}
	return objects
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func refer(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

// merge makes rules of requests: one for each named object, and one for the resources
// of an API group with the same verbs.
func merge(requests []Request) []rbacv1.PolicyRule {
	type target struct{ group, resource, name string }
	verbs := map[target][]string{}
	for _, request := range requests {
		key := target{request.Group, ResourceOf(request), request.Name}
		verbs[key] = append(verbs[key], request.Verb)
	}
	var rules []rbacv1.PolicyRule
	for _, key := range slices.SortedFunc(maps.Keys(verbs), func(a, b target) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.resource, b.resource), strings.Compare(a.name, b.name))
	}) {
		rule := rbacv1.PolicyRule{APIGroups: []string{key.group}, Resources: []string{key.resource}, Verbs: verbs[key]}
		if key.name != "" {
			rule.ResourceNames = []string{key.name}
		}
		rules = add(rules, rule)
	}
	return rules
}

// add adds the resource of a rule to a rule that is otherwise equal, if there is one, and otherwise the rule. Groups of
// which all resources are named are added to one rule.
func add(rules []rbacv1.PolicyRule, rule rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for i := range rules {
		if all := []string{All}; slices.Equal(rules[i].Resources, all) && slices.Equal(rule.Resources, all) && slices.Equal(rules[i].Verbs, rule.Verbs) {
			rules[i].APIGroups = append(rules[i].APIGroups, rule.APIGroups...)
			return rules
		}
		same := slices.Equal(rules[i].APIGroups, rule.APIGroups) && slices.Equal(rules[i].Verbs, rule.Verbs) &&
			slices.Equal(rules[i].ResourceNames, rule.ResourceNames)
		if same {
			rules[i].Resources = append(rules[i].Resources, rule.Resources...)
			return rules
		}
	}
	return append(rules, rule)
}

// DistinctRules drops duplicate rules.
func DistinctRules(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var kept []rbacv1.PolicyRule
	for _, rule := range rules {
		if !slices.ContainsFunc(kept, func(other rbacv1.PolicyRule) bool { return reflect.DeepEqual(rule, other) }) {
			kept = append(kept, rule)
		}
	}
	return kept
}

// Anonymous is the user of a request without credentials.
const Anonymous = "system:anonymous"

// maxUser bounds the name of a user, in bytes.
const maxUser = 512

// User is the name that the API server gives to the user of a client, such as
// "system:serviceaccount:NAMESPACE:NAME"; empty where it states none. Releases before 4.15 serve no
// SelfSubjectReview, and state it as the User "~" of OpenShift.
func User(ctx context.Context, client kubernetes.Interface) string {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case err == nil:
		return printable(review.Status.UserInfo.Username)
	case apierrors.IsNotFound(err):
		return openShiftUser(ctx, client)
	}
	return Refused(err)
}

func openShiftUser(ctx context.Context, client kubernetes.Interface) string {
	text, err := client.AuthenticationV1().RESTClient().Get().AbsPath("/apis/user.openshift.io/v1/users/~").DoRaw(ctx)
	if err != nil {
		return Refused(err)
	}
	var user metav1.PartialObjectMetadata
	if json.Unmarshal(text, &user) != nil {
		return ""
	}
	return printable(user.Name)
}

var refusal = regexp.MustCompile(`is forbidden: User "([^"]+)" cannot `)

// Refused is the user whose request an API server refused, by the text of the error; empty for another error.
func Refused(err error) string {
	if !apierrors.IsForbidden(err) {
		return ""
	}
	match := refusal.FindStringSubmatch(err.Error())
	if match == nil {
		return ""
	}
	return printable(match[1])
}

// printable is a name that may be printed as it is; empty for another one, which a command would
// bind roles to under another name.
func printable(name string) string {
	if len(name) > maxUser || words.Line(name, maxUser) != name {
		return ""
	}
	return name
}

// Subject is a user as the subject of a binding, as "user:NAME" or "serviceaccount:NAMESPACE:NAME". It is empty
// for a user who is unknown or has no credentials: what is bound to that one is bound to all users.
func Subject(user string) string {
	account, isAccount := strings.CutPrefix(user, "system:serviceaccount:")
	switch {
	case user == "", user == Anonymous:
		return ""
	case isAccount && strings.Count(account, ":") == 1:
		return "serviceaccount:" + account
	}
	return "user:" + user
}
