package rights

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// API is the resources that an API server serves.
type API struct {
	// Unserved are the versions of APIs whose resources the API server could not list, sorted.
	Unserved []string

	// resources are the names of the resources that can be read, by group.
	resources map[string][]string
}

// Discover lists the resources of all API groups. A group that the API server could not list is no error.
func Discover(ctx context.Context, client discovery.ServerResourcesInterface) (API, error) {
	lists, unserved, err := served(ctx, client)
	if err != nil {
		return API{}, err
	}
	found := map[string]map[string]bool{}
	for _, list := range lists {
		group := groupOf(list.GroupVersion)
		for _, resource := range list.APIResources {
			if len(readVerbs(resource.Verbs)) == 0 {
				continue
			}
			if found[group] == nil {
				found[group] = map[string]bool{}
			}
			found[group][resource.Name] = true
		}
	}
	api := API{Unserved: unserved, resources: map[string][]string{}}
	for group, resources := range found {
		api.resources[group] = slices.Sorted(maps.Keys(resources))
	}
	return api, nil
}

// served are the resources of all APIs, and the versions whose resources the API server could not list.
func served(ctx context.Context, api discovery.ServerResourcesInterface) ([]*metav1.APIResourceList, []string, error) {
	_, lists, err := discovery.ToServerResourcesInterfaceWithContext(api).ServerGroupsAndResourcesWithContext(ctx)
	failed, partial := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err)
	if err != nil && !partial {
		return nil, nil, fmt.Errorf("could not list the APIs of the API server: %w", err)
	}
	var unserved []string
	if partial {
		for version := range failed.Groups {
			unserved = append(unserved, version.String())
		}
	}
	slices.Sort(unserved)
	return lists, unserved, nil
}

// groupOf is the group of "GROUP/VERSION"; the core group has only a version.
func groupOf(groupVersion string) string {
	group, _, found := strings.Cut(groupVersion, "/")
	if !found {
		return ""
	}
	return group
}

// readVerbs returns the verbs that read, in a fixed order.
func readVerbs(verbs []string) []string {
	var reads []string
	for _, verb := range []string{"get", "list", "watch"} {
		if slices.Contains(verbs, verb) || slices.Contains(verbs, "*") {
			reads = append(reads, verb)
		}
	}
	return reads
}

// kubeVirtConnections is the API group whose resources connect to virtual machines.
const kubeVirtConnections = "subresources.kubevirt.io"

// connections are the subresources that are a connection rather than an object, in any API group.
func connections() []string {
	return []string{"exec", "attach", "portforward", "proxy", "console", "vnc", "usbredir", "vsock"}
}

// Connects reports whether a resource of an API group is a connection rather than an
// object, so that the verb get may execute commands. Wildcards include connections:
// "*" in the groups of Kubernetes' and KubeVirt's connections, and "RESOURCE/*". Below
// nodes only the status is an object: the kubelet authorizes requests by the other
// subresources.
func Connects(group, resource string) bool {
	name, subresource, _ := strings.Cut(resource, "/")
	switch {
	case subresource == "*" || slices.Contains(connections(), subresource):
		return true
	case name == "nodes" && subresource != "":
		return subresource != "status"
	case resource == "*":
		return slices.Contains([]string{"", "*", kubeVirtConnections}, group)
	}
	return false
}
