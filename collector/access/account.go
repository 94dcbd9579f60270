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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
)

// Rights is what the API server says of one ServiceAccount.
type Rights struct {
	// Account is the name of it.
	Account types.NamespacedName
	// Writes are the requests that change something, which it may make and a
	// ServiceAccount that nobody has heard of may not; sorted. One that reaches
	// into running pods and nodes, or takes on another identity, counts as such.
	Writes []Request
	// Asked counts the questions.
	Asked int
	// Unserved are the versions of APIs about which nobody could ask, because
	// the server knows of them and could not say what they hold; sorted.
	Unserved []string
}

// WritesNeeds is what Writes asks of the API server.
func WritesNeeds() []Request {
	return []Request{
		{Verb: "create", Group: authorizationv1.GroupName, Resource: "subjectaccessreviews"},
		{Verb: "list", Group: rbacv1.GroupName, Resource: "rolebindings"},
	}
}

// User is the name of a ServiceAccount as a user of the API server.
func User(account types.NamespacedName) string {
	return "system:serviceaccount:" + account.Namespace + ":" + account.Name
}

// Writes asks the API server what ServiceAccounts may change: every writing verb
// of every resource, in the account's own namespace, in those with a RoleBinding
// for it, and in the whole cluster. The accounts need not exist. Not more than
// sixteen questions are under way at one time. An error means that it could not
// be asked.
func Writes(ctx context.Context, client kubernetes.Interface, accounts []types.NamespacedName) ([]Rights, error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	lists, unserved, err := served(client.Discovery())
	if err != nil {
		return nil, err
	}
	bindings, err := bound(ctx, client, accounts)
	if err != nil {
		return nil, err
	}
	var all []Rights
	for _, account := range accounts {
		a := audit{client: client, account: account, lists: lists, namespaces: bindings[account]}
		writes, err := a.writes(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, Rights{Account: account, Writes: writes, Asked: a.asked, Unserved: unserved})
	}
	return all, nil
}

// served are the resources of all APIs, with the versions that the API server
// knows of and cannot look into.
func served(api discovery.ServerResourcesInterface) ([]*metav1.APIResourceList, []string, error) {
	_, lists, err := api.ServerGroupsAndResources()
	failed, partial := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err)
	if err != nil && !partial {
		return nil, nil, fmt.Errorf("could not find out what the API server serves: %w", err)
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

// bound are the namespaces in which a RoleBinding names an account, or the
// accounts of its namespace, with the account's own.
func bound(ctx context.Context, client kubernetes.Interface, accounts []types.NamespacedName) (map[types.NamespacedName][]string, error) {
	namespaces := map[types.NamespacedName][]string{}
	for _, account := range accounts {
		namespaces[account] = []string{account.Namespace}
	}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.RbacV1().RoleBindings(metav1.NamespaceAll).List(ctx, options)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		binding, ok := item.(*rbacv1.RoleBinding)
		if !ok {
			return fmt.Errorf("the list has a %T", item)
		}
		for _, account := range accounts {
			if slices.ContainsFunc(binding.Subjects, func(subject rbacv1.Subject) bool { return means(subject, account) }) {
				namespaces[account] = append(namespaces[account], binding.Namespace)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("could not list RoleBindings: %w", err)
	}
	for account, found := range namespaces {
		slices.Sort(found)
		namespaces[account] = slices.Compact(found)
	}
	return namespaces, nil
}

// means is true for the subjects of a binding that stand for an account, and not
// for every one.
func means(subject rbacv1.Subject, account types.NamespacedName) bool {
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

// audit is the questions about one account.
type audit struct {
	client     kubernetes.Interface
	account    types.NamespacedName
	lists      []*metav1.APIResourceList
	namespaces []string
	asked      int
}

// writes asks the widest question first, then those in namespaces, and only of
// what is allowed there whether it is in all of them.
func (a *audit) writes(ctx context.Context) ([]Request, error) {
	if all, err := a.may(ctx, a.account, []Request{anything()}); len(all) > 0 || err != nil {
		return all, err
	}
	allowed, err := a.may(ctx, a.account, a.questions())
	if err != nil {
		return nil, err
	}
	var wider []Request
	for _, request := range allowed {
		request.Namespace = ""
		wider = append(wider, request)
	}
	everywhere, err := a.may(ctx, a.account, wider)
	if err != nil {
		return nil, err
	}
	return a.beyondStrangers(ctx, essential(slices.Concat(allowed, everywhere)))
}

// beyondStrangers leaves out what an account may that nobody has heard of: a
// cluster may let everybody ask for a project.
func (a *audit) beyondStrangers(ctx context.Context, may []Request) ([]Request, error) {
	stranger := types.NamespacedName{Namespace: "preflight-strangers", Name: "preflight-stranger"}
	everybody, err := a.may(ctx, stranger, may)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(may, func(request Request) bool { return slices.Contains(everybody, request) }), nil
}

// questions are all writing requests to all resources. A resource is asked
// about once, in whichever of its versions.
func (a *audit) questions() []Request {
	seen := map[Request]bool{}
	add := func(request Request, namespaces []string) {
		for _, namespace := range namespaces {
			request.Namespace = namespace
			seen[request] = true
		}
	}
	cluster := []string{""}
	for _, list := range a.lists {
		group, _, found := strings.Cut(list.GroupVersion, "/")
		if !found {
			group = "" // the core group has a version only
		}
		for _, resource := range list.APIResources {
			namespaces := cluster
			if resource.Namespaced {
				namespaces = a.namespaces
			}
			for _, request := range writing(group, resource) {
				add(request, namespaces)
			}
		}
	}
	// Not in the lists: what to be is no resource.
	add(Request{Verb: "impersonate", Resource: "users"}, cluster)
	add(Request{Verb: "impersonate", Resource: "groups"}, cluster)
	add(Request{Verb: "impersonate", Resource: "serviceaccounts"}, a.namespaces)
	return slices.SortedFunc(maps.Keys(seen), compare)
}

// writing are the requests that change a resource. Those of the reviews are
// questions to the API server, which keeps nothing of them; to get a connection
// is to do anything with it.
func writing(group string, resource metav1.APIResource) []Request {
	if group == authorizationv1.GroupName || group == "authentication.k8s.io" {
		return nil
	}
	name, subresource, _ := strings.Cut(resource.Name, "/")
	verbs := []string{"create", "update", "patch", "delete", "deletecollection"}
	if slices.Contains([]string{"exec", "attach", "portforward", "proxy"}, subresource) {
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

// may returns those of the requests that an account is allowed.
func (a *audit) may(ctx context.Context, account types.NamespacedName, questions []Request) ([]Request, error) {
	a.asked += len(questions)
	allowed := make([]bool, len(questions))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range questions {
		group.Go(func() error {
			answer, err := a.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{
					User:               User(account),
					Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"},
					ResourceAttributes: &questions[i],
				},
			}, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("could not ask what %s may do: %w", User(account), err)
			}
			allowed[i] = answer.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var may []Request
	for i, request := range questions {
		if allowed[i] {
			may = append(may, request)
		}
	}
	return may, nil
}
