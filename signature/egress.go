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

// The ConfigMap that the network operator makes of the certificate authorities
// of the system and of those that Proxy spec.trustedCA names, and where CVO
// reads them (cluster-version-operator pkg/cvo/egress.go).
const (
	trustedBundle    = "trusted-ca-bundle"
	trustedBundleKey = "ca-bundle.crt"
)

// egress is the way to web servers.
type egress struct {
	proxy func(*http.Request) (*url.URL, error)
	// roots are who may vouch for a server; nil means those of the system.
	roots *x509.CertPool
}

// egress is the cluster's way to web servers, as CVO takes it. Where this
// machine's environment names a proxy, that one comes first: it knows the way
// out from here, which may be outside of the cluster.
func (c clusterReader) egress(ctx context.Context) (egress, error) {
	way := egress{proxy: http.ProxyFromEnvironment}
	proxy, err := c.config.Proxies().Get(ctx, "cluster", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return egress{}, newError(reasonTrustUnavailable, "get Proxy cluster: %v", err)
	default:
		way.proxy = proxyOf(proxy.Status)
	}
	bundle, err := c.managed.Get(ctx, trustedBundle, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return way, nil
	case err != nil:
		return egress{}, newError(reasonTrustUnavailable, "get ConfigMap %s/%s: %v", namespace, trustedBundle, err)
	case bundle.Data[trustedBundleKey] == "":
		return way, nil
	}
	if way.roots, err = x509.SystemCertPool(); err != nil {
		way.roots = x509.NewCertPool()
	}
	if !way.roots.AppendCertsFromPEM([]byte(bundle.Data[trustedBundleKey])) {
		return egress{}, newError(reasonTrustUnavailable, "%s of ConfigMap %s/%s has no certificate", trustedBundleKey, namespace, trustedBundle)
	}
	return way, nil
}

// proxyOf follows the environment's proxy, then the cluster's.
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
