package owned

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/access"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Object names an object of a switch.
type Object struct {
	schema.GroupVersionResource

	// Namespace is empty for an object of the cluster.
	Kind, Namespace, Name string
	// HasStatus is true when the content has a status, which is applied by its own
	// request.
	HasStatus bool
}

func (o Object) named() preflight.Object {
	return preflight.Object{APIVersion: o.GroupVersion().String(), Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// Describe names the object in a message.
func (o Object) Describe() string {
	if o.Namespace == "" {
		return fmt.Sprintf("%s %q", o.Kind, o.Name)
	}
	return fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name)
}

// Requests are those with these verbs for the object and, to patch, for its status.
func (o Object) Requests(verbs ...string) []access.Request {
	like := access.Request{Group: o.Group, Resource: o.Resource, Namespace: o.Namespace, Name: o.Name}
	requests := access.Verbs(like, verbs...)
	for _, request := range requests {
		if request.Verb == "patch" && o.HasStatus {
			request.Subresource = "status"
			requests = append(requests, request)
		}
	}
	return requests
}

// Parse parses the contents of objects, one manifest each.
func Parse(manifests ...string) ([]*unstructured.Unstructured, error) {
	var parsed []*unstructured.Unstructured
	for _, manifest := range manifests {
		content := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &content.Object); err != nil {
			return nil, err
		}
		parsed = append(parsed, content)
	}
	return parsed, nil
}
