// Package faults answers: what can go wrong between a runner and its API
// server?
//
// A [Proxy] stands between the two. It passes on everything, watches included,
// keeps account of what was asked, and lets a test cut what is connected. A
// [Fault] is what goes wrong by itself: answers that are late, refused or lost,
// and the moments at which a runner can be killed, which are its writes.
package faults

import (
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

// Proxy is an API server on the loopback interface, without TLS, to which
// everyUser is the user of the configuration of Start.
type Proxy struct {
	// URL is where it listens.
	URL string

	server *httptest.Server

	mutex    sync.Mutex
	requests []Request
	// writes counts those of each kind.
	writes map[string]int
	// watches are those in progress, expired the paths of those that may not be
	// taken up again where they were.
	watches map[*watch]bool
	expired map[string]bool
}

// Start puts a proxy in front of an API server. Of the faults the first is the
// nearest to the client. The proxy works until Close.
func Start(config *rest.Config, faults ...Fault) (*Proxy, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the API server behind the proxy: %w", err)
	}
	upstream, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot use %q as the API server behind the proxy: %w", config.Host, err)
	}
	p := &Proxy{writes: map[string]int{}, watches: map[*watch]bool{}, expired: map[string]bool{}}
	var handler http.Handler = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: upstream.Scheme, Host: upstream.Host}) },
		Transport:     transport,
		FlushInterval: -1,                         // an event of a watch is for now
		ErrorLog:      log.New(io.Discard, "", 0), // that a server ends in the middle is what this is for
		// A server that is not there does not answer.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	for _, fault := range slices.Backward(faults) {
		handler = fault(handler)
	}
	p.server = httptest.NewServer(p.account(p.follow(handler)))
	p.URL = p.server.URL
	return p, nil
}

// Behind puts a proxy in front of an API server until the end of the test, and returns the
// path of its kubeconfig.
func Behind(tb testing.TB, config *rest.Config, faults ...Fault) (proxy *Proxy, kubeconfig string) {
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

// Close ends the proxy and everything that goes through it.
func (p *Proxy) Close() {
	p.CutConnections()
	p.server.Close()
}

// Kubeconfig writes a kubeconfig of the proxy.
func (p *Proxy) Kubeconfig(path string) error {
	const name = "faults"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: p.URL}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name}},
		CurrentContext: name,
	}, path)
}

// CutConnections breaks all connections with the requests in progress on them, as a
// load balancer does that is restarted. New ones are taken.
func (p *Proxy) CutConnections() { p.server.CloseClientConnections() }
