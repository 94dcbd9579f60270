package rights

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster/retry"
)

// maxReviews bounds the concurrent reviews.
const maxReviews = 16

const (
	registrationGroup = "apiregistration.k8s.io"
	// maxAPIServices bounds the APIServices of one request.
	maxAPIServices = 5000
)

// Unguarded returns the write requests that no admission policy of the API server can
// deny: those with verbs of an authorizer alone, such as impersonation, after which the
// policy receives the impersonated user; changes of the
// admission configuration, which Kubernetes exempts from policies; connections to
// kubelets, which have no admission; writes to these aggregated API groups, whose
// servers have their own admission; and the permission to grant any of them. An
// asterisk in a request is a wildcard.
func Unguarded(writes []access.Request, aggregated []string) []access.Request {
	var unguarded []access.Request
	for _, request := range writes {
		if isUnguarded(request, aggregated) {
			unguarded = append(unguarded, request)
		}
	}
	return unguarded
}

func isUnguarded(request access.Request, aggregated []string) bool {
	is := func(value string, wanted ...string) bool { return value == "*" || slices.Contains(wanted, value) }
	switch {
	case request.Verb == "*" || !slices.Contains(admitted(), request.Verb):
		return true
	case is(request.Group, "admissionregistration.k8s.io"), is(request.Group, aggregated...):
		return true
	case is(request.Group, "") && is(request.Resource, "nodes"):
		return is(request.Subresource, "proxy", "checkpoint") || request.Resource == "*"
	}
	return false
}

// admitted are the verbs of the requests that admission sees, besides those that only read.
// Others are known to an authorizer only: bind, escalate, impersonate, and since Kubernetes
// 1.35 the verbs of constrained impersonation, such as impersonate:user-info.
func admitted() []string {
	return []string{"create", "update", "patch", "delete", "deletecollection", "get", "list", "watch"}
}

type subject struct {
	name   string
	groups []string
}

func accountSubject(account types.NamespacedName) subject {
	return subject{User(account), []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"}}
}

// anonymous is the user of a request without a token.
func anonymous() subject { return subject{"system:anonymous", []string{"system:unauthenticated"}} }

func review(ctx context.Context, client authorizationv1client.SubjectAccessReviewsGetter, of subject, requests []access.Request) ([]access.Request, error) {
	allowed := make([]bool, len(requests))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxReviews)
	for i := range requests {
		group.Go(func() error {
			reviewed, err := retry.Get(ctx, func(ctx context.Context) (*authorizationv1.SubjectAccessReview, error) {
				return client.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
					Spec: authorizationv1.SubjectAccessReviewSpec{
						User:               of.name,
						Groups:             of.groups,
						ResourceAttributes: &requests[i],
					},
				}, metav1.CreateOptions{})
			})
			if err != nil {
				return fmt.Errorf("could not review the permissions of %s: %w", of.name, err)
			}
			allowed[i] = reviewed.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var granted []access.Request
	for i, request := range requests {
		if allowed[i] {
			granted = append(granted, request)
		}
	}
	return granted, nil
}

// AggregatedGroups reads the API groups that other servers serve, sorted.
func AggregatedGroups(ctx context.Context, client rest.Interface) ([]string, error) {
	body, err := retry.Get(ctx, func(ctx context.Context) ([]byte, error) {
		return client.Get().AbsPath("/apis/"+registrationGroup+"/v1/apiservices").
			VersionedParams(&metav1.ListOptions{Limit: maxAPIServices}, metav1.ParameterCodec).
			SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	})
	if err != nil {
		return nil, fmt.Errorf("could not list APIServices: %w", err)
	}
	var services struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []struct {
			Spec struct {
				Group   string    `json:"group"`
				Service *struct{} `json:"service"`
			} `json:"spec"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &services); err != nil {
		return nil, fmt.Errorf("could not parse the list of APIServices: %w", err)
	}
	if services.Metadata.Continue != "" {
		return nil, fmt.Errorf("the API server has more than %d APIServices", maxAPIServices)
	}
	var groups []string
	for _, item := range services.Items {
		if item.Spec.Service != nil {
			groups = append(groups, item.Spec.Group)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}
