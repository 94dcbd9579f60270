// Package updateservice answers: which graph does an update service have?
//
// Requests carry no credentials: the protocol has none. The ID of a cluster is sent only
// by a caller that sets it.
//
// Source: openshift/cincinnati docs/design/openshift.md, "Request" and "Errors".
package updateservice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/words"
)

// Default is the public update service.
const Default = "https://api.openshift.com/api/upgrades_info/v1/graph"

const (
	timeout = 30 * time.Second
	// maxError bounds the answer of a service that failed, in bytes.
	maxError = 64 << 10
	// maxText bounds a text of the service in an error, in bytes.
	maxText = 512
)

// Query is a request to a service.
type Query struct {
	// URL locates the graph, by http or https.
	URL string
	// Channel, Architecture and Version are required.
	Channel, Architecture, Version string
	// ID is the ID of the cluster; empty to withhold it.
	ID string
}

// Check returns an error for a URL that does not belong to a service.
func Check(address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("%q is not a URL", words.Line(address, maxText))
	}
	if parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return fmt.Errorf("%q is not a URL with http or https and a host", words.Line(parsed.Redacted(), maxText))
	}
	return nil
}

// Graph requests the graph of a channel, and also returns the content. The error names the service, and contains
// the service's own message if it failed.
func Graph(ctx context.Context, transport http.RoundTripper, query Query) (*graph.Graph, []byte, error) {
	if err := Check(query.URL); err != nil {
		return nil, nil, err
	}
	address, err := url.Parse(query.URL)
	if err != nil {
		return nil, nil, err
	}
	content, err := get(ctx, transport, query.address(*address))
	if err != nil {
		return nil, nil, fmt.Errorf("could not read the graph of channel %q from the update service %s: %w", query.Channel, address.Redacted(),
			err)
	}
	parsed, err := graph.Parse(query.Channel, content)
	if err != nil {
		return nil, nil, fmt.Errorf("the update service %s: %w", address.Redacted(), err)
	}
	return parsed, content, nil
}

// address adds the parameters, beside those that the URL has.
func (q Query) address(base url.URL) string {
	parameters := base.Query()
	parameters.Set("channel", q.Channel)
	parameters.Set("arch", q.Architecture)
	parameters.Set("version", q.Version)
	if q.ID != "" {
		parameters.Set("id", q.ID)
	}
	base.RawQuery = parameters.Encode()
	return base.String()
}

func get(ctx context.Context, transport http.RoundTripper, address string) (_ []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, withoutURL(err)
	}
	request.Header.Set("Accept", "application/json")
	client := http.Client{Transport: transport}
	response, err := client.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, failure(response)
	}
	return io.ReadAll(io.LimitReader(response.Body, graph.MaxBytes+1)) // Parse refuses what is larger
}

// withoutURL removes the URL that an error of net/http repeats: it may have a password, and the ID of the cluster.
func withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

func failure(response *http.Response) error {
	var reported struct {
		Kind  string `json:"kind"`
		Value string `json:"value"`
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxError))
	if err != nil || json.Unmarshal(content, &reported) != nil || reported.Kind == "" {
		return fmt.Errorf("HTTP status %s", words.Line(response.Status, maxText))
	}
	return fmt.Errorf("HTTP status %s: %s: %s", words.Line(response.Status, maxText), words.Line(reported.Kind, maxText),
		words.Line(reported.Value, maxText))
}

// Key identifies a graph that is stored.
type Key struct {
	// URL locates the service, without the parameters of a request.
	URL                   string
	Channel, Architecture string
}

// Store stores the graphs of update services.
type Store interface {
	// Put stores a graph that was received at that time.
	Put(key Key, received time.Time, content []byte) error
	// Get returns a stored graph, and when it was received; false if none is stored.
	Get(key Key) (content []byte, received time.Time, ok bool)
}
