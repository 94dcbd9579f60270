// Package faults answers: which faults can occur between a run and its API server?
//
// A [Proxy] between the two forwards all requests, watches included, records them, and
// lets a test cut connections. A [Fault] applies to requests by itself: it delays,
// rejects or loses them, or calls a hook, which may kill the run, before or after a write.
package faults

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Proxy forwards requests to an API server. It serves HTTP/2 with TLS as one does, on the
// loopback interface, and replaces the credentials of each client with those of the configuration of Start.
type Proxy struct {
	server *httptest.Server

	mutex    sync.Mutex
	requests []Request
	writes   Writes
	// watches are in progress; expired has the paths whose next resumption is rejected.
	watches map[*watch]bool
	expired map[string]bool
}

// Start starts a proxy in front of an API server. The first fault is the nearest to the
// client. The caller must call Close.
func Start(config *rest.Config, faults ...Fault) (*Proxy, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the API server behind the proxy: %w", err)
	}
	upstream, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot use %q as the API server behind the proxy: %w", config.Host, err)
	}
	p := &Proxy{writes: Writes{}, watches: map[*watch]bool{}, expired: map[string]bool{}}
	var handler http.Handler = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: upstream.Scheme, Host: upstream.Host}) },
		Transport:     transport,
		FlushInterval: -1,                         // events of watches are forwarded at once
		ErrorLog:      log.New(io.Discard, "", 0), // broken connections are expected
		// An unreachable server sends no response.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	for _, fault := range slices.Backward(faults) {
		handler = fault(handler)
	}
	p.server = httptest.NewUnstartedServer(p.recordRequests(p.trackWatches(handler)))
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.EnableHTTP2 = true // as an API server
	p.server.StartTLS()
	return p, nil
}

// StartForTest starts a proxy in front of an API server, closes it at the end of the test,
// and returns the path of its kubeconfig.
func StartForTest(tb testing.TB, config *rest.Config, faults ...Fault) (proxy *Proxy, kubeconfig string) {
	tb.Helper()
	proxy, err := Start(config, faults...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(proxy.Close)
	kubeconfig = filepath.Join(tb.TempDir(), "kubeconfig")
	if err := proxy.Kubeconfig(kubeconfig); err != nil {
		tb.Fatal(err)
	}
	return proxy, kubeconfig
}

// Close ends the proxy and the requests in progress.
func (p *Proxy) Close() {
	p.CutConnections()
	p.server.Close()
}

// Kubeconfig writes a kubeconfig for the proxy.
func (p *Proxy) Kubeconfig(path string) error {
	const name = "faults"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: p.server.URL, CertificateAuthorityData: p.authority()}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name}},
		CurrentContext: name,
	}, path)
}

// Config returns a configuration for the proxy, without a limit of requests.
func (p *Proxy) Config() *rest.Config {
	return &rest.Config{Host: p.server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: p.authority()}}
}

// authority is the certificate authority of the proxy, in PEM.
func (p *Proxy) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// CutConnections breaks all connections and the requests in progress on them, as the
// restart of a load balancer does. New connections are accepted.
func (p *Proxy) CutConnections() { p.server.CloseClientConnections() }
