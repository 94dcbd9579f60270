// Package rights answers: what may ServiceAccounts do in this cluster?
//
// [Writes] returns the write requests that accounts may make by their roles, and [Groups] the permissions of all
// ServiceAccounts of a namespace through their groups. [Grants] returns the rules that bindings grant, and
// [API.Reads] their read-only part, which is copied for checks.
//
// # Limitations
//
// [Grants], [Writes] and [Groups] cover the permissions of RBAC only, the authorizer of every OpenShift cluster:
// an access review for each write request to each resource would be thousands of requests for one run, and an
// authorizer observes a role only a moment after it was created. [Groups] makes access reviews, which all
// authorizers answer, for the requests of [Unguarded]: about the whole cluster, the account's own namespace, and
// the namespaces in which roles of its groups write.
package rights

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

// Writes returns the write requests that ServiceAccounts may make by their roles: every write verb of every
// resource, in the account's own namespace, in namespaces with a RoleBinding for it, and in the whole cluster. The
// accounts need not exist. An error means that a binding or role could not be read, or that more than 200 roles
// are bound to an account. It needs the permissions of Grants.
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

// API is the resources that an API server serves.
type API struct {
	// Unserved are the versions of APIs whose resources the API server could not list, sorted.
	Unserved []string

	// resources are the names of the resources that can be read, by group.
	resources map[string][]string
}

// Discover lists the resources of all API groups. A group that the API server could not list is not an error.
func Discover(ctx context.Context, client discovery.ServerResourcesInterface) (API, error) {
	lists, unserved, err := served(ctx, client)
	if err != nil {
		return API{}, err
	}
	found := map[string]map[string]bool{}
	for _, list := range lists {
		group := groupOf(list.GroupVersion)
		for _, resource := range list.APIResources {
			if len(readVerbs(resource.Verbs)) == 0 {
				continue
			}
			if found[group] == nil {
				found[group] = map[string]bool{}
			}
			found[group][resource.Name] = true
		}
	}
	api := API{Unserved: unserved, resources: map[string][]string{}}
	for group, resources := range found {
		api.resources[group] = slices.Sorted(maps.Keys(resources))
	}
	return api, nil
}

// served are the resources of all APIs, and the versions whose resources the API server could not list.
func served(ctx context.Context, api discovery.ServerResourcesInterface) ([]*metav1.APIResourceList, []string, error) {
	_, lists, err := discovery.ToServerResourcesInterfaceWithContext(api).ServerGroupsAndResourcesWithContext(ctx)
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

// groupOf is the group of "GROUP/VERSION"; the core group has only a version.
func groupOf(groupVersion string) string {
	group, _, found := strings.Cut(groupVersion, "/")
	if !found {
		return ""
	}
	return group
}

// readVerbs returns the verbs that read, in a fixed order.
func readVerbs(verbs []string) []string {
	var reads []string
	for _, verb := range []string{"get", "list", "watch"} {
		if slices.Contains(verbs, verb) || slices.Contains(verbs, "*") {
			reads = append(reads, verb)
		}
	}
	return reads
}

// kubeVirtConnections is the API group whose resources connect to virtual machines.
const kubeVirtConnections = "subresources.kubevirt.io"

// connections are the subresources that are a connection rather than an object, in any API group.
func connections() []string {
	return []string{"exec", "attach", "portforward", "proxy", "console", "vnc", "usbredir", "vsock"}
}

// Connects reports whether a resource of an API group is a connection rather than an
// object, so that the verb get may execute commands. Wildcards include connections:
// "*" in the groups of Kubernetes' and KubeVirt's connections, and "RESOURCE/*". Below
// nodes only the status is an object: the kubelet authorizes requests by the other
// subresources.
func Connects(group, resource string) bool {
	name, subresource, _ := strings.Cut(resource, "/")
	switch {
	case subresource == "*" || slices.Contains(connections(), subresource):
		return true
	case name == "nodes" && subresource != "":
		return subresource != "status"
	case resource == "*":
		return slices.Contains([]string{"", "*", kubeVirtConnections}, group)
	}
	return false
}

// Reading is the part of some rules that only reads.
type Reading struct {
	// Rules have the verbs get, list and watch, and no wildcards.
	Rules []rbacv1.PolicyRule
	// Omitted describes the read access that Rules lack, sorted.
	Omitted []string
}

// What a Reading omits.
const (
	omittedSecrets     = "Secrets of any name"
	omittedConnections = "connections to pods, nodes and services"
	omittedPaths       = "paths with a wildcard"
)

// Reads returns the part of rules that only reads objects. Wildcards are replaced by
// the resources that the API server serves. Secrets are included with resourceNames
// only, since a Secret may have the token of another account; connections, requests for
// tokens and paths with a wildcard are not included.
func (a API) Reads(rules []rbacv1.PolicyRule) Reading {
	r := reader{api: a, omitted: map[string]bool{}}
	for _, rule := range rules {
		r.read(rule)
	}
	return Reading{Rules: access.DistinctRules(r.rules), Omitted: slices.Sorted(maps.Keys(r.omitted))}
}

type reader struct {
	api     API
	rules   []rbacv1.PolicyRule
	omitted map[string]bool
}

func (r *reader) read(rule rbacv1.PolicyRule) {
	verbs := readVerbs(rule.Verbs)
	if len(verbs) == 0 {
		return
	}
	if slices.Contains(verbs, "get") {
		r.readPaths(rule.NonResourceURLs)
	}
	byGroup := map[string]map[string]bool{}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			r.expand(byGroup, group, resource, isNamed(rule))
		}
	}
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		r.rules = append(r.rules, rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: slices.Sorted(maps.Keys(byGroup[group])), Verbs: verbs, ResourceNames: rule.ResourceNames,
		})
	}
}

// isNamed is true for a rule that is for objects of some names only. An empty one of resourceNames allows a list without
// a name (k8s.io/kubernetes/pkg/apis/rbac/v1, ResourceNameMatches).
func isNamed(rule rbacv1.PolicyRule) bool {
	return len(rule.ResourceNames) > 0 && !slices.Contains(rule.ResourceNames, "")
}

// readPaths adds the paths that are no patterns.
func (r *reader) readPaths(paths []string) {
	var exact []string
	for _, path := range paths {
		if strings.Contains(path, "*") {
			r.omitted[omittedPaths] = true
			continue
		}
		exact = append(exact, path)
	}
	if len(exact) > 0 {
		r.rules = append(r.rules, rbacv1.PolicyRule{NonResourceURLs: exact, Verbs: []string{"get"}})
	}
}

func (r *reader) expand(byGroup map[string]map[string]bool, group, resource string, named bool) {
	if group != "*" && !isPattern(resource) {
		r.add(byGroup, group, resource, named)
		return
	}
	for served, resources := range r.api.resources {
		if group != "*" && group != served {
			continue
		}
		for _, each := range resources {
			if matchesResource(resource, each) {
				r.add(byGroup, served, each, named)
			}
		}
	}
	for _, version := range r.api.Unserved {
		if group == "*" || group == groupOf(version) {
			r.omitted["resources of "+version+", which the API server does not serve now"] = true
		}
	}
}

func (r *reader) add(byGroup map[string]map[string]bool, group, resource string, named bool) {
	_, subresource, _ := strings.Cut(resource, "/")
	switch {
	case Connects(group, resource):
		r.omitted[omittedConnections] = true
		return
	case resource == secrets && !named, subresource == secrets:
		r.omitted[omittedSecrets] = true
		return
	case subresource == "token" || resource == "":
		return
	}
	if byGroup[group] == nil {
		byGroup[group] = map[string]bool{}
	}
	byGroup[group][resource] = true
}

// secrets is the resource of Secrets, and the subresource of ImageStreams that has Secrets.
const secrets = "secrets"

// isPattern is true for the patterns of a rule: "*" and "*/SUBRESOURCE".
func isPattern(resource string) bool { return resource == "*" || strings.HasPrefix(resource, "*/") }

// matchesResource is true for a resource that the API server's authorizer matches with
// one of a rule (k8s.io/component-helpers/auth/rbac/validation).
func matchesResource(pattern, resource string) bool {
	_, subresource, found := strings.Cut(resource, "/")
	return pattern == "*" || pattern == resource || found && pattern == "*/"+subresource
}
