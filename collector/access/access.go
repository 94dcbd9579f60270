// Package access answers: which requests does a command make, may the user make them, and which roles allow them?
//
// Code that makes requests declares them as [Needs]. [Needs.Check] reviews the user before a command starts, so
// that all missing permissions are reported at once, and [Needs.Roles] returns the roles that grant exactly what a
// command needs: both use the same declaration.
package access

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/words"
)

// Request is one kind of request to the API server. Without a namespace it concerns
// all namespaces, without a name all objects.
type Request = authorizationv1.ResourceAttributes

// Describe is a request in words: "list pods in namespace x".
func Describe(request Request) string {
	if request == Everything() {
		return "do everything"
	}
	text := request.Verb + " " + ResourceOf(request)
	if request.Group != "" {
		text += "." + request.Group
	}
	if request.Name != "" {
		text += " " + request.Name
	}
	if request.Namespace != "" {
		text += " in namespace " + request.Namespace
	}
	return text
}

// Summarize describes the first most resources of requests, each with all its verbs, and counts the others.
func Summarize(requests []Request, most int) string {
	var resources []Request
	verbs := map[Request][]string{}
	for _, request := range Essential(requests) {
		resource := request
		resource.Verb = ""
		if len(verbs[resource]) == 0 {
			resources = append(resources, resource)
		}
		verbs[resource] = append(verbs[resource], request.Verb)
	}
	var texts []string
	for _, resource := range resources {
		resource.Verb = strings.Join(verbs[resource], ", ")
		texts = append(texts, Describe(resource))
	}
	return words.Clauses(texts, most)
}

// Verbs are requests like one, with each of these verbs.
func Verbs(like Request, verbs ...string) []Request {
	requests := make([]Request, 0, len(verbs))
	for _, verb := range verbs {
		like.Verb = verb
		requests = append(requests, like)
	}
	return requests
}

// ResourceOf is the resource as in a role: "pods/log".
func ResourceOf(request Request) string {
	if request.Subresource == "" {
		return request.Resource
	}
	return fmt.Sprintf("%s/%s", request.Resource, request.Subresource)
}

// Everything is every request, which only an administrator of the cluster may make.
func Everything() Request {
	return Request{Verb: "*", Group: "*", Version: "*", Resource: "*"}
}

// Essential returns the requests, sorted, without duplicates and without requests that another one includes.
func Essential(requests []Request) []Request {
	kept := slices.Clone(requests)
	slices.SortFunc(kept, Compare)
	kept = slices.Compact(kept)
	return slices.DeleteFunc(kept, func(request Request) bool {
		return slices.ContainsFunc(requests, func(wider Request) bool { return wider != request && Includes(wider, request) })
	})
}

// All is every resource of a group, in a request.
const All = "*"

// Includes reports whether the permission for wider includes request.
func Includes(wider, request Request) bool {
	if wider.Resource == All && wider.Subresource == "" && request.Subresource == "" {
		wider.Resource = request.Resource
	}
	everywhere := wider.Namespace == "" || wider.Namespace == request.Namespace
	every := wider.Name == "" || wider.Name == request.Name
	wider.Namespace, wider.Name = request.Namespace, request.Name
	return everywhere && every && wider == request
}

// Compare orders requests by their namespaces, resources, names and verbs.
func Compare(a, b Request) int {
	return cmp.Or(
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource),
		strings.Compare(a.Subresource, b.Subresource), strings.Compare(a.Name, b.Name), strings.Compare(a.Verb, b.Verb),
	)
}

// Needs are the requests of a command to the API server, without the requests that every authenticated user may
// make: discovery, and reviews of the user's own permissions.
type Needs struct {
	// Required are requests without which the command does not start.
	Required []Request
	// Optional are requests without which the command continues, and reports it.
	Optional []Request
	// Given are permissions that the command grants to others. The API server lets a
	// user grant only permissions of their own.
	Given []Given
}

// Given is a rule of a role in a namespace or, without one, of a ClusterRole.
type Given struct {
	Namespace string
	Rule      rbacv1.PolicyRule
}

// And are the needs of both.
func (n Needs) And(more Needs) Needs {
	return Needs{
		Required: slices.Concat(n.Required, more.Required),
		Optional: slices.Concat(n.Optional, more.Optional),
		Given:    slices.Concat(n.Given, more.Given),
	}
}

// OnlyOptional are the optional requests that are not also required.
func (n Needs) OnlyOptional() []Request {
	return slices.DeleteFunc(slices.Clone(n.Optional), func(each Request) bool { return slices.Contains(n.Required, each) })
}

const (
	// maxConcurrent bounds the concurrent reviews.
	maxConcurrent = 16
	// reviewTimeout bounds the wait for an API server that is overloaded or restarts.
	reviewTimeout = 15 * time.Second
)

// Check reviews all required requests, and returns one error with all that the user
// may not make. An API server that cannot be reached within 15 seconds is another
// error.
func (n Needs) Check(ctx context.Context, reviews authorizationv1client.SelfSubjectAccessReviewsGetter) error {
	needed := Essential(n.Required)
	allowed := make([]bool, len(needed))
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrent)
	for i := range needed {
		group.Go(func() error {
			review := &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &needed[i]},
			}
			reviewed, err := retry.Get(ctx, func(ctx context.Context) (*authorizationv1.SelfSubjectAccessReview, error) {
				return reviews.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			})
			if err != nil {
				return fmt.Errorf("could not review the user's permissions: %w", err)
			}
			allowed[i] = reviewed.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var missing []string
	for i, request := range needed {
		if !allowed[i] {
			missing = append(missing, Describe(request))
		}
	}
	if len(missing) > 0 {
		return &MissingError{Missing: missing}
	}
	return nil
}

// MissingError is the error of a user who lacks permissions.
type MissingError struct {
	// Missing are all missing permissions, in the form of Describe.
	Missing []string
}

const maxMissing = 5

// Error implements error.
func (e *MissingError) Error() string {
	return "the user lacks " + words.Count(len(e.Missing), "permission") + " that a preflight requires: " + words.Clauses(e.Missing,
		maxMissing)
}

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
		if all := []string{All}; slices.Equal(rules[i].Resources, all) && slices.Equal(rule.Resources, all) &&
			slices.Equal(rules[i].Verbs, rule.Verbs) {
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

// User returns the name that the API server gives to the user of a client, such as
// "system:serviceaccount:NAMESPACE:NAME"; empty if it gives none. Releases before 4.15 serve no SelfSubjectReview,
// and return the name as the User "~" of OpenShift.
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

// Subject returns a user as the subject of a binding, as "user:NAME" or "serviceaccount:NAMESPACE:NAME". It is
// empty for an unknown user, or one without credentials: a role that is bound to that user is bound to all users.
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
