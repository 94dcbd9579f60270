package snapshot

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CustomResourceDefinitions are the metadata of all CustomResourceDefinitions, sorted
// by name. Their schemas, which have many megabytes, are not read.
func (c *Cluster) CustomResourceDefinitions(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	return once(ctx, c, "definitions", func(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
		resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.Metadata.Resource(resource).List(ctx, options)
		}
		return list(ctx, page, func(definition *metav1.PartialObjectMetadata) { definition.Annotations, definition.Labels = nil, nil })
	})
}
