package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// permission is one request that the run is going to make.
type permission = authorizationv1.ResourceAttributes

// readPermissions are what every run needs before it knows the release.
func readPermissions() []permission {
	return []permission{
		{Verb: "get", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"},
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-config-managed"},
		{Verb: "list", Resource: "configmaps", Namespace: "openshift-config-managed"},
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-config", Name: "admin-acks"},
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-cluster-version"},
	}
}

// jobPermissions are what launching checks in these namespaces needs.
func jobPermissions(namespaces []string) []permission {
	needed := []permission{
		{Verb: "list", Group: "batch", Resource: "jobs"}, {Verb: "watch", Group: "batch", Resource: "jobs"},
		{Verb: "list", Resource: "pods"}, {Verb: "watch", Resource: "pods"},
		{Verb: "list", Resource: "events"}, {Verb: "watch", Resource: "events"},
	}
	for _, namespace := range namespaces {
		needed = append(needed,
			permission{Verb: "create", Group: "batch", Resource: "jobs", Namespace: namespace},
			permission{Verb: "deletecollection", Group: "batch", Resource: "jobs", Namespace: namespace},
			permission{Verb: "get", Resource: "pods", Subresource: "log", Namespace: namespace},
		)
	}
	return needed
}

// checkPermissions asks the API server for all permissions at once, and names
// all that are missing in one error: nobody should meet them one by one.
func checkPermissions(ctx context.Context, reviews authorizationv1client.SelfSubjectAccessReviewsGetter, needed []permission) error {
	const parallel = 16
	missing := make([]string, len(needed))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range needed {
		group.Go(func() error {
			review := &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &needed[i]},
			}
			answer, err := reviews.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("could not ask the API server for permissions: %w", err)
			}
			if !answer.Status.Allowed {
				missing[i] = describePermission(needed[i])
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	missing = slices.DeleteFunc(missing, func(text string) bool { return text == "" })
	if len(missing) > 0 {
		return errors.New("you may not do what a preflight needs: " + strings.Join(missing, "; "))
	}
	return nil
}

func describePermission(p permission) string {
	resource := p.Resource
	if p.Subresource != "" {
		resource += "/" + p.Subresource
	}
	if p.Group != "" {
		resource += "." + p.Group
	}
	if p.Name != "" {
		resource += " " + p.Name
	}
	if p.Namespace == "" {
		return p.Verb + " " + resource
	}
	return fmt.Sprintf("%s %s in namespace %s", p.Verb, resource, p.Namespace)
}
