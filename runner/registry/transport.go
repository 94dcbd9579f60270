package registry

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/signature/outbound"
)

// transport sends requests to a registry. A redirect and the token server follow
// the rules of their own host. go-containerregistry retries too, but ignores the context
// and Retry-After.
func (a *Access) transport(host string, unsafe bool) http.RoundTripper {
	return retry.Busy(&hostTransport{access: a, host: host, unsafe: unsafe})
}

type hostTransport struct {
	access *Access
	host   string
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
	request = request.WithContext(outbound.From(request.Context(), c.host))
	if override := c.access.network.override; override != nil {
		if _, err := c.access.guard.Check(request); err != nil {
			return nil, err
		}
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
func (a *Access) base(kind base) http.RoundTripper {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.bases[kind] == nil {
		a.bases[kind] = a.guard.Transport(&http.Transport{
			Proxy: a.network.proxyFor,
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
		})
	}
	return a.bases[kind]
}

type network struct {
	// override sends all requests instead, if set.
	override http.RoundTripper
	// proxy is the cluster's, nil when it has none.
	proxy func(*url.URL) (*url.URL, error)
	// bundle is the cluster's bundle of CAs, in PEM, and certificates are those for one host:port each.
	bundle       []byte
	certificates map[string][]byte
}

// base identifies connections: to a host, with or without verification of its certificate.
type base struct {
	host   string
	unsafe bool
}

// proxyFor selects the environment's proxy, then the cluster's.
func (n network) proxyFor(request *http.Request) (*url.URL, error) {
	proxy, err := http.ProxyFromEnvironment(request)
	if proxy != nil || err != nil || n.proxy == nil {
		return proxy, err
	}
	return n.proxy(request.URL)
}

// roots are the CAs of this machine, of the cluster and of the host; nil when they are only those of this machine.
func (n network) roots(host string) *x509.CertPool {
	own := n.certificates[host]
	if len(n.bundle) == 0 && len(own) == 0 {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // the system has none
	}
	pool.AppendCertsFromPEM(n.bundle)
	pool.AppendCertsFromPEM(own)
	return pool
}
