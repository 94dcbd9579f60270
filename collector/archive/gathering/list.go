package gathering

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/archive/layout"
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

// page is a part of a list.
type page struct {
	Metadata metav1.ListMeta   `json:"metadata"`
	Items    []json.RawMessage `json:"items"`
}

// get gathers one object.
func (g *gatherer) get(ctx context.Context, r reading, found *served) error {
	body, err := fetch(ctx, g.cluster, found.path(r.resource.Name, r.namespace)+"/"+r.name, nil)
	if err != nil {
		return err
	}
	object, err := g.object(body, r, found)
	if err != nil {
		return err
	}
	place := layout.Place{Group: r.resource.Group, Resource: r.resource.Name, Namespace: object.namespace, Name: object.name}
	g.objects++
	return g.write(place.Path(), object.text)
}

// list gathers all objects of a resource or, with a namespace, those of the namespace.
func (g *gatherer) list(ctx context.Context, r reading, found *served) error {
	into := &lists{gatherer: g, reading: r, served: found, ended: map[string]bool{}}
	count, reported, limit, next := 0, 0, firstPage, ""
	for {
		body, err := fetch(ctx, g.cluster, found.path(r.resource.Name, r.namespace), map[string]string{"limit": strconv.Itoa(limit), "continue": next})
		if token, ok := expired(err); ok && next != "" && token != "" {
			next = token // the rest of the list as it is now: objects of different times are no worse than those of other lists
			continue
		}
		if err != nil {
			return errors.Join(into.abandon(), err)
		}
		var read page
		if err := json.Unmarshal(body, &read); err != nil {
			return errors.Join(into.abandon(), fmt.Errorf("the list cannot be parsed: %w", err))
		}
		if count += len(read.Items); count > maxObjects {
			return errors.Join(into.abandon(), fmt.Errorf("there are more than %d objects", maxObjects))
		}
		for _, item := range read.Items {
			if err := into.add(item); err != nil {
				return errors.Join(into.abandon(), err)
			}
		}
		if len(read.Items) > 0 {
			limit = min(max(pageSize*len(read.Items)/len(body), 1), maxPage)
		}
		if count >= reported+stepObjects {
			reported = count
			g.step(fmt.Sprintf("reading %s: %d so far", r.resource, count))
		}
		if next = read.Metadata.Continue; next == "" {
			return into.finish()
		}
	}
}

// expired is the token by which a list continues whose own token has expired.
func expired(err error) (string, bool) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsResourceExpired(err) {
		return "", false
	}
	return status.ErrStatus.Continue, true
}

// fetch reads a response.
func fetch(ctx context.Context, c *cluster.Cluster, path string, parameters map[string]string) ([]byte, error) {
	request := c.Kubernetes.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json")
	for name, value := range parameters {
		if value != "" {
			request = request.Param(name, value)
		}
	}
	return readBounded(ctx, request)
}

func readBounded(ctx context.Context, request *rest.Request) ([]byte, error) {
	stream, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(stream, maxResponse+1))
	if err := errors.Join(err, stream.Close()); err != nil {
		return nil, err
	}
	if len(body) > maxResponse {
		return nil, fmt.Errorf("the response has more than %d bytes", maxResponse)
	}
	return body, nil
}

// object is one object as the archive has it.
type object struct {
	namespace, name string
	// text is a line of JSON.
	text []byte
}

func (g *gatherer) object(raw []byte, r reading, found *served) (object, error) {
	var content map[string]any
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return object{}, fmt.Errorf("an object cannot be parsed: %w", err)
	}
	content["apiVersion"], content["kind"] = found.version.String(), cmp.Or[any](content["kind"], found.kind)
	reduce(content, r.resource)
	if g.names != nil {
		delete(content, "binaryData") // of a ConfigMap, whose names cannot be replaced
		g.names.Object(content)
	}
	return encode(content)
}
