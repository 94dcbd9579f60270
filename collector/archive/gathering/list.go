package gathering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

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
func (g *gatherer) get(ctx context.Context, of source) error {
	body, err := fetch(ctx, g.cluster, of.served.path(of.resource.Name, of.namespace)+"/"+of.name, nil)
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
	// limit is that of the next page, and next its token.
	limit int
	next  string
	// revision is the resourceVersion of the page that was read last.
	revision string
	// count is the number of objects, and reported that of the last step.
	count, reported int
}

// getAll gathers all objects of a resource or, with a namespace, those of the namespace.
func (g *gatherer) getAll(ctx context.Context, of source) error {
	into := g.into.list(of)
	at := cursor{limit: firstPage}
	for {
		items, err := at.read(ctx, g.cluster, of.served.path(of.resource.Name, of.namespace))
		for _, item := range items {
			if err = g.addItem(item, of, into); err != nil {
				break
			}
		}
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

// read reads the next page.
func (c *cursor) read(ctx context.Context, from *cluster.Cluster, path string) ([]json.RawMessage, error) {
	body, err := fetch(ctx, from, path, map[string]string{"limit": strconv.Itoa(c.limit), "continue": c.next})
	if token, ok := expired(err); ok && c.next != "" && token != "" {
		// The rest of the list as it is now: objects of different times are no worse than those of other lists.
		body, err = fetch(ctx, from, path, map[string]string{"limit": strconv.Itoa(c.limit), "continue": token})
	}
	if err != nil {
		return nil, err
	}
	var read page
	if err := json.Unmarshal(body, &read); err != nil {
		return nil, fmt.Errorf("the list cannot be parsed: %w", err)
	}
	if c.count += len(read.Items); c.count > maxObjects {
		return nil, fmt.Errorf("there are more than %d objects", maxObjects)
	}
	if len(read.Items) > 0 {
		c.limit = min(max(pageSize*len(read.Items)/len(body), 1), maxPage)
	}
	c.next, c.revision = read.Metadata.Continue, read.Metadata.ResourceVersion
	return read.Items, nil
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
