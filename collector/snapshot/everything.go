package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gap"
)

// Resource is one that a cluster serves, in the version that its API server prefers.
type Resource struct {
	schema.GroupVersionResource

	Kind       string
	Namespaced bool
	// Status is true where objects have a status, by a subresource.
	Status bool
}

// Served are the resources whose objects can be listed, sorted. An API whose server does not answer has none: its APIService
// states that.
func (c *Cluster) Served(ctx context.Context) ([]Resource, error) {
	return once(ctx, c, "served resources", func(ctx context.Context) ([]Resource, error) {
		lists, err := discovery.ServerPreferredResources(c.api.Kubernetes.Discovery())
		if _, partial := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); err != nil && !partial {
			return nil, fmt.Errorf("could not list the served APIs: %w", err)
		}
		with, err := c.withStatus(ctx)
		if err != nil {
			return nil, err
		}
		var served []Resource
		for _, list := range lists {
			group, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				continue // it has no path
			}
			for i := range list.APIResources {
				of := &list.APIResources[i]
				if resource := group.WithResource(of.Name); slices.Contains(of.Verbs, "list") && !strings.Contains(of.Name, "/") {
					served = append(served, Resource{GroupVersionResource: resource, Kind: of.Kind, Namespaced: of.Namespaced, Status: with[resource.GroupResource()]})
				}
			}
		}
		slices.SortFunc(served, func(a, b Resource) int { return strings.Compare(a.String(), b.String()) })
		return served, nil
	})
}

// withStatus are the resources with a subresource "status".
func (c *Cluster) withStatus(context.Context) (map[schema.GroupResource]bool, error) {
	_, lists, err := c.api.Kubernetes.Discovery().ServerGroupsAndResources()
	if _, partial := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); err != nil && !partial {
		return nil, fmt.Errorf("could not list the served APIs: %w", err)
	}
	found := map[schema.GroupResource]bool{}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			if name, ok := strings.CutSuffix(list.APIResources[i].Name, "/status"); ok {
				found[group.WithResource(name).GroupResource()] = true
			}
		}
	}
	return found, nil
}

// ErrMany means that a resource has more objects than are read.
var ErrMany = errors.New("there are more objects than are read")

// Each reads the objects of a resource page by page, and keeps none. The error is an ErrMany for more than most of them, of
// which the first ones were read.
func (c *Cluster) Each(ctx context.Context, resource schema.GroupVersionResource, most int, do func(*unstructured.Unstructured)) error {
	reading, done := cluster.Reading(ctx)
	defer done()
	count := 0
	err := each(reading, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.api.Dynamic.Resource(resource).List(ctx, options)
	}, func(object *unstructured.Unstructured) error {
		if count++; count > most {
			return ErrMany
		}
		do(object)
		return nil
	})
	if err != nil {
		gap.Fail(ctx, err)
	}
	return err
}
