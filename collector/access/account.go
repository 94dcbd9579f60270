package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/retry"
)

// Rights are the write permissions of one ServiceAccount.
type Rights struct {
	// Account is its name.
	Account types.NamespacedName
	// Writes are the write requests that it may make, and that an unknown
	// ServiceAccount may not; sorted. A request that connects to running pods or nodes,
	// or impersonates, is a write request.
	Writes []Request
	// Asked counts the access reviews.
	Asked int
	// Unserved are the versions of APIs without a review, because the API server could
	// not list their resources; sorted.
	Unserved []string
}

// WritesNeeds are the requests of Writes to the API server.
func WritesNeeds() []Request {
	return []Request{
		{Verb: "create", Group: authorizationv1.GroupName, Resource: "subjectaccessreviews"},
		{Verb: "list", Group: rbacv1.GroupName, Resource: "rolebindings"},
		{Verb: "list", Group: rbacv1.GroupName, Resource: "clusterrolebindings"},
	}
}

// User is the name of a ServiceAccount as a user of the API server.
func User(account types.NamespacedName) string {
	return "system:serviceaccount:" + account.Namespace + ":" + account.Name
}

// Writes reviews which write requests ServiceAccounts may make: every write verb of
// every resource, in the account's own namespace, in those with a RoleBinding for it,
// and in the whole cluster. The accounts need not exist. At most sixteen reviews run
// concurrently. An error means that a review could not be made.
func Writes(ctx context.Context, client kubernetes.Interface, accounts []types.NamespacedName) ([]Rights, error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	lists, unserved, err := served(client.Discovery())
	if err != nil {
		return nil, err
	}
	namespaces, err := boundNamespaces(ctx, client, accounts)
	if err != nil {
		return nil, err
	}
	var all []Rights
	for _, account := range accounts {
		a := audit{client: client, account: account, lists: lists, namespaces: namespaces[account]}
		writes, err := a.writes(ctx, a.requests())
		if err == nil {
			writes, err = a.withoutDefaults(ctx, writes)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, Rights{Account: account, Writes: writes, Asked: a.reviews, Unserved: unserved})
	}
	return all, nil
}

// served are the resources of all APIs, and the versions whose resources the API
// server could not list.
func served(api discovery.ServerResourcesInterface) ([]*metav1.APIResourceList, []string, error) {
	_, lists, err := api.ServerGroupsAndResources()
	failed, partial := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err)
	if err != nil && !partial {
		return nil, nil, fmt.Errorf("could not list the APIs of the API server: %w", err)
	}
	var unserved []string
	if partial {
		for version := range failed.Groups {
			unserved = append(unserved, version.String())
		}
	}
	slices.Sort(unserved)
	return lists, unserved, nil
}

// boundNamespaces are the namespaces in which a RoleBinding names an account, or the
// accounts of its namespace, and the account's own.
func boundNamespaces(ctx context.Context, client kubernetes.Interface, accounts []types.NamespacedName) (map[types.NamespacedName][]string, error) {
	bound, err := roleBindings(ctx, client.RbacV1(), accounts)
	if err != nil {
		return nil, err
	}
	namespaces := map[types.NamespacedName][]string{}
	for _, account := range accounts {
		namespaces[account] = []string{account.Namespace}
		for _, role := range bound[account] {
			if role.in != "" {
				namespaces[account] = append(namespaces[account], role.in)
			}
		}
		slices.Sort(namespaces[account])
		namespaces[account] = slices.Compact(namespaces[account])
	}
	return namespaces, nil
}

// includes is true for the subjects of a binding that include an account, except those
// that include every account.
func includes(subject rbacv1.Subject, account types.NamespacedName) bool {
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		return subject.Namespace == account.Namespace && subject.Name == account.Name
	case rbacv1.UserKind:
		return subject.Name == User(account)
	case rbacv1.GroupKind:
		return subject.Name == "system:serviceaccounts:"+account.Namespace
	}
	return false
}

// audit is the reviews of one account.
type audit struct {
	client     kubernetes.Interface
	account    types.NamespacedName
	lists      []*metav1.APIResourceList
	namespaces []string
	reviews    int
}

// writes reviews the widest request first, then these in namespaces, and of the
// allowed ones whether they are allowed in all namespaces.
func (a *audit) writes(ctx context.Context, requests []Request) ([]Request, error) {
	if all, err := a.allowed(ctx, a.account, []Request{anything()}); len(all) > 0 || err != nil {
		return all, err
	}
	inNamespaces, err := a.allowed(ctx, a.account, requests)
	if err != nil {
		return nil, err
	}
	var wider []Request
	for _, request := range inNamespaces {
		request.Namespace = ""
		wider = append(wider, request)
	}
	everywhere, err := a.allowed(ctx, a.account, wider)
	if err != nil {
		return nil, err
	}
	return essential(slices.Concat(inNamespaces, everywhere)), nil
}

// withoutDefaults leaves out what an unknown account may do, too: a cluster may allow
// every user to request a project.
func (a *audit) withoutDefaults(ctx context.Context, requests []Request) ([]Request, error) {
	unknown := types.NamespacedName{Namespace: unknownAccount, Name: unknownAccount}
	defaults, err := a.allowed(ctx, unknown, requests)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(requests, func(request Request) bool { return slices.Contains(defaults, request) }), nil
}

// requests are all write requests to all resources, each resource in one of its
// versions.
func (a *audit) requests() []Request {
	seen := map[Request]bool{}
	add := func(request Request, namespaces []string) {
		for _, namespace := range namespaces {
			request.Namespace = namespace
			seen[request] = true
		}
	}
	cluster := []string{""}
	for _, list := range a.lists {
		group := groupOf(list.GroupVersion)
		for _, resource := range list.APIResources {
			namespaces := cluster
			if resource.Namespaced {
				namespaces = a.namespaces
			}
			for _, request := range writeRequests(group, resource) {
				add(request, namespaces)
			}
		}
	}
	// Identities are not in the lists.
	add(Request{Verb: "impersonate", Resource: "users"}, cluster)
	add(Request{Verb: "impersonate", Resource: "groups"}, cluster)
	add(Request{Verb: "impersonate", Resource: "serviceaccounts"}, a.namespaces)
	// Nor are these verbs, and the subresource by which the kubelet writes checkpoints.
	for _, verb := range []string{"bind", "escalate"} {
		add(Request{Verb: verb, Group: rbacv1.GroupName, Resource: "clusterroles"}, cluster)
		add(Request{Verb: verb, Group: rbacv1.GroupName, Resource: "roles"}, a.namespaces)
	}
	add(Request{Verb: "create", Resource: "nodes", Subresource: "checkpoint"}, cluster)
	return slices.SortedFunc(maps.Keys(seen), compare)
}

// writeRequests are the write requests to a resource. Reviews are none, since the API
// server does not store them; a connection is one, since it allows anything.
func writeRequests(group string, resource metav1.APIResource) []Request {
	if group == authorizationv1.GroupName || group == "authentication.k8s.io" {
		return nil
	}
	name, subresource, _ := strings.Cut(resource.Name, "/")
	verbs := []string{"create", "update", "patch", "delete", "deletecollection"}
	if slices.Contains(connections(), subresource) {
		verbs = append(verbs, "get")
	}
	var requests []Request
	for _, verb := range verbs {
		if slices.Contains(resource.Verbs, verb) {
			requests = append(requests, Request{Verb: verb, Group: group, Resource: name, Subresource: subresource})
		}
	}
	return requests
}

// allowed reviews requests of an account, and returns those that it may make.
func (a *audit) allowed(ctx context.Context, account types.NamespacedName, requests []Request) ([]Request, error) {
	a.reviews += len(requests)
	allowed := make([]bool, len(requests))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrent)
	for i := range requests {
		group.Go(func() error {
			review, err := retry.Get(ctx, func(ctx context.Context) (*authorizationv1.SubjectAccessReview, error) {
				return a.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
					Spec: authorizationv1.SubjectAccessReviewSpec{
						User:               User(account),
						Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"},
						ResourceAttributes: &requests[i],
					},
				}, metav1.CreateOptions{})
			})
			if err != nil {
				return fmt.Errorf("could not review the permissions of %s: %w", User(account), err)
			}
			allowed[i] = review.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var granted []Request
	for i, request := range requests {
		if allowed[i] {
			granted = append(granted, request)
		}
	}
	return granted, nil
}
