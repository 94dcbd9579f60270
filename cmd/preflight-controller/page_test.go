package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/trigger/controller"
	"github.com/openshift/update-preflight/runner/trigger/page"
	"github.com/openshift/update-preflight/test/await"
)

// The page is off by default, and its flags are checked together.
func TestPageFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Off":           {reason: "there is no page"},
		"On":            {reason: "both are given", args: []string{"--page-bind-address=:9443", "--page-cert-dir=/certs"}},
		"NoCertificate": {reason: "browsers do not accept one that is signed by itself", args: []string{"--page-bind-address=:9443"}, want: "serving-cert-secret-name"},
		"NoAddress":     {reason: "the page would be missed", args: []string{"--page-cert-dir=/certs"}, want: "needs --page-bind-address"},
	} {
		f, err := parse(tc.args, nil, io.Discard)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %s: want %q, got %v", name, tc.reason, tc.want, err)
		}
		if on := len(f.page.needs().Required) > 0; err == nil && on != (name == "On") {
			t.Errorf("%s: %s: needs %v", name, tc.reason, f.page.needs())
		}
	}
}

// renew writes a new certificate with this name.
func renew(t *testing.T, directory, name string) {
	t.Helper()
	made, key := certify(t, &x509.Certificate{DNSNames: []string{name}}, nil)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{"tls.key": {Type: "PRIVATE KEY", Bytes: private}, "tls.crt": {Type: "CERTIFICATE", Bytes: made.Raw}} {
		if err := os.WriteFile(filepath.Join(directory, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A renewed certificate is served without a restart, also by replicas that do not lead.
func TestPageCertificate(t *testing.T) {
	directory := t.TempDir()
	reached, err := cluster.Connect(&rest.Config{Host: "http://127.0.0.1:1"}, "test")
	if err != nil {
		t.Fatal(err)
	}
	flags := pageFlags{address: "127.0.0.1:0", certificates: directory}
	options := controller.Options{Logger: slog.New(slog.DiscardHandler)}
	if _, _, err := flags.server(reached, options); err == nil || !strings.Contains(err.Error(), "--page-cert-dir") {
		t.Errorf("without a certificate: %v", err)
	}
	renew(t, directory, "first")
	watched, server, err := flags.server(reached, options)
	if err != nil {
		t.Fatal(err)
	}
	if watched.NeedLeaderElection() || server.NeedLeaderElection() {
		t.Error("only the leader serves the page")
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- watched.Start(ctx) }()
	go func() { ended <- server.Start(ctx) }()
	served := func() (string, string) {
		var dialer net.Dialer
		raw, err := dialer.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			return err.Error(), ""
		}
		defer raw.Close() //nolint:errcheck // nothing was written
		made := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
		if err := made.HandshakeContext(t.Context()); err != nil {
			return err.Error(), ""
		}
		state := made.ConnectionState()
		return state.PeerCertificates[0].DNSNames[0], state.NegotiatedProtocol
	}
	if name, protocol := served(); name != "first" || protocol != "http/1.1" {
		t.Errorf("the certificate of %q by %q, want the first one by http/1.1", name, protocol)
	}
	renew(t, directory, "second")
	await.Until(t, "the second certificate is served", func(context.Context) bool { name, _ := served(); return name == "second" })
	old := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}}
	if _, err := old.DialContext(t.Context(), "tcp", server.Listener.Addr().String()); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	taken := pageFlags{address: server.Listener.Addr().String(), certificates: directory}
	if _, _, err := taken.server(reached, options); err == nil || !strings.Contains(err.Error(), "--page-bind-address") {
		t.Errorf("an address that is taken: %v", err)
	}
	end()
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	}
}

// The API server gets the token in the content of a request, which client-go logs at a high verbosity.
func TestTokenIsNotLogged(t *testing.T) {
	const token = "sha256~secret"
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/tokenreviews") { // the answer repeats the token
			fmt.Fprintf(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":%q},"status":{"authenticated":true,"user":{"username":"alice"}}}`, token)
			return
		}
		fmt.Fprint(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":false}}`)
	}))
	defer api.Close()
	logged := &bytes.Buffer{} // one request at a time
	logger := slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.Level(-10)}))
	program.LogTo(logger, 10)
	defer program.LogTo(slog.New(slog.DiscardHandler), 0)
	reached, err := cluster.Connect(&rest.Config{Host: api.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	request.SetBasicAuth("", token)
	got := httptest.NewRecorder()
	page.New(reached, runner.Options{}.Asked("the controller"), logger).ServeHTTP(got, request)
	if got.Code != http.StatusForbidden || strings.Contains(got.Body.String(), token) {
		t.Errorf("status %d:\n%s", got.Code, got.Body)
	}
	for text, want := range map[string]bool{"subjectaccessreviews": true, token: false, base64.StdEncoding.EncodeToString([]byte(":" + token)): false} {
		if strings.Contains(logged.String(), text) != want {
			t.Errorf("the log has %q: %t, want %t:\n%s", text, !want, want, logged)
		}
	}
}
