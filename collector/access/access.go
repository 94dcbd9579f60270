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
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Essential are the requests, sorted, without duplicates and without those that another one includes.
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

// Needs are the requests of a command to the API server, without those that every
// authenticated user may make: discovery, and reviews of the user's own permissions.
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
	// Missing are all of them, as Describe states them.
	Missing []string
}

const maxMissing = 5

// Error implements error.
func (e *MissingError) Error() string {
	return "the user lacks " + words.Count(len(e.Missing), "permission") + " that a preflight requires: " + words.Clauses(e.Missing, maxMissing)
}
