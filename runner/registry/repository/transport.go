package repository

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
)

const (
	maxRedirects = 5
	// maxErrorBytes bounds a response that is not content, such as an error.
	maxErrorBytes = 64 << 10
)

// checkRedirect bounds redirects and rejects those into a private network.
func checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if host := next.URL.Hostname(); isPrivate(host) && !isPrivate(via[0].URL.Hostname()) {
		return fmt.Errorf("redirect into a private network: %q", host)
	}
	return nil
}

// isPrivate reports whether the host is an address without global meaning, for
// example of a cloud's metadata service. A name whose last label starts with a
// digit (not allowed by RFC 1123, 2.1) counts as one: some resolvers parse it as
// an address.
func isPrivate(host string) bool {
	host, _, _ = strings.Cut(host, "%")
	address, err := netip.ParseAddr(host)
	if err != nil {
		last := host[strings.LastIndexByte(host, '.')+1:]
		return last == "" || last[0] >= '0' && last[0] <= '9'
	}
	address = address.Unmap()
	return address.IsLoopback() || address.IsPrivate() || address.IsLinkLocalUnicast() || address.IsLinkLocalMulticast() || address.IsUnspecified()
}

// pingKey marks the context of requests whose response go-containerregistry reads
// in full and discards (pkg/v1/remote/transport/ping.go).
type pingKey struct{}

// boundTransport bounds the responses of such requests. It rejects requests of a public
// registry into a private network, also those that are not a redirect: of a registry, a
// client also requests the URL that it names as its token server.
type boundTransport struct {
	registry string // its host
	next     http.RoundTripper
}

func (p boundTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if host := request.URL.Hostname(); isPrivate(host) && !isPrivate(p.registry) {
		return nil, fmt.Errorf("the registry %q refers to a private network: %q", p.registry, host)
	}
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
