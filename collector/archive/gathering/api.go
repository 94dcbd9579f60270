package gathering

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/discovery"

	"github.com/openshift/update-preflight/collector/access"
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

// each are the requests with one for each served resource in the place of one for all of a group.
func (a api) each(requests []access.Request) []access.Request {
	var all []access.Request
	for _, request := range requests {
		if request.Resource != access.All {
			all = append(all, request)
			continue
		}
		for resource := range a.resources {
			if resource.Group == request.Group {
				request.Resource = resource.Name
				all = append(all, request)
			}
		}
	}
	return all
}

// find is the served resource, nil if not served. It returns an error if the resources of its group are unknown.
func (a api) find(resource inventory.Resource) (*served, error) {
	found := a.resources[resource]
	if err := a.failed[resource.Group]; found == nil && err != nil {
		return nil, fmt.Errorf("the resources of the group could not be listed: %w", err)
	}
	return found, nil
}

type source struct {
	reading

	served *served
}

func (g *gatherer) content(raw []byte, of source) (map[string]any, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("an object cannot be parsed: %w", err)
	}
	object["apiVersion"], object["kind"] = of.served.version.String(), cmp.Or[any](object["kind"], of.served.kind)
	if name := (&unstructured.Unstructured{Object: object}).GetName(); name == "" {
		return nil, errors.New("an object has no name")
	}
	reduced, err := g.reducer.Reduce(object, of.resource)
	if err != nil {
		return nil, err
	}
	if g.request.Redact {
		delete(reduced, "binaryData") // of a ConfigMap, whose names cannot be replaced
	}
	return reduced, nil
}

type object struct {
	namespace, name string
	// text is a line of JSON.
	text []byte
}

// encode is the object on one line of JSON, which is YAML, too: it is written and read many times as
// fast as YAML of block style.
func encode(content map[string]any) (object, error) {
	of := unstructured.Unstructured{Object: content}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return object{}, fmt.Errorf("an object cannot be written: %w", err)
	}
	return object{namespace: of.GetNamespace(), name: of.GetName(), text: text.Bytes()}, nil
}
