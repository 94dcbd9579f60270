package rights

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster/retry"
)

// GroupRights lists the permissions of every ServiceAccount of a namespace as a member of its groups: the accounts
// of the namespace, all accounts, and all authenticated users; and as system:anonymous, which it is without its
// token.
type GroupRights struct {
	Namespace string
	// Writes are the write requests that RBAC allows, sorted, without the requests that OpenShift allows every user.
	Writes []access.Request
	// Unguarded are the write requests that Unguarded returns, and requests without a token, that an access review,
	// with all authorizers of the API server, allows; sorted, without the same defaults.
	Unguarded []access.Request
	// Secrets are the requests that read Secrets of any name, sorted.
	Secrets []access.Request
	// Roles counts the roles that are bound to the groups.
	Roles int
	// Unserved are the versions of APIs whose resources the API server could not list, so
	// that Writes lacks them; sorted.
	Unserved []string
}

// GroupsNeeds are the requests of Groups and AggregatedGroups to the API server.
func GroupsNeeds() []access.Request {
	return append(GrantsNeeds(),
		access.Request{Verb: "create", Group: authorizationv1.GroupName, Resource: "subjectaccessreviews"},
		access.Request{Verb: "list", Group: registrationGroup, Resource: "apiservices"})
}

// maxGroupBindings bounds the bindings for the groups of one namespace.
const maxGroupBindings = 5000

// Groups finds out what every ServiceAccount of these namespaces may do: by the roles of
// its groups the write requests of Writes, and reading Secrets; and by access reviews
// what Unguarded returns, where AggregatedGroups returns the aggregated API groups.
// The result is sorted by namespace. At most sixteen reviews run concurrently. More than
// 5000 bindings for the groups of one namespace are an error.
func Groups(ctx context.Context, client kubernetes.Interface, namespaces, aggregated []string) ([]GroupRights, error) {
	audits, unserved, err := groupAudits(ctx, client, namespaces)
	if err != nil {
		return nil, err
	}
	var all []GroupRights
	for _, a := range audits {
		unguarded, err := a.review(ctx, client.AuthorizationV1(), Unguarded(a.requests, aggregated))
		if err != nil {
			return nil, err
		}
		unguarded = slices.DeleteFunc(unguarded, isDefault)
		writes, readable := slices.DeleteFunc(a.granted.writes(a.requests), isDefault), a.granted.allowed(a.secretReads())
		for _, namespace := range append([]string{a.namespace}, a.same...) {
			all = append(all, GroupRights{
				Namespace: namespace, Writes: a.in(namespace, writes), Unguarded: a.in(namespace, unguarded), Secrets: a.in(namespace, readable),
				Roles: a.roles, Unserved: unserved,
			})
		}
	}
	slices.SortFunc(all, func(a, b GroupRights) int { return strings.Compare(a.Namespace, b.Namespace) })
	return all, nil
}

// unknownAccount is the name of a ServiceAccount that does not exist.
const unknownAccount = "preflight-unknown"

// groupAudit is the audit of the accounts of a namespace by their groups.
type groupAudit struct {
	namespace string
	// roles counts the roles that are bound to the groups; granted contains their rules that allow more than reading
	// objects other than Secrets.
	roles   int
	granted permissions
	// anonymous has the roles of users without a token.
	anonymous permissions
	// requests are the write requests in the namespace, in those to which granted refers,
	// and in the whole cluster, and those for the objects and with the verbs that granted names.
	requests []access.Request
	// same are the further namespaces in which no binding is for these groups alone, so
	// that the result is the same.
	same []string
}

// in are requests of the audit, for the accounts of another namespace in their own.
func (a groupAudit) in(namespace string, requests []access.Request) []access.Request {
	requests = slices.Clone(requests)
	for i := range requests {
		if requests[i].Namespace == a.namespace {
			requests[i].Namespace = namespace
		}
	}
	return requests
}

// groupAudits are the audits of each namespace, and the versions whose resources the API
// server could not list. There are hundreds of requests in one audit, so namespaces
// without bindings for their groups share one.
func groupAudits(ctx context.Context, client kubernetes.Interface, namespaces []string) ([]*groupAudit, []string, error) {
	if len(namespaces) == 0 {
		return nil, nil, nil
	}
	lists, unserved, err := served(ctx, client.Discovery())
	if err != nil {
		return nil, nil, err
	}
	bound, err := readGroupBindings(ctx, client.RbacV1())
	if err != nil {
		return nil, nil, err
	}
	read := newRoleReader(client.RbacV1(), maxGroupBindings)
	withoutToken, err := read.permissions(ctx, "users without a token", bound.anonymous)
	if err != nil {
		return nil, nil, err
	}
	withoutToken = withoutToken.beyondReading()
	var audits []*groupAudit
	var shared *groupAudit
	for _, namespace := range namespaces {
		if shared != nil && !bound.distinct(namespace) {
			shared.same = append(shared.same, namespace)
			continue
		}
		roles := bound.roles(namespace)
		granted, err := read.permissions(ctx, "the groups of the ServiceAccounts of namespace "+namespace, roles)
		if err != nil {
			return nil, nil, err
		}
		granted = granted.beyondReading()
		requests := append(requestsOf(lists, granted.namespaces(namespace)), granted.requests()...)
		each := &groupAudit{namespace: namespace, roles: len(roles), granted: granted, anonymous: withoutToken, requests: requests}
		audits = append(audits, each)
		if !bound.distinct(namespace) {
			shared = each
		}
	}
	return audits, unserved, nil
}

// groupBindings are the roles that are bound to the groups of ServiceAccounts.
type groupBindings struct {
	// accountsOf has the roles of the group of the accounts of a namespace.
	accountsOf map[string][]boundRole
	// everyAccount has the roles of all accounts and of all users, including users without a token; anonymous has only
	// the roles of users without a token.
	everyAccount, anonymous []boundRole
}

func readGroupBindings(ctx context.Context, client rbacv1client.RbacV1Interface) (groupBindings, error) {
	var bound groupBindings
	note := func(namespace string, subjects []rbacv1.Subject, role rbacv1.RoleRef) {
		for _, subject := range subjects {
			of, isGroup := strings.CutPrefix(subject.Name, "system:serviceaccounts:")
			is := boundRole{in: namespace, kind: role.Kind, name: role.Name}
			switch {
			case isAnonymous(subject):
				bound.everyAccount, bound.anonymous = append(bound.everyAccount, is), append(bound.anonymous, is)
			case subject.Kind != rbacv1.GroupKind:
			case isGroup:
				bound.accountsOf[of] = append(bound.accountsOf[of], is)
			case slices.Contains([]string{"system:serviceaccounts", "system:authenticated"}, subject.Name):
				bound.everyAccount = append(bound.everyAccount, is)
			}
		}
	}
	err := retry.Do(ctx, func(ctx context.Context) error {
		bound = groupBindings{accountsOf: map[string][]boundRole{}}
		return eachBinding(ctx, client, note)
	})
	return bound, err
}

// isAnonymous is true for the user without a token, and its group.
func isAnonymous(subject rbacv1.Subject) bool {
	return subject.Kind == rbacv1.UserKind && subject.Name == anonymous().name ||
		subject.Kind == rbacv1.GroupKind && slices.Contains(anonymous().groups, subject.Name)
}

// distinct is true for a namespace whose accounts may have other permissions by their groups than the accounts of
// other namespaces, or whose objects are open to all accounts.
func (b groupBindings) distinct(namespace string) bool {
	return len(b.accountsOf[namespace]) > 0 || slices.ContainsFunc(b.everyAccount, func(role boundRole) bool { return role.in == namespace })
}

// roles are the roles of the groups of the accounts of a namespace, sorted, without duplicates.
func (b groupBindings) roles(namespace string) []boundRole {
	roles := slices.Concat(b.accountsOf[namespace], b.everyAccount)
	slices.SortFunc(roles, compareBoundRoles)
	return slices.Compact(roles)
}

func (a groupAudit) secretReads() []access.Request {
	var reads []access.Request
	for _, namespace := range append([]string{""}, a.granted.namespaces(a.namespace)...) {
		reads = append(reads, access.Verbs(access.Request{Resource: secrets, Namespace: namespace}, "get", "list", "watch")...)
	}
	return reads
}

// review returns the requests that the API server allows a nonexistent account of the namespace, and all writes
// that it allows a user without a token: the guard identifies a check by its token.
func (a groupAudit) review(ctx context.Context, client authorizationv1client.SubjectAccessReviewsGetter,
	requests []access.Request,
) ([]access.Request, error) {
	allowed, err := reviewWidest(ctx, client, accountSubject(types.NamespacedName{Namespace: a.namespace, Name: unknownAccount}), requests)
	if err != nil || len(a.anonymous) == 0 {
		return allowed, err
	}
	withoutToken, err := reviewWidest(ctx, client, anonymous(), a.anonymous.writes(a.requests))
	return access.Essential(append(allowed, withoutToken...)), err
}

// reviewWidest returns the requests that the API server allows a subject, as
// permissions.writes does: it reviews the widest request first, then the requests, and of the
// allowed ones whether they are allowed in all namespaces.
func reviewWidest(ctx context.Context, client authorizationv1client.SubjectAccessReviewsGetter, of subject,
	requests []access.Request,
) ([]access.Request, error) {
	if all, err := review(ctx, client, of, []access.Request{access.Everything()}); len(all) > 0 || err != nil {
		return all, err
	}
	inNamespaces, err := review(ctx, client, of, requests)
	if err != nil {
		return nil, err
	}
	var wider []access.Request
	for _, request := range inNamespaces {
		request.Namespace = ""
		wider = append(wider, request)
	}
	everywhere, err := review(ctx, client, of, wider)
	if err != nil {
		return nil, err
	}
	return access.Essential(slices.Concat(inNamespaces, everywhere)), nil
}

// isDefault is true for the write requests that OpenShift allows every authenticated
// user: webhooks of builds, which require the secret of the build, the deletion of OAuth
// tokens by their name, which is a hash of the token, requests for projects, and the
// restriction of one's own requests to a scope, which is no permission to be another user.
func isDefault(request access.Request) bool {
	switch request.Group {
	case "authentication.k8s.io":
		return request.Verb == "impersonate" && request.Resource == "userextras" && request.Subresource == "scopes.authorization.openshift.io"
	case "build.openshift.io":
		return request.Verb == "create" && request.Resource == "buildconfigs" && request.Subresource == "webhooks"
	case "oauth.openshift.io":
		return request.Verb == "delete" && slices.Contains([]string{"oauthaccesstokens", "oauthauthorizetokens"}, request.Resource)
	case "project.openshift.io":
		return request.Verb == "create" && request.Resource == "projectrequests"
	}
	return false
}

// maxReviews bounds the concurrent reviews.
const maxReviews = 16

const (
	registrationGroup = "apiregistration.k8s.io"
	// maxAPIServices bounds the APIServices of one request.
	maxAPIServices = 5000
)

// Unguarded returns the write requests that no admission policy of the API server can deny: requests with verbs of
// an authorizer alone, such as impersonation, after which the policy receives the impersonated user; changes of
// the admission configuration, which Kubernetes exempts from policies; connections to kubelets, which have no
// admission; writes to these aggregated API groups, whose servers have their own admission; and the permission to
// grant any of them. An asterisk in a request is a wildcard.
func Unguarded(writes []access.Request, aggregated []string) []access.Request {
	var unguarded []access.Request
	for _, request := range writes {
		if isUnguarded(request, aggregated) {
			unguarded = append(unguarded, request)
		}
	}
	return unguarded
}

func isUnguarded(request access.Request, aggregated []string) bool {
	is := func(value string, wanted ...string) bool { return value == "*" || slices.Contains(wanted, value) }
	switch {
	case request.Verb == "*" || !slices.Contains(admitted(), request.Verb):
		return true
	case is(request.Group, "admissionregistration.k8s.io"), is(request.Group, aggregated...):
		return true
	case is(request.Group, "") && is(request.Resource, "nodes"):
		return is(request.Subresource, "proxy", "checkpoint") || request.Resource == "*"
	}
	return false
}

// admitted are the verbs of the requests that admission sees, besides those that only read.
// Others are known to an authorizer only: bind, escalate, impersonate, and since Kubernetes
// 1.35 the verbs of constrained impersonation, such as impersonate:user-info.
func admitted() []string {
	return []string{"create", "update", "patch", "delete", "deletecollection", "get", "list", "watch"}
}

type subject struct {
	name   string
	groups []string
}

func accountSubject(account types.NamespacedName) subject {
	return subject{User(account), []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"}}
}

// anonymous is the user of a request without a token.
func anonymous() subject { return subject{"system:anonymous", []string{"system:unauthenticated"}} }

func review(ctx context.Context, client authorizationv1client.SubjectAccessReviewsGetter, of subject,
	requests []access.Request,
) ([]access.Request, error) {
	allowed := make([]bool, len(requests))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxReviews)
	for i := range requests {
		group.Go(func() error {
			reviewed, err := retry.Get(ctx, func(ctx context.Context) (*authorizationv1.SubjectAccessReview, error) {
				return client.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
					Spec: authorizationv1.SubjectAccessReviewSpec{
						User:               of.name,
						Groups:             of.groups,
						ResourceAttributes: &requests[i],
					},
				}, metav1.CreateOptions{})
			})
			if err != nil {
				return fmt.Errorf("could not review the permissions of %s: %w", of.name, err)
			}
			allowed[i] = reviewed.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var granted []access.Request
	for i, request := range requests {
		if allowed[i] {
			granted = append(granted, request)
		}
	}
	return granted, nil
}

// AggregatedGroups reads the API groups that other servers serve, sorted.
func AggregatedGroups(ctx context.Context, client rest.Interface) ([]string, error) {
	body, err := retry.Get(ctx, func(ctx context.Context) ([]byte, error) {
		return client.Get().AbsPath("/apis/"+registrationGroup+"/v1/apiservices").
			VersionedParams(&metav1.ListOptions{Limit: maxAPIServices}, metav1.ParameterCodec).
			SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	})
	if err != nil {
		return nil, fmt.Errorf("could not list APIServices: %w", err)
	}
	var services struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []struct {
			Spec struct {
				Group   string    `json:"group"`
				Service *struct{} `json:"service"`
			} `json:"spec"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &services); err != nil {
		return nil, fmt.Errorf("could not parse the list of APIServices: %w", err)
	}
	if services.Metadata.Continue != "" {
		return nil, fmt.Errorf("the API server has more than %d APIServices", maxAPIServices)
	}
	var groups []string
	for _, item := range services.Items {
		if item.Spec.Service != nil {
			groups = append(groups, item.Spec.Group)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}
