package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/trigger/controller"
	"github.com/openshift/update-preflight/runner/trigger/page"
	"github.com/openshift/update-preflight/test/await"
)

const scraper = "system:serviceaccount:openshift-monitoring:prometheus-k8s"

// authority is a CA that signs client certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	template := &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		Subject: pkix.Name{CommonName: "CA"},
	}
	made, key := certify(t, template, nil)
	return authority{made, key}
}

// client is a certificate for a client with that common name.
func (a authority) client(t *testing.T, name string) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	made, key := certify(t, template, &a)
	return tls.Certificate{Certificate: [][]byte{made.Raw}, PrivateKey: key}
}

func certify(t *testing.T, template *x509.Certificate, signer *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotAfter = big.NewInt(1), time.Now().Add(time.Hour)
	if signer == nil {
		signer = &authority{template, key}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, signer.certificate, &key.PublicKey, signer.key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

func (a authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// write writes a file with this authority only.
func (a authority) write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(a.pem()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// scrape starts a server as the flags configure it, and returns a function that reads it.
func scrape(t *testing.T, f flags, client kubernetes.Interface) func(certificates ...tls.Certificate) error {
	t.Helper()
	options, watch, err := f.metricsTLS(client)
	if err != nil {
		t.Fatal(err)
	}
	if watch != nil {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		go watch.Start(ctx) //nolint:errcheck // it returns no error
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{newAuthority(t).client(t, "server")}}
	for _, option := range options {
		option(server.TLS)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return func(certificates ...tls.Certificate) error {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}}}
		defer client.CloseIdleConnections()
		response, err := client.Get(server.URL) //nolint:noctx // it is local
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
}

func TestMetricsClients(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.crt")
	trusted, other := newAuthority(t), newAuthority(t)
	trusted.write(t, path)
	get := scrape(t, flags{metricsClientCA: path, metricsClient: scraper}, nil)
	for name, tc := range map[string]struct {
		reason       string
		certificates []tls.Certificate
		isAllowed    bool
	}{
		"Scraper": {"the cluster's Prometheus reads the metrics", []tls.Certificate{trusted.client(t, scraper)}, true},
		"None":    {"a certificate is required", nil, false},
		"AnotherName": {
			"the CA signs certificates of all clients of the cluster",
			[]tls.Certificate{trusted.client(t, "system:serviceaccount:default:default")},
			false,
		},
		"AnotherIssuer":   {"another CA is not trusted for any name", []tls.Certificate{other.client(t, scraper)}, false},
		"PrefixOfTheName": {"the name is compared as a whole", []tls.Certificate{trusted.client(t, scraper+"-2")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := get(tc.certificates...); (err == nil) != tc.isAllowed {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	other.write(t, path)
	if err := get(other.client(t, scraper)); err != nil {
		t.Errorf("the new CA of the file is not used: %v", err)
	}
	if err := get(trusted.client(t, scraper)); err == nil {
		t.Error("the former CA of the file is still used")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := get(other.client(t, scraper)); err == nil {
		t.Error("a client is accepted without the file")
	}
}

// The CAs of the cluster are those of its ConfigMap; before they are known, no client may
// read the metrics.
func TestClusterMetricsClients(t *testing.T) {
	trusted, next := newAuthority(t), newAuthority(t)
	client := fake.NewClientset()
	configMaps := client.CoreV1().ConfigMaps("kube-system")
	get := scrape(t, flags{metricsClientCA: "cluster", metricsClient: scraper}, client)
	if err := get(trusted.client(t, scraper)); err == nil {
		t.Error("a client is accepted without a CA")
	}
	content := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "extension-apiserver-authentication"},
		Data:       map[string]string{"client-ca-file": trusted.pem()},
	}
	if _, err := configMaps.Create(t.Context(), content, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The clientset has no event for what changes before a watch begins.
	uses := func(ca authority) func(context.Context) bool {
		return func(ctx context.Context) bool {
			content.Data["client-ca-file"] = ca.pem()
			if _, err := configMaps.Update(ctx, content, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			return get(ca.client(t, scraper)) == nil
		}
	}
	await.Until(t, "the CA of the cluster is used", uses(trusted))
	if err := get(trusted.client(t, "system:admin")); err == nil {
		t.Error("a client with another name is accepted")
	}
	await.Until(t, "the new CA of the cluster is used", uses(next))
	if err := get(trusted.client(t, scraper)); err == nil {
		t.Error("the former CA of the cluster is still used")
	}
}

func TestInvalidMetricsClientCA(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		content []byte
		want    string
	}{
		"Missing": {"a file that does not exist", nil, "no such file"},
		"Empty":   {"a file without certificates", []byte("none"), "has no certificate"},
		"Large":   {"a file has a limit", make([]byte, 1<<20+1), "more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ca.crt")
			if tc.content != nil {
				if err := os.WriteFile(path, tc.content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, _, err := flags{metricsClientCA: path, metricsClient: scraper}.metricsTLS(nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: want an error with %q and the file, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestInvalidFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Signal":    {"the error names the value", []string{"--signal=alarm"}, `--signal: "alarm" is not one of`},
		"TwoModes":  {"the policy has one mode", []string{"--signal=admission=Warn,admission=Deny"}, "both Warn and Deny"},
		"Uninstall": {"nothing is turned on and removed", []string{"--uninstall", "--signal=alert"}, "--signal must not be given"},
		"ClientName": {
			"any client of the cluster would be allowed",
			[]string{"--metrics-client-ca=x", "--metrics-client="},
			"needs a --metrics-client",
		},
		"Ahead":        {"the runs ahead are bounded", []string{"--ahead=11"}, "it must be 0 to 10"},
		"Argument":     {"the program has no arguments", []string{"run"}, `got "run"`},
		"LeaderSpaces": {"the Lease has a namespace", []string{"--namespace="}, "--leader-elect needs a --namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(tc.args, nil, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// Hosted clusters are off by default, and their flags are checked together.
func TestHostedFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Off":    {reason: "there is nothing to check"},
		"On":     {reason: "the policies need verdicts", args: []string{"--hosted-clusters=20", "--hosted-runs=3", "--hosted-admission=Deny"}},
		"Many":   {reason: "the policies have a limited size", args: []string{"--hosted-clusters=101"}, want: "--hosted-clusters is 101"},
		"NoRuns": {reason: "nothing would be checked", args: []string{"--hosted-clusters=1", "--hosted-runs=0"}, want: "--hosted-runs is 0"},
		"Mode": {
			reason: "the mode is named", args: []string{"--hosted-clusters=1", "--hosted-admission=Audit"},
			want: `--hosted-admission is "Audit"`,
		},
		"ModeOnly": {reason: "each update would be refused", args: []string{"--hosted-admission=Warn"}, want: "needs --hosted-clusters"},
	} {
		f, err := parse(tc.args, nil, io.Discard)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %s: want %q, got %v", name, tc.reason, tc.want, err)
		}
		if name == "Off" && (f.hosted.clusters != 0 || f.hosted.admission != "") {
			t.Errorf("%s: %+v", tc.reason, f.hosted)
		}
	}
}

// The page is off by default, and its flags are checked together.
func TestPageFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Off": {reason: "there is no page"},
		"On":  {reason: "both are given", args: []string{"--page-bind-address=:9443", "--page-cert-dir=/certs"}},
		"NoCertificate": {
			reason: "browsers do not accept one that is signed by itself", args: []string{"--page-bind-address=:9443"},
			want: "serving-cert-secret-name",
		},
		"NoAddress": {reason: "the page would be missed", args: []string{"--page-cert-dir=/certs"}, want: "needs --page-bind-address"},
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
	for file, block := range map[string]*pem.Block{
		"tls.key": {Type: "PRIVATE KEY", Bytes: private},
		"tls.crt": {Type: "CERTIFICATE", Bytes: made.Raw},
	} {
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
		defer func() { _ = raw.Close() }()
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
			fmt.Fprintf(w,
				`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":%q},"status":{"authenticated":true,"user":{"username":"alice"}}}`, token)
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
	for text, want := range map[string]bool{
		"subjectaccessreviews": true, token: false,
		base64.StdEncoding.EncodeToString([]byte(":" + token)): false,
	} {
		if strings.Contains(logged.String(), text) != want {
			t.Errorf("the log has %q: %t, want %t:\n%s", text, !want, want, logged)
		}
	}
}
