package snapshot

import (
	"cmp"
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxWriters bounds the writers of one API that are kept.
const maxWriters = 20

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
