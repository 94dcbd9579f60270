package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/openshift/update-preflight/runner/payload"
)

// kinds are the kinds that an API server serves, and those that the target brings.
type kinds struct {
	served map[schema.GroupVersionKind]metav1.APIResource
	// failed are the groups of which it is not known what is served, such as those of an aggregated API without a server.
	failed map[string]error
	// brought are the kinds that the CustomResourceDefinitions of the target define.
	brought map[schema.GroupVersionKind]bool
}

func kindsOf(ctx context.Context, client discovery.DiscoveryInterface, manifests []payload.Definition) (kinds, error) {
	found := kinds{
		served: map[schema.GroupVersionKind]metav1.APIResource{}, failed: map[string]error{}, brought: map[schema.GroupVersionKind]bool{},
	}
	_, lists, err := discovery.ToServerResourcesInterfaceWithContext(client).ServerGroupsAndResourcesWithContext(ctx)
	if partial, ok := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); ok {
		for version, cause := range partial.Groups {
			found.failed[version.Group] = cause
		}
	} else if err != nil {
		return kinds{}, fmt.Errorf("could not list the kinds of the API server: %w", err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		for _, resource := range list.APIResources {
			if err == nil && !strings.Contains(resource.Name, "/") { // not a subresource
				found.served[version.WithKind(resource.Kind)] = resource
			}
		}
	}
	for _, each := range manifests {
		found.bring(each)
	}
	return found, nil
}

// bring adds the kinds of a CustomResourceDefinition, in the versions that the target serves.
func (k kinds) bring(manifest payload.Definition) {
	if manifest.Kind.GroupKind() != definition() || manifest.Deleted {
		return
	}
	decoded, err := manifest.Decode()
	if err != nil {
		return // it is reported as a manifest that cannot be decoded
	}
	for _, version := range decoded.Spec.Versions {
		if version.Served {
			k.brought[schema.GroupVersionKind{Group: decoded.Spec.Group, Version: version.Name, Kind: decoded.Spec.Names.Kind}] = true
		}
	}
}

func definition() schema.GroupKind {
	return schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// resourceOf is where objects of a kind are read and written, and whether they are in namespaces. With an error, the kind is not served,
// or not known to be.
func (k kinds) resourceOf(kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error) {
	found, ok := k.served[kind]
	switch {
	case ok:
		return kind.GroupVersion().WithResource(found.Name), found.Namespaced, nil
	case k.failed[kind.Group] != nil:
		return resource, false, fmt.Errorf("could not read what is served of %s: %w", kind.Group, k.failed[kind.Group])
	}
	return resource, false, fmt.Errorf("neither the API server nor a definition of the release has kind %s of %s", kind.Kind, kind.GroupVersion())
}
