package snapshot

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// notCopied leaves out the ClusterServiceVersions that OLM copied into every
// namespace that an operator watches.
const notCopied = "!olm.copiedFrom"

// ClusterServiceVersions are the metadata of the operators that OLM installed,
// by namespace and name. The rest of them, which is many kilobytes each, is not
// read.
func (c *Cluster) ClusterServiceVersions(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	return c.operatorsOfOLM.get(func() ([]metav1.PartialObjectMetadata, error) {
		page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = notCopied
			return c.metadata(ctx, "/apis/operators.coreos.com/v1alpha1/clusterserviceversions", options)
		}
		return list(ctx, page, func(*metav1.PartialObjectMetadata) {})
	})
}

// metadata lists the metadata of the objects at a path.
func (c *Cluster) metadata(ctx context.Context, path string, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	data, err := c.clients.Kubernetes.Discovery().RESTClient().Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").
		VersionedParams(&options, metav1.ParameterCodec).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	found := &metav1.PartialObjectMetadataList{}
	return found, json.Unmarshal(data, found)
}
