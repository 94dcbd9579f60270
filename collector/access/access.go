// Package access answers: what may somebody do in this cluster? About the user,
// before anything is started, so that whatever is missing is named at once;
// about the ServiceAccounts that checks run as, since a check is to read only;
// and as a role, about what a command needs and no more.
//
// Whoever makes requests declares them as [Needs], beside the code that makes
// them. The check before a start and the role for an administrator to give are
// made of the same declaration.
//
// # Limitations
//
// Where an authorizer besides RBAC gives rights in a namespace that is neither
// the account's own nor has a RoleBinding for it, [Writes] does not ask there.
package access

import (
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// Request is one kind of request to the API server. Without a namespace it is
// about all of them at once, without a name about all objects.
type Request = authorizationv1.ResourceAttributes

// Describe says a request as people do: "list pods in namespace x".
func Describe(request Request) string {
	if request == anything() {
		return "do everything"
	}
	text := request.Verb + " " + resourceOf(request)
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

// Summarize says what requests are about, with the verbs of each together. It
// says the first most of them, and how many there are besides.
func Summarize(requests []Request, most int) string {
	var abouts []Request
	verbs := map[Request][]string{}
	for _, request := range essential(requests) {
		about := request
		about.Verb = ""
		if len(verbs[about]) == 0 {
			abouts = append(abouts, about)
		}
		verbs[about] = append(verbs[about], request.Verb)
	}
	var texts []string
	for _, about := range abouts[:min(most, len(abouts))] {
		about.Verb = strings.Join(verbs[about], ", ")
		texts = append(texts, Describe(about))
	}
	said := strings.Join(texts, "; ")
	if more := len(abouts) - most; more > 0 {
		said += fmt.Sprintf("; and %d more", more)
	}
	return said
}

// resourceOf is the resource as a role has it: "pods/log".
func resourceOf(request Request) string {
	if request.Subresource == "" {
		return request.Resource
	}
	return fmt.Sprintf("%s/%s", request.Resource, request.Subresource)
}

// anything is what only an administrator of the cluster is allowed.
func anything() Request {
	return Request{Verb: "*", Group: "*", Version: "*", Resource: "*"}
}
