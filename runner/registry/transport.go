package registry

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/retry"
)

const (
	// maxTries and maxWait bound the number of requests to a busy registry, and
	// each wait between them.
	maxTries  = 4
	firstWait = 500 * time.Millisecond
	maxWait   = 30 * time.Second
	// maxDrain bounds the part of an unused response that is read in order to
	// reuse its connection, in bytes.
	maxDrain = 64 << 10
)

// transport sends requests to a registry. A redirect and the token server follow
// the rules of their own host.
func (a *Access) transport(host string, unsafe bool) http.RoundTripper {
	return &retryTransport{next: &hostTransport{access: a, host: host, unsafe: unsafe}}
}

// hostTransport sends each request with the CAs of its host.
type hostTransport struct {
	access *Access
	host   string
	// unsafe is true when the host is listed as insecure.
	unsafe bool
}

// RoundTrip rejects plain HTTP to hosts that are neither local nor insecure, where
// a credential could be intercepted.
func (c *hostTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	host := request.URL.Host
	unsafe := c.unsafe && host == c.host
	if request.URL.Scheme != "https" && !unsafe && !local(request.URL.Hostname()) {
		if host == c.host || request.Header.Get("Authorization") != "" || request.Body != nil && request.Body != http.NoBody {
			return nil, fmt.Errorf("%q uses plain HTTP but is not among the cluster's insecure registries", host)
		}
	}
	if override := c.access.network.override; override != nil {
		return override.RoundTrip(request)
	}
	return c.access.base(base{host: host, unsafe: unsafe}).RoundTrip(request)
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// base returns the transport for a kind of connection. Every step up to the
// response header has a timeout; the context bounds the body.
func (a *Access) base(kind base) *http.Transport {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.bases[kind] == nil {
		a.bases[kind] = &http.Transport{
			Proxy:       a.network.proxyFor,
			DialContext: (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
			TLSClientConfig: &tls.Config{
				MinVersion: tls.VersionTLS12, RootCAs: a.network.roots(kind.host),
				InsecureSkipVerify: kind.unsafe, //nolint:gosec // The cluster's administrators listed the registry as insecure; content is verified by digest.
			},
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    16,
			MaxResponseHeaderBytes: 1 << 20,
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  30 * time.Second,
			IdleConnTimeout:        30 * time.Second,
		}
	}
	return a.bases[kind]
}

// retryTransport repeats requests when a server is busy or drops the connection.
// go-containerregistry retries too, but ignores the context and Retry-After.
type retryTransport struct{ next http.RoundTripper }

// RoundTrip retries only safe requests.
func (p *retryTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	wait := firstWait
	for try := 1; ; try++ {
		response, err := p.next.RoundTrip(request)
		if try == maxTries || !repeatable(request) || !transient(response, err) {
			return response, err
		}
		pause, ok := pauseBefore(response, wait)
		if !ok {
			return response, err
		}
		discard(response)
		timer := time.NewTimer(pause)
		select {
		case <-request.Context().Done():
			timer.Stop()
			return nil, request.Context().Err()
		case <-timer.C:
		}
		wait *= 2
	}
}

func repeatable(request *http.Request) bool {
	return (request.Method == http.MethodGet || request.Method == http.MethodHead) && (request.Body == nil || request.Body == http.NoBody)
}

// transient reports whether a retry may succeed.
func transient(response *http.Response, err error) bool {
	if err != nil {
		return retry.Disconnected(err)
	}
	switch response.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// pauseBefore is how long to wait before a retry, at least the Retry-After of the
// response (RFC 9110, 10.2.3). It is false when that exceeds maxWait.
func pauseBefore(response *http.Response, wait time.Duration) (time.Duration, bool) {
	if response == nil {
		return wait, true
	}
	after := response.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(after, 10, 31); err == nil {
		wait = max(wait, time.Duration(seconds)*time.Second)
	} else if date, err := http.ParseTime(after); err == nil {
		wait = max(wait, time.Until(date))
	}
	return wait, wait <= maxWait
}

func discard(response *http.Response) {
	if response == nil {
		return
	}
	_, _ = io.CopyN(io.Discard, response.Body, maxDrain) // an unused response
	_ = response.Body.Close()
}
