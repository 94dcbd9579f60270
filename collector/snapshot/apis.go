package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/openshift/update-preflight/collector/apiuse"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gap"
)

// apiRequestCountPage is the size of a page of APIRequestCounts, each of which has
// the requests of a day by hour, node, user and verb: up to 1.5 MiB.
const apiRequestCountPage = 20

// maxWriters bounds the writers of one API that are kept.
const maxWriters = 20

// APIUses are the APIs that a release removes, used or not, sorted by name, according
// to the APIRequestCounts. The hours of use cover the day before now.
func (c *Cluster) APIUses(ctx context.Context, now time.Time) ([]apiuse.Use, error) {
	return once(ctx, c, "apiUses", func(ctx context.Context) ([]apiuse.Use, error) {
		resource := apiserverv1.GroupVersion.WithResource("apirequestcounts")
		page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.Limit = apiRequestCountPage
			return c.api.Dynamic.Resource(resource).List(ctx, options)
		}
		var uses []apiuse.Use
		err := each(ctx, page, func(object *unstructured.Unstructured) error {
			var count apiserverv1.APIRequestCount
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &count); err != nil {
				return fmt.Errorf("the APIRequestCount %s cannot be decoded: %w", object.GetName(), err)
			}
			if count.Status.RemovedInRelease != "" {
				uses = append(uses, apiuse.Of(&count, now))
			}
			return nil
		})
		return uses, err
	})
}

// DeprecatedAPIs returns the deprecated APIs that were requested from one API server since it started, sorted by
// name. The server does not count the requests, and does not name the clients.
func (c *Cluster) DeprecatedAPIs(ctx context.Context) ([]apiuse.Deprecated, error) {
	return once(ctx, c, "deprecatedAPIs", func(ctx context.Context) ([]apiuse.Deprecated, error) {
		metrics, err := c.api.Kubernetes.Discovery().RESTClient().Get().AbsPath("/metrics").Stream(ctx)
		if err != nil {
			return nil, err
		}
		found, err := apiuse.ReadMetrics(metrics)
		return found, errors.Join(err, metrics.Close())
	})
}

// Writer is a field manager that wrote objects in one version of their API.
type Writer struct {
	Manager string
	// Objects counts the objects that have fields of the manager in that version.
	Objects int
}

// WritersOf returns the field managers that wrote objects of the resource in another version of its group,
// according to metadata.managedFields: managers of the most objects first, at most 20. Only metadata is read,
// through the version of the resource, since a request through the other one would count as its use.
func (c *Cluster) WritersOf(ctx context.Context, resource schema.GroupVersionResource, version string) ([]Writer, error) {
	return once(ctx, c, "writers "+resource.String()+" "+version, func(ctx context.Context) ([]Writer, error) {
		page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.Metadata.Resource(resource).List(ctx, options)
		}
		written := schema.GroupVersion{Group: resource.Group, Version: version}.String()
		found := map[string]int{}
		err := each(ctx, page, func(object *metav1.PartialObjectMetadata) error {
			managers := map[string]bool{}
			for _, fields := range object.ManagedFields {
				if fields.APIVersion == written {
					managers[fields.Manager] = true
				}
			}
			for manager := range managers {
				found[manager]++
			}
			return nil
		})
		return firstWriters(found), err
	})
}

func firstWriters(found map[string]int) []Writer {
	writers := make([]Writer, 0, len(found))
	for _, manager := range slices.Sorted(maps.Keys(found)) {
		writers = append(writers, Writer{Manager: manager, Objects: found[manager]})
	}
	slices.SortStableFunc(writers, func(a, b Writer) int { return cmp.Compare(b.Objects, a.Objects) })
	return writers[:min(len(writers), maxWriters)]
}

// Resource is one that a cluster serves, in the version that its API server prefers.
type Resource struct {
	schema.GroupVersionResource

	Kind       string
	Namespaced bool
	// Status is true where objects have a status, by a subresource.
	Status bool
}

// Served returns the resources whose objects can be listed, sorted. An API whose server does not respond has none;
// its APIService reports that.
func (c *Cluster) Served(ctx context.Context) ([]Resource, error) {
	return once(ctx, c, "served resources", func(ctx context.Context) ([]Resource, error) {
		groups, lists, err := discovery.ToServerResourcesInterfaceWithContext(c.api.Kubernetes.Discovery()).ServerGroupsAndResourcesWithContext(
			ctx)
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

// addServed adds the resources of a version of an API: the preferred version replaces others.
func addServed(found map[schema.GroupResource]Resource, version schema.GroupVersion, preferred bool, resources []metav1.APIResource) {
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
var ErrMany = errors.New("there are more objects than oc-preflight reads")

// Each reads the objects of a resource page by page, and keeps none. If there are more than most, it reads the
// first ones, and returns ErrMany.
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

// maxObjects bounds the objects of one resource: ten times as many as the nodes that
// Kubernetes supports, and more than of any other resource that is read.
const maxObjects = 50_000

// list reads all pages of a list; keep drops the fields of an object that are not
// kept. More than maxObjects are an error, since a part of them would look like all.
func list[T any, P interface {
	*T
	runtime.Object
	metav1.Object
}](ctx context.Context, page pager.ListPageFunc, keep func(P)) ([]T, error) {
	var all []T
	err := each(ctx, page, func(object P) error {
		trim(object)
		keep(object)
		all = append(all, *object)
		return nil
	})
	return all, err
}

// listAs is list for an API without a typed client: every object is decoded as a T.
// One that cannot be is an error that names it.
func listAs[T any](ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, keep func(*T)) ([]T, error) {
	return listPages(ctx, client, resource, 0, func(object *T) bool {
		keep(object)
		return true
	})
}

// listPages is listAs with pages of that size (0: the default); it keeps the objects for which keep is true.
func listPages[T any](ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, size int64,
	keep func(*T) bool,
) ([]T, error) {
	page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if size > 0 {
			options.Limit = size
		}
		return client.Resource(resource).List(ctx, options)
	}
	var all []T
	err := each(ctx, page, func(object *unstructured.Unstructured) error {
		trim(object)
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
			return fmt.Errorf("%s %s/%s cannot be decoded: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
		}
		if keep(&typed) {
			all = append(all, typed)
		}
		return nil
	})
	return all, err
}

func each[P any](ctx context.Context, page pager.ListPageFunc, do func(P) error) error {
	pages := pager.New(page)
	pages.PageBufferSize = 1
	count := 0
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		object, ok := item.(P)
		if !ok {
			return fmt.Errorf("the list contains a %T", item)
		}
		if count++; count > maxObjects {
			return fmt.Errorf("the list contains more than %d objects", maxObjects)
		}
		return do(object)
	})
}

// trim drops fields of an object that no check reads.
func trim(object metav1.Object) {
	if !judgedByWriters(object) {
		object.SetManagedFields(nil)
	}
	annotations := object.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	object.SetAnnotations(annotations)
}

// judgedByWriters is true for an object of which checks read who has written it: see PausedBy and HandMade.
func judgedByWriters(object metav1.Object) bool {
	of, ok := object.(*unstructured.Unstructured)
	return ok && slices.Contains([]string{"MachineConfigPool", "SecurityContextConstraints", "NetworkPolicy", "ResourceQuota", "LimitRange"},
		of.GetKind())
}
