package snapshot

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// notCopied leaves out the copies of ClusterServiceVersions that OLM makes in every
// namespace that an operator watches.
const notCopied = "!olm.copiedFrom"

// ClusterServiceVersions are the metadata of the operators that OLM installed, sorted
// by namespace and name. Their content, many kilobytes each, is not read.
func (c *Cluster) ClusterServiceVersions(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	return once(ctx, c, "operatorsOfOLM", func(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
		resource := schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "clusterserviceversions"}
		page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = notCopied
			return c.api.Metadata.Resource(resource).List(ctx, options)
		}
		return list(ctx, page, func(*metav1.PartialObjectMetadata) {})
	})
}
