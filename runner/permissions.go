package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/openshift/update-preflight/runner/launch"
)

// permission is one request that the run is going to make.
type permission = authorizationv1.ResourceAttributes

// readPermissions are what every run needs before it knows the release.
func readPermissions() []permission {
	return []permission{
		{Verb: "get", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"},
		{Verb: "get", Group: "config.openshift.io", Resource: "proxies", Name: "cluster"},
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-config-managed"},
		{Verb: "list", Resource: "configmaps", Namespace: "openshift-config-managed"},
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-config", Name: "admin-acks"},
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-cluster-version"},
	}
}

// followPermissions are what it takes to follow the Jobs of a run, and to find
// all of it again, whatever the release ships.
func followPermissions() []permission {
	needed := []permission{{Verb: "get", Resource: "pods", Subresource: "log"}}
	for _, verb := range []string{"list", "watch"} {
		needed = append(
			needed,
			permission{Verb: verb, Group: batchv1.GroupName, Resource: "jobs"},
			permission{Verb: verb, Resource: "pods"},
			permission{Verb: verb, Resource: "events"},
		)
	}
	for _, resource := range []string{"serviceaccounts", "configmaps"} {
		needed = append(needed, permission{Verb: "list", Resource: resource})
	}
	for _, resource := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
		needed = append(needed, permission{Verb: "list", Group: rbacv1.GroupName, Resource: resource})
	}
	return needed
}

// planPermissions are what it takes to create the objects of a plan, and to
// delete them.
func planPermissions(plan launch.Plan) []permission {
	var needed []permission
	for _, check := range plan.Checks {
		needed = append(needed, ownPermissions(check.Job, batchv1.GroupName, "jobs")...)
	}
	for _, object := range plan.Supporting {
		kind := object.GetObjectKind().GroupVersionKind()
		needed = append(needed, ownPermissions(object, kind.Group, strings.ToLower(kind.Kind)+"s")...)
	}
	return distinct(needed)
}

// ownPermissions are for what the run itself creates.
func ownPermissions(object metav1.Object, group, resource string) []permission {
	var needed []permission
	for _, verb := range []string{"create", "deletecollection"} {
		needed = append(needed, permission{Verb: verb, Group: group, Resource: resource, Namespace: object.GetNamespace()})
	}
	return needed
}

// distinct drops what is needed more than once.
func distinct(needed []permission) []permission {
	seen := map[string]bool{}
	return slices.DeleteFunc(needed, func(p permission) bool {
		description := describePermission(p)
		again := seen[description]
		seen[description] = true
		return again
	})
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
