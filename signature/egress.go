package signature

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/url"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/net/http/httpproxy"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The ConfigMap in which the network operator merges the certificate authorities
// of the system and of Proxy spec.trustedCA, and its key as CVO reads it
// (cluster-version-operator pkg/cvo/egress.go).
const (
	trustedBundle    = "trusted-ca-bundle"
	trustedBundleKey = "ca-bundle.crt"
)

// egress is how web servers are reached.
type egress struct {
	proxy func(*http.Request) (*url.URL, error)
	// roots are the trusted certificate authorities; nil means those of the system.
	roots *x509.CertPool
}

// egress is how CVO reaches web servers from the cluster. A proxy named by this
// machine's environment takes precedence, since this machine may be outside of
// the cluster's network.
func (c clusterReader) egress(ctx context.Context) (egress, error) {
	via := egress{proxy: http.ProxyFromEnvironment}
	proxy, err := c.config.Proxies().Get(ctx, "cluster", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return egress{}, newError(ReasonTrustUnavailable, "get Proxy cluster: %v", err)
	default:
		via.proxy = proxyOf(proxy.Status)
	}
	bundle, err := c.managed.Get(ctx, trustedBundle, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return via, nil
	case err != nil:
		return egress{}, newError(ReasonTrustUnavailable, "get ConfigMap %s/%s: %v", namespace, trustedBundle, err)
	case bundle.Data[trustedBundleKey] == "":
		return via, nil
	}
	if via.roots, err = x509.SystemCertPool(); err != nil {
		via.roots = x509.NewCertPool()
	}
	if !via.roots.AppendCertsFromPEM([]byte(bundle.Data[trustedBundleKey])) {
		return egress{}, newError(ReasonTrustUnavailable, "%s of ConfigMap %s/%s holds no certificate", trustedBundleKey, namespace, trustedBundle)
	}
	return via, nil
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
