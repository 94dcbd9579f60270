package registry

import (
	"crypto/x509"
	"net/http"
	"net/url"
)

// network is how registries are reached.
type network struct {
	// override sends all requests instead, if set.
	override http.RoundTripper
	// proxy is the cluster's, nil when it has none.
	proxy func(*url.URL) (*url.URL, error)
	// bundle is the cluster's bundle of CAs, in PEM, and certificates are those
	// for one host:port each.
	bundle       []byte
	certificates map[string][]byte
}

// base identifies connections: to a host, with or without verification of its
// certificate.
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

// roots are the CAs of this machine, of the cluster and of the host; nil when they
// are only those of this machine.
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
