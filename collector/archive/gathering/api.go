package gathering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/openshift/update-preflight/collector/archive/inventory"
)

type served struct {
	version schema.GroupVersion
	kind    string
	// namespaced is false for cluster-scoped objects.
	namespaced bool
}

// path of the objects in a namespace; an empty one means all.
func (s served) path(resource, namespace string) string {
	path := "/apis/" + s.version.String()
	if s.version.Group == "" {
		path = "/api/" + s.version.Version
	}
	if namespace != "" && s.namespaced {
		path += "/namespaces/" + namespace
	}
	return path + "/" + resource
}

type api struct {
	resources map[inventory.Resource]*served
	// failed are the groups whose resources are not known, with the cause.
	failed map[string]error
}

func discoverAPI(ctx context.Context, client discovery.ServerResourcesInterface) (api, error) {
	groups, lists, err := discovery.ToServerResourcesInterfaceWithContext(client).ServerGroupsAndResourcesWithContext(ctx)
	known := api{resources: map[inventory.Resource]*served{}, failed: map[string]error{}}
	failed, partial := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err)
	if err != nil && !partial {
		return api{}, fmt.Errorf("could not list the APIs of the API server: %w", err)
	}
	if partial {
		for version, cause := range failed.Groups {
			known.failed[version.Group] = cause
		}
	}
	sortPreferred(groups, lists)
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // none that can be requested
		}
		for _, each := range list.APIResources {
			key := inventory.Resource{Group: version.Group, Name: each.Name}
			if known.resources[key] == nil && !strings.Contains(each.Name, "/") {
				known.resources[key] = &served{version: version, kind: each.Kind, namespaced: each.Namespaced}
			}
		}
	}
	return known, nil
}

// sortPreferred sorts the lists: the preferred versions of the groups come first.
func sortPreferred(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) {
	preferred := map[string]bool{}
	for _, group := range groups {
		preferred[group.PreferredVersion.GroupVersion] = true
	}
	slices.SortStableFunc(lists, func(a, b *metav1.APIResourceList) int {
		switch {
		case preferred[a.GroupVersion] == preferred[b.GroupVersion]:
			return 0
		case preferred[a.GroupVersion]:
			return -1
		}
		return 1
	})
}

// find is the served resource, nil if not served. It returns an error if the resources of its group are unknown.
func (a api) find(resource inventory.Resource) (*served, error) {
	found := a.resources[resource]
	if err := a.failed[resource.Group]; found == nil && err != nil {
		return nil, fmt.Errorf("the resources of the group could not be listed: %w", err)
	}
	return found, nil
}
