package repository

import (
	"fmt"
	"io"
	"net/http"
)

const (
	maxRedirects = 5
	// maxErrorBytes bounds a response that is not content, such as an error.
	maxErrorBytes = 64 << 10
)

// checkRedirect bounds redirects. The transport decides where they may lead.
func checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// pingKey marks the context of requests whose response go-containerregistry reads
// in full and discards (pkg/v1/remote/transport/ping.go).
type pingKey struct{}

// boundTransport bounds the responses of such requests.
type boundTransport struct{ next http.RoundTripper }

func (p boundTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(request)
	if err == nil && request.Context().Value(pingKey{}) != nil {
		response.Body = limitedBody(response.Body)
	}
	return response, err
}

// limitedBody is the first maxErrorBytes bytes of a body.
func limitedBody(body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, maxErrorBytes), body}
}
