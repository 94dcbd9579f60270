package cluster

import (
	"net/http/httputil"
	"net/url"

	"k8s.io/client-go/rest"
)

// ReverseProxy forwards requests to the API server of config, with its credentials.
// It passes on each part of a response at once, as watches and logs require.
func ReverseProxy(config *rest.Config) (*httputil.ReverseProxy, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(address)
	proxy.Transport, proxy.FlushInterval = transport, -1
	return proxy, nil
}
