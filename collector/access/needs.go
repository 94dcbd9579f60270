package access

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/words"
)

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
