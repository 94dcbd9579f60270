package outbound_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/openshift/update-preflight/signature/outbound"
)

// resolve makes the resolver of this process answer with these addresses, until the test ends.
func resolve(t *testing.T, names map[string]string) {
	t.Helper()
	server, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = server.Close()
	})
	go func() {
		question := make([]byte, 1<<10)
		for {
			size, from, err := server.ReadFrom(question)
			if err != nil {
				return
			}
			var message dnsmessage.Message
			if err := message.Unpack(question[:size]); err != nil {
				continue
			}
			message.Response = true
			message.Additionals = nil
			asked := message.Questions[0]
			address, err := netip.ParseAddr(names[strings.TrimSuffix(asked.Name.String(), ".")])
			header := dnsmessage.ResourceHeader{Name: asked.Name, Type: asked.Type, Class: asked.Class, TTL: 1}
			switch {
			case err == nil && address.Is4() && asked.Type == dnsmessage.TypeA:
				message.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: address.As4()}}}
			case err == nil && address.Is6() && asked.Type == dnsmessage.TypeAAAA:
				message.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}}}
			}
			if packed, err := message.Pack(); err == nil {
				_, _ = server.WriteTo(packed, from)
			}
		}
	}()
}

func request(ctx context.Context, t *testing.T, address string) *http.Request {
	t.Helper()
	made, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestAttacksByNames has a public registry that leads to names whose addresses are not public.
func TestAttacksByNames(t *testing.T) {
	addresses := map[string]string{
		"Loopback": "127.0.0.1", "Private": "10.0.0.1", "Service": "172.30.0.1", "Metadata": "169.254.169.254", "Shared": "100.64.0.1",
		"Benchmark": "198.18.0.1", "Zero": "0.0.0.1", "Unspecified": "0.0.0.0", "Reserved": "240.0.0.1", "Broadcast": "255.255.255.255",
		"Documentation": "192.0.2.1", "Loopback6": "::1", "Local6": "fd00::1", "Link6": "fe80::1", "Mapped": "::ffff:10.0.0.1",
		"NAT64": "64:ff9b::10.0.0.1", "LocalNAT64": "64:ff9b:1::1", "6to4": "2002:0a00:0001::1", "Teredo": "2001:0:0a00:1::1",
		"Compatible": "::10.0.0.1",
	}
	names := map[string]string{}
	for name, address := range addresses {
		names[strings.ToLower(name)+".example.com"] = address
	}
	resolve(t, names)
	by := new(outbound.Guard).Transport(&http.Transport{})
	for name, address := range addresses {
		t.Run(name, func(t *testing.T) {
			hosts := []string{strings.ToLower(name) + ".example.com", address}
			if strings.Contains(address, ":") {
				hosts[1] = "[" + address + "]"
			}
			for _, host := range hosts {
				response, err := by.RoundTrip(request(outbound.From(t.Context(), "quay.example.com"), t, "https://"+host+":6443/"))
				if err == nil {
					_ = response.Body.Close()
				}
				if err == nil || !strings.Contains(err.Error(), "a public server refers to a private address") {
					t.Errorf("%s: got %v", host, err)
				}
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, origin, to string
		free, refused      bool
	}{
		"Public":        {reason: "storage of a registry", origin: "quay.io", to: "https://cdn.quay.io/"},
		"PublicAddress": {reason: "an address with a global meaning", origin: "quay.io", to: "https://8.8.8.8/"},
		"NAT64": {
			reason: "a public address, as a network of IPv6 alone reaches it", origin: "quay.io",
			to: "https://[64:ff9b::808:808]/",
		},
		"Itself": {reason: "what was named", origin: "10.0.0.1:5000", to: "http://10.0.0.1:5000/", free: true},
		"PrivateMirror": {
			reason: "a mirror that is private leads to its token server", origin: "10.0.0.1:5000", to: "https://10.0.0.2/token",
			free: true,
		},
		"LocalMirror": {reason: "a local registry", origin: "localhost:5000", to: "http://127.0.0.1:5001/", free: true},
		"Localhost":   {reason: "the API server of this machine", origin: "quay.io", to: "https://localhost:6443", refused: true},
		"LocalDomain": {reason: "a name of RFC 6761", origin: "quay.io", to: "https://api.LOCALHOST:6443", refused: true},
		"Service":     {reason: "a service of the cluster", origin: "quay.io", to: "https://kubernetes.default.svc", refused: true},
		"Domain": {
			reason: "a service of the cluster", origin: "quay.io", to: "https://kubernetes.default.svc.cluster.local.",
			refused: true,
		},
		"Label":     {reason: "a name without a domain", origin: "quay.io", to: "https://kubernetes", refused: true},
		"Number":    {reason: "some resolvers parse a number as an address", origin: "quay.io", to: "https://2852039166", refused: true},
		"Octal":     {reason: "some resolvers parse octal numbers", origin: "quay.io", to: "https://0177.0.0.1", refused: true},
		"Zone":      {reason: "an address with a zone", origin: "quay.io", to: "https://[fe80::1%25eth0]/", refused: true},
		"OtherPort": {reason: "a public name with another port", origin: "quay.io", to: "https://quay.io:6443/"},
	} {
		t.Run(name, func(t *testing.T) {
			free, err := new(outbound.Guard).Check(request(outbound.From(t.Context(), tc.origin), t, tc.to))
			if free != tc.free || (err != nil) != tc.refused {
				t.Errorf("%s: got %v, %v", tc.reason, free, err)
			}
		})
	}
}

// TestPrivateMirror has a mirror whose name has a private address, which redirects.
func TestPrivateMirror(t *testing.T) {
	resolve(t, map[string]string{"mirror.example.com": "127.0.0.1", "storage.example.com": "127.0.0.1"})
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "content") }))
	t.Cleanup(storage.Close)
	_, port, _ := net.SplitHostPort(storage.Listener.Addr().String())
	mirror := httptest.NewServer(http.RedirectHandler("http://storage.example.com:"+port, http.StatusFound))
	t.Cleanup(mirror.Close)
	_, mirrored, _ := net.SplitHostPort(mirror.Listener.Addr().String())
	for name, host := range map[string]string{"ByName": "mirror.example.com", "ByAddress": "127.0.0.1"} {
		t.Run(name, func(t *testing.T) {
			client := http.Client{Transport: new(outbound.Guard).Transport(&http.Transport{})}
			response, err := client.Do(request(t.Context(), t, "http://"+host+":"+mirrored))
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(response.Body)
			if closed := response.Body.Close(); string(content) != "content" || err != nil || closed != nil {
				t.Errorf("%q, %v, %v", content, err, closed)
			}
		})
	}
}

// TestProxy has a proxy with a private address, which resolves the names.
func TestProxy(t *testing.T) {
	asked := ""
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { asked = request.URL.Host }))
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	by := new(outbound.Guard).Transport(&http.Transport{Proxy: http.ProxyURL(at)})
	for host, reached := range map[string]bool{"storage.example.com": true, "kubernetes.default.svc": false, "10.0.0.1": false} {
		asked = ""
		response, err := by.RoundTrip(request(outbound.From(t.Context(), "quay.example.com"), t, "http://"+host))
		if err == nil {
			_ = response.Body.Close()
		}
		if (err == nil) != reached || (asked == host) != reached {
			t.Errorf("%s: asked %q, %v", host, asked, err)
		}
	}
}

func TestUpgrade(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			fmt.Fprint(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n")
		}
	}))
	t.Cleanup(server.Close)
	_, err := outbound.Client().Do(request(t.Context(), t, server.URL)) //nolint:bodyclose // there is no response
	if err == nil || !strings.Contains(err.Error(), "answers with 101 Switching Protocols, which was not requested") {
		t.Errorf("got %v", err)
	}
}
