package repository_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/registry/repository"
)

// reached records what a hostile registry made the client send to other hosts.
type reached struct {
	hosts hosts

	mutex sync.Mutex
	sent  map[string]string
}

// RoundTrip implements http.RoundTripper.
func (r *reached) RoundTrip(request *http.Request) (*http.Response, error) {
	credential := "no credential"
	if request.Header.Get("Authorization") != "" || request.Header.Get("Cookie") != "" || request.URL.User != nil {
		credential = "a credential"
	}
	r.mutex.Lock()
	if host := request.URL.Scheme + "://" + request.URL.Host; request.URL.Host != "quay.example.com" && r.sent[host] != "a credential" {
		r.sent[host] = credential
	}
	r.mutex.Unlock()
	return r.hosts.RoundTrip(request)
}

// challenge responds with a challenge for a token of the realm.
func challenge(realm string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="x",scope="repository:a/b:pull"`, realm))
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// TestAttacks pulls from a registry that has a credential of the user, and tries to make
// the client send it, or a request, to other hosts.
func TestAttacks(t *testing.T) {
	token := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"token":"t"}`)) }
	to := func(location string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
	}
	blobs := func(then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if user, _, ok := r.BasicAuth(); r.URL.Path == "/v2/" && !ok && user == "" {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			then(w, r)
		}
	}
	forged := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"forged":true}`)) }
	for name, tc := range map[string]struct {
		reason string
		hosts  hosts
		want   map[string]string // what is sent, by host
	}{
		"TokenServer": {
			reason: "a registry names its token server, which is sent the credential of this registry by the protocol, over HTTPS only",
			hosts:  hosts{"quay.example.com": challenge("https://auth.example.com/token"), "auth.example.com": token},
			want:   map[string]string{"https://auth.example.com": "a credential"},
		},
		"TokenServerPlain": {
			reason: "the credential is not sent over plain HTTP",
			hosts:  hosts{"quay.example.com": challenge("http://auth.example.com/token"), "auth.example.com": token},
		},
		"TokenServerRedirects": {
			reason: "the credential does not follow a redirect of the token server",
			hosts: hosts{
				"quay.example.com": challenge("https://auth.example.com/token"), "auth.example.com": to("https://evil.example.com/token"),
				"evil.example.com": token,
			},
			want: map[string]string{"https://auth.example.com": "a credential", "https://evil.example.com": "no credential"},
		},
		"TokenServerRedirectsInside": {
			reason: "the token server may not redirect to the metadata service",
			hosts: hosts{
				"quay.example.com": challenge("https://auth.example.com/token"), "auth.example.com": to("https://169.254.169.254/token"),
				"169.254.169.254": token,
			},
			want: map[string]string{"https://auth.example.com": "a credential"},
		},
		"TokenOfMetadata": {
			reason: "the metadata service of a cloud is not a token server: its response would be sent to the registry",
			hosts:  hosts{"quay.example.com": challenge("https://169.254.169.254/latest/meta-data"), "169.254.169.254": token},
		},
		"TokenOfMetadataAsNumber": {
			reason: "some resolvers parse a number as an address",
			hosts:  hosts{"quay.example.com": challenge("https://2852039166/latest/meta-data"), "2852039166": token},
		},
		"TokenOfAPIServer": {
			reason: "the API server on a loopback address is not a token server",
			hosts:  hosts{"quay.example.com": challenge("https://127.0.0.1:6443/api"), "127.0.0.1:6443": token},
		},
		"TokenOfLocalhost": {
			reason: "nor is it by its name",
			hosts:  hosts{"quay.example.com": challenge("https://localhost:6443/api"), "localhost:6443": token},
		},
		"TokenOfService": {
			reason: "a service of the cluster is not a token server",
			hosts:  hosts{"quay.example.com": challenge("https://kubernetes.default.svc/api"), "kubernetes.default.svc": token},
		},
		"TokenOfSharedAddress": {
			reason: "nor is an address of the provider's network",
			hosts:  hosts{"quay.example.com": challenge("https://100.64.0.1/api"), "100.64.0.1": token},
		},
		"PingInside": {
			reason: "the first request may not be redirected into a private network either",
			hosts:  hosts{"quay.example.com": to("http://169.254.169.254/latest/meta-data"), "169.254.169.254": token},
		},
		"StorageChallenges": {
			reason: "the credential of the registry is not sent to storage that asks for it",
			hosts: hosts{
				"quay.example.com": blobs(to("https://cdn.example.com/blob")),
				"cdn.example.com":  challenge("https://cdn.example.com/token"),
			},
			want: map[string]string{"https://cdn.example.com": "no credential"},
		},
		"StorageChallengesBasic": {
			reason: "the credential is not sent as a password",
			hosts: hosts{
				"quay.example.com": blobs(to("https://cdn.example.com/blob")),
				"cdn.example.com": func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("WWW-Authenticate", `Basic realm="quay.example.com"`)
					w.WriteHeader(http.StatusUnauthorized)
				},
			},
			want: map[string]string{"https://cdn.example.com": "no credential"},
		},
		"StorageTokenInside": {
			reason: "storage may not name the metadata service as its token server",
			hosts: hosts{
				"quay.example.com": blobs(to("https://cdn.example.com/blob")),
				"cdn.example.com":  challenge("https://169.254.169.254/token"), "169.254.169.254": token,
			},
			want: map[string]string{"https://cdn.example.com": "no credential"},
		},
		"Rebinding": {
			reason: "a name that resolves to a private address gets a request without a credential, and its response is hashed",
			hosts:  hosts{"quay.example.com": blobs(to("http://rebound.example.com/blob")), "rebound.example.com": forged},
			want:   map[string]string{"http://rebound.example.com": "no credential"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			credentials := filepath.Join(t.TempDir(), "auth.json")
			if err := os.WriteFile(credentials, []byte(`{"auths":{"quay.example.com":{"username":"user","password":"secret!"}}}`),
				0o600); err != nil {
				t.Fatal(err)
			}
			network := &reached{hosts: tc.hosts, sent: map[string]string{}}
			access := registry.Own(t.Context(), registry.Local{AuthFiles: []string{credentials}, Transport: network})
			digest := digestOf([]byte("{}"))
			_, err := access.Try(t.Context(), "quay.example.com/a/b@"+digest, func(ctx context.Context, visit registry.Visit) error {
				at, err := repository.Open(ctx, visit.Reference.Context(), visit.Auth, visit.Transport)
				if err == nil {
					_, err = at.Blob(ctx, digest, 2)
				}
				return err
			})
			if err == nil || strings.Contains(err.Error(), "secret!") {
				t.Errorf("%s: error %v, want one without the credential", tc.reason, err)
			}
			want := tc.want
			if want == nil {
				want = map[string]string{}
			}
			if diff := cmp.Diff(want, network.sent); diff != "" {
				t.Errorf("%s: sent (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}
