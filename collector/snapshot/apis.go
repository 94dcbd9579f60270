package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/apiuse"
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

// DeprecatedAPIs are those that were requested from one API server since it started,
// sorted by name. The server does not count the requests, and does not name the
// clients.
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

// WritersOf are the field managers that wrote objects of the resource in another version
// of its group, according to metadata.managedFields: those with the most objects first,
// at most 20. Only metadata is read, through the version of the resource, since a request
// through the other one would count as its use.
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
