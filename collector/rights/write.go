// Package rights answers: what may ServiceAccounts do in this cluster?
//
// [Writes] finds out which write requests accounts may make by their roles, and [Groups] what
// all ServiceAccounts of a namespace may do through their groups. [Grants] are the rules that
// bindings grant, of which [API.Reads] is the part that only reads, which is copied for checks.
//
// # Limitations
//
// [Grants], [Writes] and [Groups] have the permissions of RBAC only, the authorizer of
// every OpenShift cluster: an access review for each write request to each resource would
// be thousands of requests for one run, and an authorizer observes a role only a moment
// after it was created. [Groups] makes access reviews, which all authorizers answer, of
// what [Unguarded] returns: about the whole cluster, the account's own namespace, and
// those in which roles of its groups write.
package rights

import (
	"context"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/access"
)

// Writing returns the write requests that rules allow, as the rules name them: with
// their wildcards and without a namespace. Sorted. Requests that store nothing are not
// included; connections are.
func Writing(rules []rbacv1.PolicyRule) []access.Request {
	var writes []access.Request
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				writes = append(writes, writing(group, resource, rule.Verbs)...)
			}
		}
	}
	return access.Essential(writes)
}

func writing(group, resource string, verbs []string) []access.Request {
	var writes []access.Request
	request := access.Request{Group: group}
	request.Resource, request.Subresource, _ = strings.Cut(resource, "/")
	if storesNothing(request) {
		return nil
	}
	connects := Connects(group, resource) && (request.Resource != "nodes" || request.Subresource == "proxy")
	for _, request.Verb = range verbs {
		if selects(request) {
			continue
		}
		if len(readVerbs([]string{request.Verb})) != 1 || connects && request.Verb == "get" {
			writes = append(writes, request)
		}
	}
	return writes
}

// selects is true for the verb by which pods may be confined in a certain way. It changes
// nothing: who creates a pod writes by that.
func selects(request access.Request) bool {
	return request.Verb == "use" && slices.Contains([]string{"securitycontextconstraints", "podsecuritypolicies"}, request.Resource)
}

// requestsOf are all write requests to the resources of lists, each resource in one of
// its versions, and in each of the namespaces if it is in a namespace.
func requestsOf(lists []*metav1.APIResourceList, namespaces []string) []access.Request {
	seen := map[access.Request]bool{}
	add := func(request access.Request, in []string) {
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
	add(access.Request{Verb: "impersonate", Resource: "users"}, cluster)
	add(access.Request{Verb: "impersonate", Resource: "groups"}, cluster)
	add(access.Request{Verb: "impersonate", Resource: "serviceaccounts"}, namespaces)
	// Nor are these verbs, and the subresource by which the kubelet writes checkpoints.
	for _, verb := range []string{"bind", "escalate"} {
		add(access.Request{Verb: verb, Group: rbacv1.GroupName, Resource: "clusterroles"}, cluster)
		add(access.Request{Verb: verb, Group: rbacv1.GroupName, Resource: "roles"}, namespaces)
	}
	add(access.Request{Verb: "create", Resource: "nodes", Subresource: "checkpoint"}, cluster)
	return slices.SortedFunc(maps.Keys(seen), access.Compare)
}

// writeRequests are the write requests to a resource. A connection is one, since it allows anything.
func writeRequests(group string, resource metav1.APIResource) []access.Request {
	request := access.Request{Group: group}
	request.Resource, request.Subresource, _ = strings.Cut(resource.Name, "/")
	if storesNothing(request) {
		return nil
	}
	verbs := []string{"create", "update", "patch", "delete", "deletecollection"}
	if slices.Contains(connections(), request.Subresource) {
		verbs = append(verbs, "get")
	}
	return access.Verbs(request, slices.DeleteFunc(verbs, func(verb string) bool { return !slices.Contains(resource.Verbs, verb) })...)
}

// storesNothing is true for resources that are created and never stored: reviews, the
// statistics of a kubelet, which it serves for POST too, and the defaults of a virtual
// machine, which KubeVirt allows the role view.
func storesNothing(request access.Request) bool {
	switch request.Group {
	case "authorization.k8s.io", "authentication.k8s.io", "authorization.openshift.io", "security.openshift.io":
		return strings.HasSuffix(request.Resource, "reviews")
	case kubeVirtConnections:
		return request.Resource == "expand-vm-spec"
	case "":
		return request.Resource == "nodes" && request.Subresource == "stats"
	}
	return false
}

// Rights are the write permissions of one ServiceAccount.
type Rights struct {
	Account types.NamespacedName
	// Writes are the write requests that it may make by roles that are bound to it, or to
	// the ServiceAccounts of its namespace; sorted. A request that connects to running pods
	// or nodes, or impersonates, is a write request.
	Writes []access.Request
	// Roles counts the roles that are bound to it.
	Roles int
	// Unserved are the versions of APIs whose resources the API server could not list, so
	// that Writes lacks them; sorted.
	Unserved []string
}

// Writes finds out which write requests ServiceAccounts may make by their roles: every
// write verb of every resource, in the account's own namespace, in those with a
// RoleBinding for it, and in the whole cluster. The accounts need not exist. An error
// means that a binding or role could not be read, or that more than 200 roles are bound
// to an account. It needs what Grants needs.
func Writes(ctx context.Context, client kubernetes.Interface, accounts []types.NamespacedName) ([]Rights, error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	lists, unserved, err := served(ctx, client.Discovery())
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
