package registry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// maxTries and maxWait bound how often, and how long at a time, a registry
	// is waited for that says it is busy.
	maxTries  = 4
	firstWait = 500 * time.Millisecond
	maxWait   = 30 * time.Second
	// maxDrain is what is read of an answer that is not used, so that its
	// connection can be.
	maxDrain = 64 << 10
)

// network is how registries are reached.
type network struct {
	// override stands for all of it.
	override http.RoundTripper
	// proxy is the cluster's, nil when it has none.
	proxy func(*url.URL) (*url.URL, error)
	// bundle is the cluster's bundle of CAs, in PEM, and certificates are those
	// for one host:port each.
	bundle       []byte
	certificates map[string][]byte
}

// base is one kind of connection: to a host, with its certificate looked at or
// not.
type base struct {
	host   string
	unsafe bool
}

// transport is the way to a registry. A redirect, or the server that gives out
// tokens, is reached by the rules for that server.
func (a *Access) transport(host string, unsafe bool) http.RoundTripper {
	return &patient{next: &courier{access: a, host: host, unsafe: unsafe}}
}

// courier brings each request to where it goes, with the CAs of that host.
type courier struct {
	access *Access
	host   string
	// unsafe is true when the host may do without a certificate.
	unsafe bool
}

// RoundTrip refuses plain HTTP where a credential could be read by others.
func (c *courier) RoundTrip(request *http.Request) (*http.Response, error) {
	host := request.URL.Host
	unsafe := c.unsafe && host == c.host
	if request.URL.Scheme != "https" && !unsafe && !local(request.URL.Hostname()) {
		if host == c.host || request.Header.Get("Authorization") != "" || request.Body != nil && request.Body != http.NoBody {
			return nil, fmt.Errorf("%q offers plain HTTP, and is not among the cluster's insecure registries", host)
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

// base returns the connections of one kind. Every step in which a server can be
// slow has a limit; a body that trickles in is ended by the context.
func (a *Access) base(kind base) *http.Transport {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.bases[kind] == nil {
		a.bases[kind] = &http.Transport{
			Proxy:       a.network.proxyFor,
			DialContext: (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
			TLSClientConfig: &tls.Config{
				MinVersion: tls.VersionTLS12, RootCAs: a.network.roots(kind.host),
				InsecureSkipVerify: kind.unsafe, //nolint:gosec // The cluster's administrators listed the registry as insecure; what it serves is held against digests.
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

// proxyFor asks this machine's environment first.
func (n network) proxyFor(request *http.Request) (*url.URL, error) {
	proxy, err := http.ProxyFromEnvironment(request)
	if proxy != nil || err != nil || n.proxy == nil {
		return proxy, err
	}
	return n.proxy(request.URL)
}

// roots are this machine's CAs, the cluster's, and those for the host. It is nil
// for this machine's alone.
func (n network) roots(host string) *x509.CertPool {
	own := n.certificates[host]
	if len(n.bundle) == 0 && len(own) == 0 {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // where the system has none, the cluster's are what there is
	}
	pool.AppendCertsFromPEM(n.bundle)
	pool.AppendCertsFromPEM(own)
	return pool
}

// patient asks again when a server is busy or drops the connection.
// go-containerregistry would do it too, but neither minds the context meanwhile
// nor what the server asks for.
type patient struct{ next http.RoundTripper }

// RoundTrip repeats only what changes nothing.
func (p *patient) RoundTrip(request *http.Request) (*http.Response, error) {
	wait := firstWait
	for try := 1; ; try++ {
		response, err := p.next.RoundTrip(request)
		if try == maxTries || !repeatable(request) || !passing(response, err) {
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

// passing says whether the trouble may be over soon.
func passing(response *http.Response, err error) bool {
	if err != nil {
		return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	}
	switch response.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// pauseBefore is how long to wait, which the server may say itself (RFC 9110,
// 10.2.3). It is not worth to wait for longer than maxWait: then the answer that
// is there says more.
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
	_, _ = io.CopyN(io.Discard, response.Body, maxDrain) // an answer that is not used
	_ = response.Body.Close()
}
