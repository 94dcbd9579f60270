package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/openshift/update-preflight/collector/retry"
)

// Needs is what a command asks of the API server. What every authenticated user
// may do is left out: finding out what the server serves, and asking what one
// may do oneself.
type Needs struct {
	// Required is what it does not start without.
	Required []Request
	// Optional is what it goes on without, and tells of.
	Optional []Request
	// Given is what it lets others do. The API server lets nobody give away more
	// than they have themselves, and judges that when it is asked to.
	Given []Given
}

// Given is a rule of a role that is made; without a namespace, of one for the
// whole cluster.
type Given struct {
	Namespace string
	Rule      rbacv1.PolicyRule
}

// And is both.
func (n Needs) And(more Needs) Needs {
	return Needs{
		Required: slices.Concat(n.Required, more.Required),
		Optional: slices.Concat(n.Optional, more.Optional),
		Given:    slices.Concat(n.Given, more.Given),
	}
}

// Verbs are the requests with these verbs, about the same as one.
func Verbs(about Request, verbs ...string) []Request {
	requests := make([]Request, 0, len(verbs))
	for _, verb := range verbs {
		about.Verb = verb
		requests = append(requests, about)
	}
	return requests
}

const (
	// parallel bounds the questions that are under way at one time.
	parallel = 16
	// patience bounds the wait for an API server that has no time for them, or
	// restarts.
	patience = 15 * time.Second
)

// Check asks the API server for everything that is required at once, and names
// all that the user may not do in one error: nobody should meet them one by
// one. An API server that cannot be asked, for a quarter of a minute, is another
// error.
func (n Needs) Check(ctx context.Context, reviews authorizationv1client.SelfSubjectAccessReviewsGetter) error {
	needed := essential(n.Required)
	allowed := make([]bool, len(needed))
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range needed {
		group.Go(func() error {
			review := &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &needed[i]},
			}
			answer, err := retry.Get(ctx, func(ctx context.Context) (*authorizationv1.SelfSubjectAccessReview, error) {
				return reviews.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			})
			if err != nil {
				return fmt.Errorf("could not ask the API server for permissions: %w", err)
			}
			allowed[i] = answer.Status.Allowed
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
		return errors.New("you may not do what a preflight needs: " + strings.Join(missing, "; "))
	}
	return nil
}

// essential are the requests, sorted, each once and without those that another
// one includes.
func essential(requests []Request) []Request {
	kept := slices.Clone(requests)
	slices.SortFunc(kept, compare)
	kept = slices.Compact(kept)
	return slices.DeleteFunc(kept, func(request Request) bool {
		return slices.ContainsFunc(requests, func(wider Request) bool { return wider != request && Includes(wider, request) })
	})
}

// Includes is true when the permission for wider is one for request too.
func Includes(wider, request Request) bool {
	everywhere := wider.Namespace == "" || wider.Namespace == request.Namespace
	every := wider.Name == "" || wider.Name == request.Name
	wider.Namespace, wider.Name = request.Namespace, request.Name
	return everywhere && every && wider == request
}

func compare(a, b Request) int {
	return cmp.Or(
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource),
		strings.Compare(a.Subresource, b.Subresource), strings.Compare(a.Name, b.Name), strings.Compare(a.Verb, b.Verb),
	)
}
