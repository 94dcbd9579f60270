package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
)

// Rights are the write permissions of one ServiceAccount.
type Rights struct {
	// Account is its name.
	Account types.NamespacedName
	// Writes are the write requests that it may make by roles that are bound to it, or to
	// the ServiceAccounts of its namespace; sorted. A request that connects to running pods
	// or nodes, or impersonates, is a write request.
	Writes []Request
	// Roles counts the roles that are bound to it.
	Roles int
	// Unserved are the versions of APIs whose resources the API server could not list, so
	// that Writes lacks them; sorted.
	Unserved []string
}

// User is the name of a ServiceAccount as a user of the API server.
func User(account types.NamespacedName) string {
	return "system:serviceaccount:" + account.Namespace + ":" + account.Name
}

// Writes finds out which write requests ServiceAccounts may make by their roles: every
// write verb of every resource, in the account's own namespace, in those with a
// RoleBinding for it, and in the whole cluster. The accounts need not exist. An error
// means that a binding or role could not be read, or that more than 200 roles are bound
// to an account. Its needs are those of Grants.
func Writes(ctx context.Context, client kubernetes.Interface, accounts []types.NamespacedName) ([]Rights, error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	lists, unserved, err := served(client.Discovery())
	if err != nil {
		return nil, err
	}
	bound, err := roleBindings(ctx, client.RbacV1(), accounts)
	if err != nil {
		return nil, err
	}
	read := newRoleReader(client.RbacV1(), maxBindings)
	var all []Rights
	for _, account := range accounts {
		granted, err := read.permissions(ctx, "ServiceAccount "+account.String(), bound[account])
		if err != nil {
			return nil, err
		}
		writes := granted.writes(requestsOf(lists, granted.namespaces(account.Namespace)))
		all = append(all, Rights{Account: account, Writes: writes, Roles: len(bound[account]), Unserved: unserved})
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

// requestsOf are all write requests to the resources of lists, each resource in one of
// its versions, and in each of the namespaces if it is in a namespace.
func requestsOf(lists []*metav1.APIResourceList, namespaces []string) []Request {
	seen := map[Request]bool{}
	add := func(request Request, in []string) {
		for _, namespace := range in {
			request.Namespace = namespace
			seen[request] = true
		}
	}
	cluster := []string{""}
	for _, list := range lists {
		group := groupOf(list.GroupVersion)
		for _, resource := range list.APIResources {
			in := cluster
			if resource.Namespaced {
				in = namespaces
			}
			for _, request := range writeRequests(group, resource) {
				add(request, in)
			}
		}
	}
	// Identities are not in the lists.
	add(Request{Verb: "impersonate", Resource: "users"}, cluster)
	add(Request{Verb: "impersonate", Resource: "groups"}, cluster)
	add(Request{Verb: "impersonate", Resource: "serviceaccounts"}, namespaces)
	// Nor are these verbs, and the subresource by which the kubelet writes checkpoints.
	for _, verb := range []string{"bind", "escalate"} {
		add(Request{Verb: verb, Group: rbacv1.GroupName, Resource: "clusterroles"}, cluster)
		add(Request{Verb: verb, Group: rbacv1.GroupName, Resource: "roles"}, namespaces)
	}
	add(Request{Verb: "create", Resource: "nodes", Subresource: "checkpoint"}, cluster)
	return slices.SortedFunc(maps.Keys(seen), compare)
}

// writeRequests are the write requests to a resource. A connection is one, since it
// allows anything.
func writeRequests(group string, resource metav1.APIResource) []Request {
	request := Request{Group: group}
	request.Resource, request.Subresource, _ = strings.Cut(resource.Name, "/")
	if storesNothing(request) {
		return nil
	}
	verbs := []string{"create", "update", "patch", "delete", "deletecollection"}
	if slices.Contains(connections(), request.Subresource) {
		verbs = append(verbs, "get")
	}
	return Verbs(request, slices.DeleteFunc(verbs, func(verb string) bool { return !slices.Contains(resource.Verbs, verb) })...)
}
