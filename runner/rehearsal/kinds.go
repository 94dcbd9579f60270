package rehearsal

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/openshift/update-preflight/runner/payload"
)

// kinds are the kinds that an API server serves, and those that the target brings.
type kinds struct {
	served meta.RESTMapper
	// failed are the groups of which it is not known what is served, such as those of an aggregated API without a server.
	failed map[string]error
	// brought are the kinds that the CustomResourceDefinitions of the target define.
	brought map[schema.GroupVersionKind]bool
}

func kindsOf(ctx context.Context, client discovery.DiscoveryInterface, manifests []payload.Definition) (kinds, error) {
	found := kinds{failed: map[string]error{}, brought: map[schema.GroupVersionKind]bool{}}
	groups, lists, err := discovery.ToServerResourcesInterfaceWithContext(client).ServerGroupsAndResourcesWithContext(ctx)
	if partial, ok := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); ok {
		for version, cause := range partial.Groups {
			found.failed[version.Group] = cause
		}
	} else if err != nil {
		return kinds{}, fmt.Errorf("could not list the kinds of the API server: %w", err)
	}
	all := make([]*restmapper.APIGroupResources, 0, len(groups))
	for _, group := range groups {
		of := &restmapper.APIGroupResources{Group: *group, VersionedResources: map[string][]metav1.APIResource{}}
		for _, list := range lists {
			if version, err := schema.ParseGroupVersion(list.GroupVersion); err == nil && version.Group == group.Name {
				of.VersionedResources[version.Version] = list.APIResources
			}
		}
		all = append(all, of)
	}
	found.served = restmapper.NewDiscoveryRESTMapper(all)
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

// mapping is where objects of a kind are read and written. With an error, it is not served, or not known to be.
func (k kinds) mapping(of *unstructured.Unstructured) (*meta.RESTMapping, error) {
	kind := of.GroupVersionKind()
	found, err := k.served.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil && k.failed[kind.Group] != nil {
		return nil, fmt.Errorf("could not read what is served of %s: %w", kind.Group, k.failed[kind.Group])
	}
	return found, err
}
