package imagepolicy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	configv1client "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Policies are the image policies of a cluster.
type Policies struct {
	policies []configv1.ClusterImagePolicy
	// unsure is why it is unknown whether the cluster has a policy, by its name.
	unsure map[string]string
	// later are those after an update; nil where they are the same, or unknown.
	later *Policies
}

// Brought is a policy that a release brings, or removes.
type Brought struct {
	configv1.ClusterImagePolicy

	Removed bool
	// Cause is why it is unknown whether, or how, the release brings it; empty where it does.
	Cause string
}

// createOnly makes the cluster-version operator leave an object that exists as it is.
const createOnly = "release.openshift.io/create-only"

// Before are the policies of a cluster before an update to a release: an image must satisfy them, and those after it.
func (p Policies) Before(release []Brought) Policies {
	if len(release) == 0 {
		return p
	}
	later := Policies{policies: slices.Clone(p.policies), unsure: map[string]string{}}
	for _, each := range release {
		same := func(policy configv1.ClusterImagePolicy) bool { return policy.Name == each.Name }
		if each.Annotations[createOnly] == "true" && each.Cause == "" && slices.ContainsFunc(later.policies, same) {
			continue
		}
		later.policies = slices.DeleteFunc(later.policies, same)
		if each.Cause != "" {
			later.unsure[each.Name] = each.Cause
		}
		if !each.Removed || each.Cause != "" {
			later.policies = append(later.policies, each.ClusterImagePolicy)
		}
	}
	p.later = &later
	return p
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
	return len(covering) > 0 || p.later != nil && p.later.Covers(pullSpec)
}

// Changes reports whether an image must satisfy other policies after the update than before.
func (p Policies) Changes(pullSpec string) bool {
	if p.later == nil {
		return false
	}
	_, before := p.covering(pullSpec)
	_, after := p.later.covering(pullSpec)
	return len(after) > 0 && !slices.EqualFunc(before, after, func(a, b configv1.ClusterImagePolicy) bool {
		return a.Name == b.Name && p.later.unsure[b.Name] == "" && equality.Semantic.DeepEqual(a.Spec, b.Spec)
	})
}

// covering are the policies with the most specific scope that matches an image, and that scope.
func (p Policies) covering(pullSpec string) (string, []configv1.ClusterImagePolicy) {
	for _, scope := range scopes(pullSpec) {
		covering := slices.DeleteFunc(slices.Clone(p.policies), func(policy configv1.ClusterImagePolicy) bool {
			all := p.unsure[policy.Name] != "" && len(policy.Spec.Scopes) == 0 // which are unknown
			return !all && !slices.Contains(policy.Spec.Scopes, configv1.ImageScope(scope))
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
