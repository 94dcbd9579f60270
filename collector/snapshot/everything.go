package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
		groups, lists, err := discovery.ToServerResourcesInterfaceWithContext(c.api.Kubernetes.Discovery()).ServerGroupsAndResourcesWithContext(ctx)
		if _, partial := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); err != nil && !partial {
			return nil, fmt.Errorf("could not list the served APIs: %w", err)
		}
		preferred := map[string]string{"": "v1"}
		for _, group := range groups {
			preferred[group.Name] = group.PreferredVersion.GroupVersion
		}
		found := map[schema.GroupResource]Resource{}
		for _, list := range lists {
			group, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				continue // it has no path
			}
			addServed(found, group, preferred[group.Group] == list.GroupVersion, list.APIResources)
		}
		served := slices.Collect(maps.Values(found))
		served = slices.DeleteFunc(served, func(r Resource) bool { return r.Kind == noKind })
		slices.SortFunc(served, func(a, b Resource) int { return strings.Compare(a.String(), b.String()) })
		return served, nil
	})
}

// noKind is the kind of a resource of which only the status was found so far.
const noKind = "-"

// addServed adds the resources of a version of an API: those of the preferred version replace others.
func addServed(found map[schema.GroupResource]Resource, version schema.GroupVersion, preferred bool, resources []metav1.APIResource) { //nolint:revive // it chooses the version
	for i := range resources {
		of := &resources[i]
		name, isStatus := strings.CutSuffix(of.Name, "/status")
		key := schema.GroupResource{Group: version.Group, Resource: name}
		known, exists := found[key]
		if !exists {
			known.Kind = noKind
		}
		switch {
		case isStatus:
			known.Status = true
		case !strings.Contains(of.Name, "/") && slices.Contains(of.Verbs, "list") && (known.Kind == noKind || preferred):
			known.GroupVersionResource, known.Kind, known.Namespaced = version.WithResource(of.Name), of.Kind, of.Namespaced
		}
		if exists || known.Kind != noKind || isStatus {
			found[key] = known
		}
	}
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
