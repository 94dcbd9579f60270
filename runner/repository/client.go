package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	maxRedirects = 5
	// maxWords is what is read of an answer that is no content.
	maxWords = 64 << 10
)

// ask sends one request. An answer that is not the thing is an error.
func (r *Repository) ask(ctx context.Context, method, path string) (*http.Response, error) {
	location := url.URL{Scheme: r.name.Scheme(), Host: r.name.RegistryStr(), Path: "/v2/" + r.name.RepositoryStr() + "/" + path}
	request, err := http.NewRequestWithContext(ctx, method, location.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", strings.Join([]string{
		string(types.OCIManifestSchema1), string(types.DockerManifestSchema2), string(types.OCIImageIndex), string(types.DockerManifestList), "*/*",
	}, ","))
	response, err := r.client.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		failed.URL = location.String() // that of a redirect can be a credential in itself
	}
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	response.Body = shortened(response.Body)
	return nil, errors.Join(transport.CheckError(response, http.StatusOK), response.Body.Close())
}

// checkRedirect is asked before each one.
func checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if host := next.URL.Hostname(); isInside(host) && !isInside(via[0].URL.Hostname()) {
		return fmt.Errorf("a redirect into a private network, to %q", host)
	}
	return nil
}

// isInside says whether the host is an address that only those inside of a
// network mean the same host by, the metadata services of clouds among them. The
// last part of a name has no digit in front (RFC 1123, 2.1): that would be an
// address in a way to write it that only some resolvers know.
func isInside(host string) bool {
	host, _, _ = strings.Cut(host, "%")
	address, err := netip.ParseAddr(host)
	if err != nil {
		last := host[strings.LastIndexByte(host, '.')+1:]
		return last == "" || last[0] >= '0' && last[0] <= '9'
	}
	address = address.Unmap()
	return address.IsLoopback() || address.IsPrivate() || address.IsLinkLocalUnicast() || address.IsLinkLocalMulticast() || address.IsUnspecified()
}

// greeting marks, in a context, requests of which go-containerregistry reads all
// of the answer in order to throw it away (pkg/v1/remote/transport/ping.go).
type greeting struct{}

// brief ends such answers when they go on for too long.
type brief struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b brief) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err == nil && request.Context().Value(greeting{}) != nil {
		response.Body = shortened(response.Body)
	}
	return response, err
}

// shortened is the beginning of an answer that is no content.
func shortened(body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, maxWords), body}
}
