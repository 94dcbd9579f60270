// Package outbound answers: may an external server make this program connect to that address?
//
// A server that the user or the cluster names, such as a mirror registry, may have any address. It may refer to other
// servers, by a redirect or as its token server; to private addresses only if its own address is private. The address
// to which a name resolves at the moment of the connection counts.
//
// A proxy resolves names itself, so requests through a proxy are evaluated by name alone: addresses that are not
// public, and names that are only meaningful within a machine or a cluster, are rejected.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// dialTimeout bounds the time until there is a connection.
const dialTimeout = 15 * time.Second

// Guard knows the addresses of the servers that were named. The zero value is ready, and may be used concurrently.
type Guard struct {
	mutex sync.Mutex
	// public is false for a host that had private addresses only.
	public map[string]bool
}

type originKey struct{}

// From is a context for the requests that a host, with its port if it has one, leads to. In another one, the first
// request before redirects decides.
func From(ctx context.Context, host string) context.Context {
	return context.WithValue(ctx, originKey{}, host)
}

// Transport turns base into a transport with a dialer; it changes base.
func (g *Guard) Transport(base *http.Transport) http.RoundTripper {
	dialer := net.Dialer{Timeout: dialTimeout}
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		recording := dialer
		recording.Control = func(_, resolved string, _ syscall.RawConn) error {
			g.record(hostname(address), resolved)
			return nil
		}
		return recording.DialContext(ctx, network, address)
	}
	led := base.Clone()
	dialer.Control = func(_, resolved string, _ syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(resolved); err != nil || !isPublic(at.Addr()) {
			return fmt.Errorf("%w: %s", errPrivate, resolved)
		}
		return nil
	}
	led.DialContext = dialer.DialContext
	return &transport{guard: g, named: base, led: led}
}

// Client returns a client for addresses that the user names, with the proxy of the environment.
func Client() *http.Client {
	return &http.Client{Transport: new(Guard).Transport(&http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
	})}
}

var errPrivate = errors.New("a public server refers to a private address")

type transport struct {
	guard      *Guard
	named, led *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	free, err := t.guard.Check(request)
	if err != nil {
		return nil, err
	}
	by := t.led
	if proxy := t.named.Proxy; proxy != nil && !free {
		at, err := proxy(request)
		if err != nil {
			return nil, err
		}
		free = at != nil // whose address may be private
	}
	if free {
		by = t.named
	}
	response, err := by.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := NoUpgrade(request, response); err != nil {
		return nil, err
	}
	return response, nil
}

// CloseIdleConnections closes the connections of both dialers.
func (t *transport) CloseIdleConnections() {
	t.named.CloseIdleConnections()
	t.led.CloseIdleConnections()
}

// NoUpgrade returns an error for a response that switches protocols, which no request of this program requests: its
// body, which is closed, has no end.
func NoUpgrade(request *http.Request, response *http.Response) error {
	if response.StatusCode != http.StatusSwitchingProtocols {
		return nil
	}
	return errors.Join(fmt.Errorf("%s answers with 101 Switching Protocols, which was not requested", request.URL.Host), response.Body.Close())
}

// Check returns an error for a request to a name that its origin may not refer to. A request may reach any address if
// it goes to the origin itself, or if the origin is private.
func (g *Guard) Check(request *http.Request) (free bool, err error) {
	origin, host := originOf(request), request.URL.Hostname()
	if strings.EqualFold(request.URL.Host, origin) || g.isPrivate(hostname(origin)) {
		return true, nil
	}
	if namesPrivate(host) {
		return false, fmt.Errorf("%w: %q refers to %q", errPrivate, hostname(origin), host)
	}
	return false, nil
}

// originOf is the host, with its port, that the user or the cluster has named.
func originOf(request *http.Request) string {
	if named, ok := request.Context().Value(originKey{}).(string); ok && named != "" {
		return named
	}
	for request.Response != nil && request.Response.Request != nil { // which has redirected
		request = request.Response.Request
	}
	return request.URL.Host
}

func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

func (g *Guard) record(host, resolved string) {
	at, err := netip.ParseAddrPort(resolved)
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.public == nil {
		g.public = map[string]bool{}
	}
	g.public[host] = g.public[host] || err != nil || isPublic(at.Addr())
}

// isPrivate reports whether a host that was named has private addresses only.
func (g *Guard) isPrivate(host string) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	public, known := g.public[host]
	return known && !public || !known && namesPrivate(host)
}

// global evaluates addresses by the registries of IANA.
var global = ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork()) //nolint:gochecknoglobals // it is constant

// isPublic reports whether an address has a global meaning. One of NAT64 means the IPv4 address within: networks
// with IPv6 alone reach public servers so.
func isPublic(address netip.Addr) bool {
	address = address.WithZone("").Unmap()
	if ssrf.IPv6NAT64Prefix.Contains(address) {
		bytes := address.As16()
		address = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return global.SafeAddr(address) == nil
}

// namesPrivate reports whether a host is an address that is not public, or a name within a machine or a cluster. A
// name whose last label starts with a digit (not allowed by RFC 1123, 2.1) counts as one: some resolvers parse it as
// an address.
func namesPrivate(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return !isPublic(address)
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch last {
	case "", host, "localhost", "svc", "local", "internal":
		return true
	}
	return last[0] >= '0' && last[0] <= '9'
}
