// Package objects answers: how are objects of YAML documents written to a cluster, without a
// program such as kubectl?
//
// New returns a Writer of a cluster: call Apply with documents, and Patch for what is a part of an
// object or its status.
package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// owner is the field manager of what a Writer applies.
const owner = "tests"

// Writer writes objects to a cluster.
type Writer struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

// New returns a Writer.
func New(config *rest.Config) (*Writer, error) {
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{} // about fields of other feature sets
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Writer{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))}, nil
}

// Apply creates or changes the objects of YAML documents, in their order.
func (w *Writer) Apply(ctx context.Context, documents []byte) error {
	decoder := yaml.NewYAMLToJSONDecoder(bytes.NewReader(documents))
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("objects to apply: %w", err)
		}
		if len(object.Object) == 0 {
			continue // a document without content
		}
		kind := object.GroupVersionKind()
		mapping, err := w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return err
		}
		_, err = w.resource(mapping.Resource, object.GetNamespace()).Apply(ctx, object.GetName(), object,
			metav1.ApplyOptions{FieldManager: owner, Force: true})
		if err != nil {
			return fmt.Errorf("apply %s %s/%s: %w", kind.Kind, object.GetNamespace(), object.GetName(), err)
		}
	}
}

// Object is an object in a cluster, or a subresource of it. Version may be empty: the preferred one.
type Object struct {
	schema.GroupVersionResource

	Namespace, Name string
	// Subresource is empty for the object itself.
	Subresource string
}

// Patch merges JSON into an object (RFC 7386).
func (w *Writer) Patch(ctx context.Context, object Object, patch string) error {
	resource, err := w.mapper.ResourceFor(object.GroupVersionResource)
	if err != nil {
		return err
	}
	var below []string
	if object.Subresource != "" {
		below = []string{object.Subresource}
	}
	_, err = w.resource(resource, object.Namespace).Patch(ctx, object.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{},
		below...)
	if err != nil {
		return fmt.Errorf("patch %s %s/%s: %w", resource.Resource, object.Namespace, object.Name, err)
	}
	return nil
}

// resource returns the client of a resource; of all namespaces if namespace is empty.
func (w *Writer) resource(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return w.client.Resource(resource)
	}
	return w.client.Resource(resource).Namespace(namespace)
}
