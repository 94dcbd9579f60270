package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
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
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "CA"}}
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
		"Scraper":         {"the cluster's Prometheus reads the metrics", []tls.Certificate{trusted.client(t, scraper)}, true},
		"None":            {"a certificate is required", nil, false},
		"AnotherName":     {"the CA signs certificates of all clients of the cluster", []tls.Certificate{trusted.client(t, "system:serviceaccount:default:default")}, false},
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
	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "extension-apiserver-authentication"}, Data: map[string]string{"client-ca-file": trusted.pem()}}
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
		"Signal":       {"the error names the value", []string{"--signal=alarm"}, `--signal: "alarm" is not one of`},
		"TwoModes":     {"the policy has one mode", []string{"--signal=admission=Warn,admission=Deny"}, "both Warn and Deny"},
		"Uninstall":    {"nothing is turned on and removed", []string{"--uninstall", "--signal=alert"}, "--signal must not be given"},
		"ClientName":   {"any client of the cluster would be allowed", []string{"--metrics-client-ca=x", "--metrics-client="}, "needs a --metrics-client"},
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
