package registry_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/registry/repository"
)

// hosts are registries without a network, by host. Other hosts
// are unreachable.
type hosts map[string]http.HandlerFunc

func (h hosts) RoundTrip(request *http.Request) (*http.Response, error) {
	handler, ok := h[request.URL.Host]
	if !ok {
		return nil, fmt.Errorf("lookup %s: no such host", request.URL.Host)
	}
	recorder := httptest.NewRecorder()
	handler(recorder, request)
	response := recorder.Result()
	response.Request = request
	return response, nil
}

func found(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	w.Header().Set("Docker-Content-Digest", strings.TrimPrefix(digest, "@"))
	w.Header().Set("Content-Length", "2")
}

// missing responds that the image does not exist.
func missing(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v2/" {
		w.WriteHeader(http.StatusNotFound)
	}
}

// unauthorized rejects every credential.
func unauthorized(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
	w.WriteHeader(http.StatusUnauthorized)
}

// only accepts one credential.
func only(account string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user+":"+password != account {
			unauthorized(w, r)
			return
		}
		found(w, r)
	}
}

func head(ctx context.Context, visit registry.Visit) error {
	place, err := repository.Open(ctx, visit.Reference.Context(), visit.Auth, visit.Transport)
	if err == nil {
		_, err = place.Resolve(ctx, visit.Reference.Identifier())
	}
	return err
}

// failureOf asserts that err is a complete *registry.Error without secrets.
func failureOf(t *testing.T, err error) *registry.Error {
	t.Helper()
	failure, ok := errors.AsType[*registry.Error](err)
	if !ok {
		t.Fatalf("error %v, want an *registry.Error", err)
	}
	if failure.Reason == (finding.Reason{}) || failure.Message == "" || failure.Remediation == "" ||
		strings.ContainsAny(failure.Error(), "\r\n") {
		t.Errorf("incomplete error: %+v", failure)
	}
	if strings.Contains(failure.Error()+remedyOf(failure), "secret!") {
		t.Errorf("a secret is repeated: %+v", failure)
	}
	if !strings.HasSuffix(failure.Remediation, ".") {
		t.Errorf("remedy %q is not a sentence", failure.Remediation)
	}
	return failure
}

// remedyOf is the remedy with its commands.
func remedyOf(failure *registry.Error) string {
	remedy := failure.Remediation
	for _, action := range failure.Actions {
		remedy += "\n" + action.Command
	}
	return remedy
}

func writeFile(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "auth.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTry pulls in a cluster whose mirrors are a and b and whose
// source is never contacted.
func TestTry(t *testing.T) {
	c := apply(t, state{
		digests: map[string][]configv1.ImageDigestMirrors{"a": {{
			Source: "quay.io", Mirrors: []configv1.ImageMirror{"a.example.com", "b.example.com"}, MirrorSourcePolicy: configv1.NeverContactSource,
		}}},
		auths: map[string]string{
			"a.example.com": "host:secret!", "a.example.com/openshift-release-dev": "namespace:secret!",
			"a.example.com/openshift-release": "part:secret!",
			"quay.io":                         "source:secret!",
		},
	})
	own := authFile(t, map[string]string{
		"a.example.com/openshift-release-dev/ocp-release": "own:secret!",
		"https://b.example.com/v1/":                       "old:secret!",
	})
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }
	for name, tc := range map[string]struct {
		reason string
		hosts  hosts
		own    string
		want   string // the place that responded, or else the reason
		text   string
		remedy string
	}{
		"First": {
			reason: "the first place that has the image", hosts: hosts{"a.example.com": found, "b.example.com": found},
			want: `mirror "a.example.com/openshift-release-dev/ocp-release"`,
		},
		"Namespace": {
			reason: "the longest entry applies", hosts: hosts{"a.example.com": only("namespace:secret!")},
			want: `mirror "a.example.com/openshift-release-dev/ocp-release"`,
			text: `the entry "a.example.com/openshift-release-dev" of Secret openshift-config/pull-secret`,
		},
		"Own": {
			reason: "the user's own entry is tried after the cluster's", own: string(own),
			hosts: hosts{"a.example.com": only("own:secret!")}, want: `mirror "a.example.com/openshift-release-dev/ocp-release"`,
			text: `the entry "a.example.com/openshift-release-dev/ocp-release" of "`,
		},
		"Old key": {reason: "older tools write keys as URLs", own: string(own), hosts: hosts{"a.example.com": missing, "b.example.com": only(
			"old:secret!")}, want: `mirror "b.example.com/openshift-release-dev/ocp-release"`, text: `the entry "b.example.com" of`},
		"Next": {
			reason: "a mirror may lack the image", hosts: hosts{"a.example.com": missing, "b.example.com": found},
			want: `mirror "b.example.com/openshift-release-dev/ocp-release"`,
		},
		"All": {
			reason: "every response is reported", hosts: hosts{"a.example.com": missing, "b.example.com": unauthorized, "quay.io": found},
			want: "RegistryUnauthorized",
			text: `mirror "a.example.com/openshift-release-dev/ocp-release": 404 Not Found; mirror "b.example.com/openshift-release-dev/ocp-release": 401 Unauthorized with no credential; ` +
				`source "quay.io/openshift-release-dev/ocp-release": never contacted by policy: mirrorSourcePolicy of "quay.io" is NeverContactSource`,
			remedy: "podman login b.example.com",
		},
		"Refused": {
			reason: "the origin of the rejected credential is reported", hosts: hosts{
				"a.example.com": unauthorized,
				"b.example.com": missing,
			}, want: "RegistryUnauthorized",
			text:   `401 Unauthorized with the entry "a.example.com/openshift-release-dev" of Secret`,
			remedy: "Renew the entry of the cluster's pull secret",
		},
		"Refused both": {
			reason: "every credential is tried", own: string(own), hosts: hosts{
				"a.example.com": unauthorized,
				"b.example.com": missing,
			}, want: "RegistryUnauthorized",
			text: `401 Unauthorized with the entry "a.example.com/openshift-release-dev/ocp-release" of "`,
		},
		"Missing": {
			reason: "no place has the image", hosts: hosts{"a.example.com": missing, "b.example.com": missing},
			want: "ImageNotFound", remedy: "mirror the release",
		},
		"Unreachable": {
			reason: "an unreachable place may have the image", hosts: hosts{"a.example.com": missing}, want: "RegistryUnreachable",
			text: "lookup b.example.com: no such host", remedy: "Make b.example.com reachable",
		},
		"Broken": {
			reason: "any other HTTP error", hosts: hosts{"a.example.com": missing, "b.example.com": down}, want: "RegistryError",
			text: "418 I'm a teapot",
		},
	} {
		t.Run(name, func(t *testing.T) {
			local := registry.Local{Transport: tc.hosts, AuthFiles: []string{filepath.Join(t.TempDir(), "none.json")}}
			if tc.own != "" {
				local.AuthFiles = append(local.AuthFiles, writeFile(t, []byte(tc.own)))
			}
			visit, err := registry.FromCluster(t.Context(), c, local).Try(t.Context(), payloadRepository+digest, head)
			got, text := visit.String(), visit.Credential
			if err != nil {
				failure := failureOf(t, err)
				got, text = failure.Reason.String(), failure.Message
				if !strings.Contains(remedyOf(failure), tc.remedy) {
					t.Errorf("%s: the remedy %q does not contain %q", tc.reason, remedyOf(failure), tc.remedy)
				}
			}
			if got != tc.want || !strings.Contains(text, tc.text) {
				t.Errorf("%s: %s, %s\nwant %s with %s", tc.reason, got, text, tc.want, tc.text)
			}
		})
	}
}

// TestSourceUnreachable checks the remedy for a source that cannot be reached, by what
// the mirror sets of the cluster have.
func TestSourceUnreachable(t *testing.T) {
	set := func(source, mirror string) map[string][]configv1.ImageDigestMirrors {
		return map[string][]configv1.ImageDigestMirrors{"release": {{
			Source:  source,
			Mirrors: []configv1.ImageMirror{configv1.ImageMirror(mirror)},
		}}}
	}
	policy := func(source, mirror string) map[string][]operatorv1alpha1.RepositoryDigestMirrors {
		return map[string][]operatorv1alpha1.RepositoryDigestMirrors{"old": {{Source: source, Mirrors: []string{mirror}}}}
	}
	tags := map[string][]configv1.ImageTagMirrors{"tags": {{Source: "quay.io", Mirrors: []configv1.ImageMirror{"m.example.com"}}}}
	const components, reach = "quay.io/openshift-release-dev/ocp-v4.0-art-dev", "Make quay.io reachable from here"
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }
	for name, tc := range map[string]struct {
		reason string
		state  state
		mirror http.HandlerFunc // of m.example.com
		want   string
		text   string
		remedy string
	}{
		"No sets": {
			reason: "the registry is to be reached, or the release mirrored", want: "RegistryUnreachable",
			remedy: reach + ", with the right proxy and CA, or mirror the release",
		},
		"No entry": {
			reason: "the entry to add is a command", state: state{digests: set(components, "m.example.com:5000/ocp")}, want: "RepositoryNotMirrored",
			text: `lookup quay.io: no such host; no mirror set of the cluster has an entry for "quay.io/openshift-release-dev/ocp-release"`,
			remedy: `oc patch imagedigestmirrorset release --type=json -p '[{"op":"add","path":"/spec/imageDigestMirrors/-","value":` +
				`{"mirrors":["m.example.com:5000/openshift-release-dev/ocp-release"],"source":"quay.io/openshift-release-dev/ocp-release"}}]'`,
		},
		"Nearest": {
			reason: "the entry is added to the set of the nearest source", want: "RepositoryNotMirrored",
			state:  state{digests: set("registry.example.com", "other.example.com"), policies: policy(components, "m.example.com/ocp")},
			remedy: `oc patch imagecontentsourcepolicy old --type=json -p '[{"op":"add","path":"/spec/repositoryDigestMirrors/-"`,
		},
		"By tag": {
			reason: "mirrors of tags do not apply to a digest", state: state{tags: tags}, want: "RegistryUnreachable",
			remedy: reach,
		},
		"Mirrored": {
			reason: "the mirror was not reached either", state: state{digests: set("quay.io", "m.example.com")},
			want: "RegistryUnreachable", remedy: "Make m.example.com reachable from here, with the right proxy and CA, then",
		},
		"Not in mirror": {
			reason: "the mirror responds that the image does not exist", state: state{digests: set("quay.io", "m.example.com")},
			mirror: missing, want: "MirrorIncomplete", remedy: "Mirror the release again",
		},
		"Mirror is down": {
			reason: "the error of the mirror comes first", state: state{digests: set("quay.io", "m.example.com")}, mirror: down,
			want: "RegistryError", remedy: "ask the operators of m.example.com",
		},
		"Invalid mirror": {
			reason: "what is not a repository is not suggested", state: state{policies: policy(components, "'; touch x; '")},
			want: "RegistryUnreachable", remedy: reach,
		},
	} {
		t.Run(name, func(t *testing.T) {
			reachable := hosts{}
			if tc.mirror != nil {
				reachable["m.example.com"] = tc.mirror
			}
			_, err := registry.FromCluster(t.Context(), apply(t, tc.state), registry.Local{Transport: reachable}).Try(t.Context(),
				payloadRepository+digest, head)
			failure := failureOf(t, err)
			if failure.Reason.String() != tc.want || !strings.Contains(failure.Message, tc.text) {
				t.Errorf("%s: %s, %s\nwant %s with %s", tc.reason, failure.Reason, failure.Message, tc.want, tc.text)
			}
			if !strings.Contains(remedyOf(failure), tc.remedy) {
				t.Errorf("%s: the remedy %q does not contain %q", tc.reason, remedyOf(failure), tc.remedy)
			}
		})
	}
}

func TestTryEndsWithOtherErrors(t *testing.T) {
	tampered := errors.New("different content than requested")
	attempts := 0
	_, err := registry.Own(t.Context(), registry.Local{}).Try(t.Context(), payloadRepository+digest,
		func(context.Context, registry.Visit) error { attempts++; return tampered })
	if !errors.Is(err, tampered) || attempts != 1 {
		t.Errorf("%d attempts, error %v; another error must not continue with the next place", attempts, err)
	}
}

func TestEverythingBlocked(t *testing.T) {
	c := apply(t, state{sources: configv1.RegistrySources{BlockedRegistries: []string{"evil.example.com"}}})
	access := registry.FromCluster(t.Context(), c, registry.Local{Transport: hosts{"evil.example.com": found}})
	_, err := access.Try(t.Context(), "evil.example.com/x"+digest, head)
	if failure := failureOf(t, err); failure.Reason.String() != "RegistryBlocked" ||
		!strings.Contains(failure.Message, "blocked by the cluster") {
		t.Errorf("%s: %s, want RegistryBlocked without a request", failure.Reason, failure.Message)
	}
}

// TestBusy checks whether and how long a busy registry is retried.
func TestBusy(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		busy   int
		status int
		after  string
		want   string
		took   time.Duration
	}{
		"Once":       {reason: "one failure is retried", busy: 1, status: http.StatusServiceUnavailable, took: 500 * time.Millisecond},
		"Backoff":    {reason: "each wait doubles", busy: 3, status: http.StatusBadGateway, took: 3500 * time.Millisecond},
		"RetryAfter": {reason: "the registry may set the wait", busy: 1, status: http.StatusTooManyRequests, after: "7", took: 7 * time.Second},
		"Date": {
			reason: "the registry may set the wait as a date", busy: 1, status: http.StatusTooManyRequests,
			after: "Sat, 01 Jan 2000 00:00:09 GMT", took: 9 * time.Second,
		},
		"Too long": {
			reason: "a wait of an hour is not made", busy: 1, status: http.StatusTooManyRequests, after: "3600",
			want: "RegistryRateLimited",
		},
		"Always": {
			reason: "retries are limited", busy: 99, status: http.StatusInternalServerError, took: 3500 * time.Millisecond,
			want: "RegistryError",
		},
		"Not passed": {reason: "404 is not retried", busy: 99, status: http.StatusNotFound, want: "ImageNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left := tc.busy
				handler := func(w http.ResponseWriter, r *http.Request) {
					if left--; r.URL.Path == "/v2/" || left < 0 {
						found(w, r)
						return
					}
					if tc.after != "" {
						w.Header().Set("Retry-After", tc.after)
					}
					w.WriteHeader(tc.status)
				}
				counted := func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/v2/" {
						left++ // the ping does not count
					}
					handler(w, r)
				}
				start := time.Now()
				_, err := registry.Own(t.Context(), registry.Local{Transport: hosts{"quay.io": counted}}).Try(t.Context(), payloadRepository+digest,
					head)
				got := ""
				if err != nil {
					got = failureOf(t, err).Reason.String()
				}
				if took := time.Since(start); got != tc.want || took != tc.took {
					t.Errorf("%s: %q after %s, want %q after %s (%v)", tc.reason, got, took, tc.want, tc.took, err)
				}
			})
		})
	}
}

func TestBusyEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		busy := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "20")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		start := time.Now()
		_, err := registry.Own(t.Context(), registry.Local{Transport: hosts{"quay.io": busy}}).Try(ctx, payloadRepository+digest, head)
		if failure := failureOf(t, err); failure.Reason.String() != "Timeout" || time.Since(start) != 2*time.Second {
			t.Errorf("%s after %s, want Timeout after 2s", failure.Reason, time.Since(start))
		}
	})
}

// TestPlainHTTP checks that go-containerregistry's fallback for private networks
// does not disclose credentials.
func TestPlainHTTP(t *testing.T) {
	plain := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Scheme != "http" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		found(w, r)
	}
	for name, tc := range map[string]struct {
		reason   string
		host     string
		insecure []string
		want     string
	}{
		"Private":  {reason: "credentials could be intercepted", host: "10.1.2.3:5000", want: "RegistryError"},
		"Insecure": {reason: "the administrator listed it", host: "10.1.2.3:5000", insecure: []string{"10.1.2.3:5000"}},
		"Public":   {reason: "any registry can be listed", host: "registry.example.com", insecure: []string{"*.example.com"}},
		"Unlisted": {reason: "the registry is not listed as insecure", host: "registry.example.com", want: "RegistryError"},
		"Local":    {reason: "a loopback address is local", host: "127.0.0.1:5000"},
	} {
		t.Run(name, func(t *testing.T) {
			c := apply(t, state{sources: configv1.RegistrySources{InsecureRegistries: tc.insecure}})
			access := registry.FromCluster(t.Context(), c, registry.Local{Transport: hosts{tc.host: plain}})
			synctest.Test(t, func(t *testing.T) {
				_, err := access.Try(t.Context(), tc.host+"/x"+digest, head)
				got := ""
				if err != nil {
					got = failureOf(t, err).Reason.String()
				}
				if got != tc.want {
					t.Errorf("%s: %q, want %q (%v)", tc.reason, got, tc.want, err)
				}
			})
		})
	}
}

func TestCertificates(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(found))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "https://")
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for name, tc := range map[string]struct {
		reason string
		state  state
		want   string
	}{
		"None": {reason: "an unlisted CA is not trusted", want: "RegistryUntrusted"},
		"Own":  {reason: "the registry has its own CA", state: state{trusted: map[string]string{strings.Replace(host, ":", "..", 1): ca}}},
		"Other": {
			reason: "a CA applies only to its registry", state: state{trusted: map[string]string{"registry.example.com": ca}},
			want: "RegistryUntrusted",
		},
		"Bundle": {reason: "the cluster's bundle applies to all registries", state: state{bundle: ca}},
		"Insecure": {
			reason: "the certificate of an insecure registry is not verified",
			state:  state{sources: configv1.RegistrySources{InsecureRegistries: []string{host}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			access := registry.FromCluster(t.Context(), apply(t, tc.state), registry.Local{})
			defer access.Close()
			_, err := access.Try(t.Context(), host+"/x"+digest, head)
			got := ""
			if err != nil {
				got = failureOf(t, err).Reason.String()
			}
			if got != tc.want {
				t.Errorf("%s: %q, want %q (%v)", tc.reason, got, tc.want, err)
			}
		})
	}
}

func TestProxy(t *testing.T) {
	var requested []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requested = append(requested, r.Host)
		found(w, r)
	}))
	defer proxy.Close()
	c := apply(t, state{
		proxy:   configv1.ProxyStatus{HTTPProxy: proxy.URL, HTTPSProxy: "http://127.0.0.1:1", NoProxy: "not.example.com"},
		sources: configv1.RegistrySources{InsecureRegistries: []string{"registry.example.com"}},
	})
	access := registry.FromCluster(t.Context(), c, registry.Local{})
	defer access.Close()
	if _, err := access.Try(t.Context(), "registry.example.com/x"+digest, head); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"registry.example.com", "registry.example.com"}, requested); diff != "" {
		t.Errorf("requests to the proxy (-want, +got):\n%s", diff)
	}
}

func TestHelper(t *testing.T) {
	directory := t.TempDir()
	t.Setenv("PATH", directory+string(os.PathListSeparator)+os.Getenv("PATH"))
	for helper, script := range map[string]string{
		"good": `read -r host; [ "$host" = quay.io ] && echo '{"Username":"helped","Secret":"secret!"}'`,
		"none": `echo "credentials not found in native keychain"; exit 1`,
		"bad":  `echo "secret!" >&2; exit 3`,
		"junk": `echo "secret!"`,
	} {
		if err := os.WriteFile(filepath.Join(directory, "docker-credential-"+helper), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		reason string
		file   string
		want   string
	}{
		"For all": {reason: "a helper for all hosts", file: `{"credsStore":"good"}`},
		"For one": {reason: "a helper for one host", file: `{"credsStore":"bad","credHelpers":{"quay.io":"good"}}`},
		"Entry": {
			reason: "an entry in the file comes first",
			file:   `{"credsStore":"bad","auths":{"quay.io":{"username":"helped","password":"secret!"}}}`,
		},
		"Empty":    {reason: "an empty entry refers to the helper", file: `{"credsStore":"good","auths":{"quay.io":{}}}`},
		"Unknown":  {reason: "a helper without a credential is not an error", file: `{"credsStore":"none"}`, want: "RegistryUnauthorized"},
		"Fails":    {reason: "a failing helper", file: `{"credsStore":"bad"}`, want: "CredentialHelperFailed"},
		"Junk":     {reason: "its output is not repeated", file: `{"credsStore":"junk"}`, want: "CredentialHelperFailed"},
		"Missing":  {reason: "a missing program", file: `{"credsStore":"nowhere"}`, want: "CredentialHelperFailed"},
		"Path":     {reason: "a name must not be a path", file: `{"credsStore":"/../../good"}`, want: "CredentialHelperFailed"},
		"No helps": {reason: "no credential at all", file: `{}`, want: "RegistryUnauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			local := registry.Local{AuthFiles: []string{writeFile(t, []byte(tc.file))}, Transport: hosts{"quay.io": only("helped:secret!")}}
			_, err := registry.Own(t.Context(), local).Try(t.Context(), payloadRepository+digest, head)
			got := ""
			if err != nil {
				got = failureOf(t, err).Reason.String()
			}
			if got != tc.want {
				t.Errorf("%s: %q, want %q (%v)", tc.reason, got, tc.want, err)
			}
		})
	}
}

func FuzzAuthFile(f *testing.F) {
	f.Add([]byte(`{"auths":{"https://quay.io/v1/":{"auth":"YTpi"},"quay.io/openshift-release-dev":{"username":"a","password":"b"}}}`))
	f.Add([]byte(`{"auths":{"":{"auth":"Og"},"/":{"identitytoken":"x"}},"credHelpers":{}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		if strings.Contains(strings.ToLower(string(content)), "cred") {
			return // helpers are not run in this test
		}
		local := registry.Local{AuthFiles: []string{writeFile(t, content)}, Transport: hosts{"quay.io": unauthorized}}
		access := registry.Own(t.Context(), local)
		_, err := access.Try(t.Context(), payloadRepository+digest, head)
		if failure := failureOf(t, err); failure.Reason.String() != "RegistryUnauthorized" {
			t.Errorf("%s, want RegistryUnauthorized for any file: %v", failure.Reason, err)
		}
		for _, warning := range access.Warnings() {
			if strings.ContainsAny(warning.Message, "\r\n") || len(warning.Message) > 2048 {
				t.Errorf("not one short line: %q", warning.Message)
			}
		}
	})
}
