package monitoring

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	prometheus "github.com/prometheus/client_golang/api"
	"k8s.io/client-go/rest"
)

// maxAnswer bounds an answer, in bytes. A cluster of 1 000 firing alerts has
// about one MiB of them.
const maxAnswer = 16 << 20

// server is a Prometheus, or a Thanos querier.
type server struct {
	// name is its URL without secrets.
	name   string
	client prometheus.Client
}

// reach finds the server, and makes a client for it that has nothing of the
// API server's but the way there.
func reach(ctx context.Context, find Finder) (*server, error) {
	config, err := find(ctx)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, &Error{Reason: "Unreachable", Message: fmt.Sprintf("cannot ask the monitoring: %v", err), Remediation: logIn, Err: err}
	}
	asked, err := prometheus.NewClient(prometheus.Config{Address: config.Host, Client: &http.Client{
		Transport: bounded{transport},
		// A redirect leads to a page for people, which may not see the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, &Error{Reason: "Unreachable", Message: fmt.Sprintf("cannot ask the monitoring: %v", err), Remediation: checkURL, Err: err}
	}
	return &server{name: asked.URL("", nil).Redacted(), client: asked}, nil
}

// get reads one thing. It is always a GET, which the cluster's proxies take for
// reading.
func (s *server) get(ctx context.Context, path string, arguments url.Values) ([]byte, error) {
	asked := s.client.URL(path, nil)
	asked.RawQuery = arguments.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.String(), nil)
	if err != nil {
		return nil, badAnswer(err)
	}
	response, body, err := s.client.Do(ctx, request) //nolint:bodyclose // Do has read and closed it
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, badAnswer(fmt.Errorf("it is larger than %d bytes", tooLarge.Limit))
	}
	if err != nil {
		return nil, s.unreachable(err)
	}
	data, err := parse(response.StatusCode, body)
	return data, wrap(s.name, err)
}

// unreachable leaves out the query that the error repeats.
func (s *server) unreachable(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err
	}
	return &Error{Reason: "Unreachable", Message: fmt.Sprintf("cannot reach %s: %v", s.name, err), Remediation: seeHealth, Err: err}
}

// bounded cuts answers that are too large.
type bounded struct{ transport http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	return response, nil
}
