package gathering

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/discovery"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/cluster"
)

const (
	// firstPage is the number of objects of the first page of a list: each can have a megabyte.
	firstPage = 10
	// pageSize is the size at which pages are aimed, in bytes, and maxPage bounds their objects.
	pageSize, maxPage = 256 << 10, 500
	// maxResponse bounds a page: a server that does not read in pages sends the whole list.
	maxResponse = 64 << 20
	// maxObjects bounds the objects of a resource: three times as many pods as Kubernetes supports.
	maxObjects = 500_000
	// stepObjects is the number of objects after which the progress is reported.
	stepObjects = 1000
)

func (g *gatherer) get(ctx context.Context, of source) error {
	body, err := fetch(ctx, g.cluster, of.served.path(of.resource.Name, of.namespace)+"/"+of.name)
	if err != nil {
		return err
	}
	content, err := g.content(body, of)
	if err != nil {
		return err
	}
	g.objects++
	return g.into.single(content, of)
}

// cursor is how far a list was read.
type cursor struct {
	// limit and token (next) of the next page.
	limit int
	next  string
	// revision is the resourceVersion of the page that was read last.
	revision string
	// count is the number of objects, and reported the number at the last step.
	count, reported int
}

// getAll gathers all objects of a resource, or of a namespace.
func (g *gatherer) getAll(ctx context.Context, of source) error {
	into := g.into.list(of)
	at := cursor{limit: firstPage}
	for {
		err := at.read(ctx, g.cluster, of.served.path(of.resource.Name, of.namespace),
			func(item []byte) error { return g.addItem(item, of, into) })
		if err != nil {
			return errors.Join(into.abandon(), err)
		}
		if at.count >= at.reported+stepObjects {
			at.reported = at.count
			g.step(fmt.Sprintf("reading %s: %d so far", of.resource, at.count))
		}
		if at.next == "" {
			return into.finish(at.revision)
		}
	}
}

func (g *gatherer) addItem(item []byte, of source, into sink) error {
	content, err := g.content(item, of)
	if err != nil {
		return err
	}
	g.objects++
	return into.add(content)
}

// read reads the next page, and calls do with each of its objects as it arrives: a server that does not read
// in pages sends the whole list. The object ends with the call.
func (c *cursor) read(ctx context.Context, from *cluster.Cluster, path string, do func(item []byte) error) error {
	body, err := open(ctx, from, path, map[string]string{"limit": strconv.Itoa(c.limit), "continue": c.next})
	if token, ok := expired(err); ok && c.next != "" && token != "" {
		// The rest of the list as it is now: objects of different times are no worse than other lists.
		body, err = open(ctx, from, path, map[string]string{"limit": strconv.Itoa(c.limit), "continue": token})
	}
	if err != nil {
		return err
	}
	bounded := &io.LimitedReader{R: body, N: maxResponse + 1}
	before := c.count
	err = c.decode(json.NewDecoder(bounded), do)
	switch size := maxResponse + 1 - bounded.N; {
	case bounded.N == 0:
		err = fmt.Errorf("the response is larger than %d bytes", maxResponse)
	case err == nil && c.count > before:
		c.limit = min(max(pageSize*(c.count-before)/int(size), 1), maxPage)
	}
	return errors.Join(err, body.Close())
}

func (c *cursor) decode(from *json.Decoder, do func(item []byte) error) error {
	var metadata metav1.ListMeta
	err := members(from, func(key string) error {
		switch key {
		case "metadata":
			return from.Decode(&metadata)
		case "items":
			return c.items(from, do)
		}
		var ignored json.RawMessage
		return from.Decode(&ignored)
	})
	c.next, c.revision = metadata.Continue, metadata.ResourceVersion
	return err
}

// items calls do with each item of a list, which is null where it has none.
func (c *cursor) items(from *json.Decoder, do func(item []byte) error) error {
	if begin, err := from.Token(); err != nil || begin == nil {
		return parsed(err)
	} else if begin != json.Delim('[') {
		return parsed(errors.New("its items are not a list"))
	}
	for from.More() {
		var item json.RawMessage
		if err := from.Decode(&item); err != nil {
			return parsed(err)
		}
		if c.count++; c.count > maxObjects {
			return fmt.Errorf("there are more than %d objects", maxObjects)
		}
		if err := do(item); err != nil {
			return err
		}
	}
	_, err := from.Token()
	return parsed(err)
}

// members calls do at the value of each key of an object, which it reads.
func members(from *json.Decoder, do func(key string) error) error {
	if begin, err := from.Token(); err != nil || begin != json.Delim('{') {
		return parsed(cmp.Or(err, errors.New("it is not an object")))
	}
	for from.More() {
		key, err := from.Token()
		if err != nil {
			return parsed(err)
		}
		name, _ := key.(string) // keys are strings
		if err := do(name); err != nil {
			return err
		}
	}
	_, err := from.Token()
	return parsed(err)
}

// parsed is the error of a list that cannot be parsed; nil for nil.
func parsed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the list cannot be parsed: %w", err)
}

// expired is the token by which a list continues whose own token has expired.
func expired(err error) (string, bool) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsResourceExpired(err) {
		return "", false
	}
	return status.ErrStatus.Continue, true
}

func open(ctx context.Context, c *cluster.Cluster, path string, parameters map[string]string) (io.ReadCloser, error) {
	request := c.Kubernetes.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json")
	for name, value := range parameters {
		if value != "" {
			request = request.Param(name, value)
		}
	}
	return request.Stream(ctx)
}

func fetch(ctx context.Context, c *cluster.Cluster, path string) ([]byte, error) {
	stream, err := open(ctx, c, path, nil)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(stream, maxResponse+1))
	if err := errors.Join(err, stream.Close()); err != nil {
		return nil, err
	}
	if len(body) > maxResponse {
		return nil, fmt.Errorf("the response is larger than %d bytes", maxResponse)
	}
	return body, nil
}

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
