package snapshot

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// CustomResourceDefinitions are the metadata of all of them, by name. Their
// schemas, which are many megabytes in all, are not read.
func (c *Cluster) CustomResourceDefinitions(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	return c.definitions.get(func() ([]metav1.PartialObjectMetadata, error) {
		page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.metadata(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", options)
		}
		return list(ctx, page, func(definition *metav1.PartialObjectMetadata) { definition.Annotations, definition.Labels = nil, nil })
	})
}
