package imagepolicy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	configv1client "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Policies are the image policies of a cluster.
type Policies struct {
	policies []configv1.ClusterImagePolicy
}

// FromCluster reads all ClusterImagePolicies, which requires "list" on them. A cluster without this API has none.
func FromCluster(ctx context.Context, client configv1client.ClusterImagePoliciesGetter) (Policies, error) {
	list, err := client.ClusterImagePolicies().List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return Policies{}, nil
	}
	if err != nil {
		return Policies{}, fmt.Errorf("list ClusterImagePolicies: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b configv1.ClusterImagePolicy) int { return strings.Compare(a.Name, b.Name) })
	return Policies{policies: list.Items}, nil
}

// Covers reports whether any policy covers the image.
func (p Policies) Covers(pullSpec string) bool {
	_, covering := p.covering(pullSpec)
	return len(covering) > 0
}

// covering are the policies with the most specific scope that matches an image, and that scope.
func (p Policies) covering(pullSpec string) (string, []configv1.ClusterImagePolicy) {
	for _, scope := range scopes(pullSpec) {
		covering := slices.DeleteFunc(slices.Clone(p.policies), func(policy configv1.ClusterImagePolicy) bool {
			return !slices.Contains(policy.Spec.Scopes, configv1.ImageScope(scope))
		})
		if len(covering) > 0 {
			return scope, covering
		}
	}
	return "", nil
}

// scopes are all that match an image, the most specific one first: the image,
// its repository, the namespaces above, the host with its port, and wildcards
// for the domains above the host, without port (containers/image
// docs/containers-policy.json.5.md, section docker).
func scopes(pullSpec string) []string {
	all := []string{pullSpec}
	above, _, _ := strings.Cut(pullSpec, "@")
	for {
		all = append(all, above)
		slash := strings.LastIndexByte(above, '/')
		if slash < 0 {
			break
		}
		above = above[:slash]
	}
	domain, _, _ := strings.Cut(above, ":")
	for {
		_, parent, ok := strings.Cut(domain, ".")
		if !ok {
			return all
		}
		all = append(all, "*."+parent)
		domain = parent
	}
}
