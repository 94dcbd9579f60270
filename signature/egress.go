package signature

import (
	"crypto/x509"
	"net/http"
	"net/url"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/net/http/httpproxy"
)

// egress is how web servers are reached.
type egress struct {
	proxy func(*http.Request) (*url.URL, error)
	// roots are the trusted certificate authorities; nil means those of the system.
	roots *x509.CertPool
}

// proxyOf selects the environment's proxy, then the cluster's.
func proxyOf(status configv1.ProxyStatus) func(*http.Request) (*url.URL, error) {
	config := httpproxy.Config{HTTPProxy: status.HTTPProxy, HTTPSProxy: status.HTTPSProxy, NoProxy: status.NoProxy}
	choose := config.ProxyFunc()
	return func(request *http.Request) (*url.URL, error) {
		if own, err := http.ProxyFromEnvironment(request); own != nil || err != nil {
			return own, err
		}
		return choose(request.URL)
	}
}
