// Package access answers: which requests does a command make, may the user make them, and
// which roles allow them?
//
// Code that makes requests declares them as [Needs]. [Needs.Check] reviews the user before a
// command starts, so that all missing permissions are reported at once, and [Needs.Roles]
// makes the roles that grant what a command needs, and no more: both are made of the same
// declaration.
package access

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

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

// Essential are the requests, sorted, without duplicates and without those that another one includes.
func Essential(requests []Request) []Request {
	kept := slices.Clone(requests)
	slices.SortFunc(kept, Compare)
	kept = slices.Compact(kept)
	return slices.DeleteFunc(kept, func(request Request) bool {
		return slices.ContainsFunc(requests, func(wider Request) bool { return wider != request && Includes(wider, request) })
	})
}

// Includes reports whether the permission for wider includes request.
func Includes(wider, request Request) bool {
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
