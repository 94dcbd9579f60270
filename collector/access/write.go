package access

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Writing returns the write requests that rules allow, as the rules name them: with
// their wildcards and without a namespace. Sorted. Requests that store nothing are not
// included; connections are.
func Writing(rules []rbacv1.PolicyRule) []Request {
	var writes []Request
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				writes = append(writes, writing(group, resource, rule.Verbs)...)
			}
		}
	}
	return essential(writes)
}

func writing(group, resource string, verbs []string) []Request {
	var writes []Request
	request := Request{Group: group}
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
func selects(request Request) bool {
	return request.Verb == "use" && slices.Contains([]string{"securitycontextconstraints", "podsecuritypolicies"}, request.Resource)
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

// storesNothing is true for resources that are created and never stored: reviews, the
// statistics of a kubelet, which it serves for POST too, and the defaults of a virtual
// machine, which KubeVirt allows the role view.
func storesNothing(request Request) bool {
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
