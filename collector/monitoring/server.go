package monitoring

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	prometheus "github.com/prometheus/client_golang/api"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/signature/outbound"
)

// maxResponse bounds a response, in bytes. The alerts of a cluster with 1 000 firing alerts are about one MiB.
const maxResponse = 16 << 20

// server is a Prometheus, or a Thanos querier.
type server struct {
	// name is its URL without passwords.
	name   string
	client prometheus.Client
}

// reach finds the server, and makes a client for it with the configuration of the Finder only.
func reach(ctx context.Context, find Finder) (*server, error) {
	config, err := find(ctx)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, logIn(Error{Reason: reasonUnreachable, Message: fmt.Sprintf("the credentials for the monitoring cannot be used: %v", err), Err: err})
	}
	client, err := prometheus.NewClient(prometheus.Config{Address: config.Host, Client: &http.Client{
		Transport: boundedTransport{transport},
		// A redirect leads to a page for users, which must not receive the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, checkURL(Error{Reason: reasonUnreachable, Message: fmt.Sprintf("the URL of the monitoring cannot be used: %v", err), Err: err})
	}
	return &server{name: client.URL("", nil).Redacted(), client: client}, nil
}

// get is one request. It is always a GET, which the cluster's proxies treat as reading.
func (s *server) get(ctx context.Context, path string, arguments url.Values) ([]byte, error) {
	target := s.client.URL(path, nil)
	target.RawQuery = arguments.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, badResponse(err)
	}
	response, body, err := s.client.Do(ctx, request) //nolint:bodyclose // Do has read and closed it
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, badResponse(fmt.Errorf("it is larger than %d bytes", tooLarge.Limit))
	}
	if err != nil {
		err = withoutURL(err)
		return nil, checkHealth(Error{Reason: reasonUnreachable, Message: fmt.Sprintf("could not reach %s: %s", s.name, words.Line(err.Error(), maxMessage)), Err: err})
	}
	data, err := parse(response.StatusCode, body)
	if failed, ok := errors.AsType[*Error](err); ok && failed.Reason == ReasonNoMonitoring {
		return nil, err // there is no server to name
	}
	return data, wrap(s.name, err)
}

// boundedTransport bounds the body of responses.
type boundedTransport struct{ next http.RoundTripper }

func (b boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := outbound.NoUpgrade(request, response); err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxResponse)
	return response, nil
}
