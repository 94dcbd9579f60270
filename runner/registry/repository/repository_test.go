package repository_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	preflightregistry "github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
	"github.com/openshift/update-preflight/runner/registry/repository"
)

// maxMemory bounds the allocations for rejecting a hostile response, in bytes, including
// those of the server in this process. Reading a manifest of the maximum size allocates
// five times that size.
const maxMemory = 32 << 20

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func open(t *testing.T, place string, way http.RoundTripper) (*repository.Repository, error) {
	t.Helper()
	named, err := name.NewRepository(place)
	if err != nil {
		t.Fatal(err)
	}
	return repository.Open(t.Context(), named, authn.Anonymous, way)
}

func mustOpen(t *testing.T, place string) *repository.Repository {
	t.Helper()
	opened, err := open(t, place, http.DefaultTransport)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// TestValid reads from a registry that serves valid content.
func TestValid(t *testing.T) {
	host := serve(t, registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	image, err := random.Image(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(host + "/a/b:tagged")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, image); err != nil {
		t.Fatal(err)
	}
	manifest, digest, layer := contentOf(t, image)
	at := mustOpen(t, host+"/a/b")

	if got, err := at.Manifest(t.Context(), digest); err != nil || !bytes.Equal(got, manifest) {
		t.Errorf("Manifest: %q, %v; want %q", got, err, manifest)
	}
	if got, kind, err := at.Tagged(t.Context(), "tagged"); err != nil || !bytes.Equal(got, manifest) || kind != types.DockerManifestSchema2 {
		t.Errorf("Tagged: %q, %q, %v; want the tagged manifest", got, kind, err)
	}
	if got, err := at.Resolve(t.Context(), "tagged"); err != nil || got != digest {
		t.Errorf("Resolve: %q, %v; want %q", got, err, digest)
	}
	if got, err := at.Blob(t.Context(), layer.Digest.String(), layer.Size); err != nil || digestOf(got) != layer.Digest.String() {
		t.Errorf("Blob: %d bytes, %v; want the layer", len(got), err)
	}
	if got, err := at.BlobSize(t.Context(), layer.Digest.String()); err != nil || got != layer.Size {
		t.Errorf("BlobSize: %d, %v; want %d", got, err, layer.Size)
	}
	if _, err := at.Resolve(t.Context(), "none"); !repository.IsMissing(err) {
		t.Errorf("a missing tag: %v, want IsMissing", err)
	}
}

func TestManifestIsBounded(t *testing.T) {
	largest := bytes.Repeat([]byte(" "), ocimanifest.MaxSize)
	for _, content := range [][]byte{largest, append(largest, ' ')} {
		host := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v2/" {
				_, _ = w.Write(content)
			}
		}))
		_, err := mustOpen(t, host+"/a/b").Manifest(t.Context(), digestOf(content))
		if tooLarge := len(content) > ocimanifest.MaxSize; errors.Is(err, repository.ErrTooLarge) != tooLarge || !tooLarge && err != nil {
			t.Errorf("%d bytes: %v", len(content), err)
		}
	}
}

func contentOf(t *testing.T, image v1.Image) (manifest []byte, digest string, layer v1.Descriptor) {
	t.Helper()
	manifest, err := image.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return manifest, digestOf(manifest), parsed.Layers[0]
}

// endless writes until the connection is closed.
func endless(w http.ResponseWriter) {
	for block := bytes.Repeat([]byte("{},"), 1<<14); ; {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

func isStatus(code int) func(error) bool {
	return func(err error) bool {
		response, ok := errors.AsType[*transport.Error](err)
		return ok && response.StatusCode == code
	}
}

func isError(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func isUnreachable(text string) func(error) bool {
	return func(err error) bool {
		failed, ok := errors.AsType[*url.Error](err)
		return ok && strings.Contains(failed.Err.Error(), text)
	}
}

func isCut(got, want int64) func(error) bool {
	return func(err error) bool {
		cut, ok := errors.AsType[*repository.CutError](err)
		return ok && cut.Got == got && cut.Want == want
	}
}

// TestHostile serves invalid responses to requests for content. None may be
// accepted as the content or use more memory than the bound.
func TestHostile(t *testing.T) {
	content := []byte(`{"schemaVersion":2}`)
	digest, size := digestOf(content), int64(len(content))
	manifest := func(ctx context.Context, at *repository.Repository) error {
		_, err := at.Manifest(ctx, digest)
		return err
	}
	blob := func(ctx context.Context, at *repository.Repository) error {
		_, err := at.Blob(ctx, digest, size)
		return err
	}
	blobSize := func(ctx context.Context, at *repository.Repository) error {
		_, err := at.BlobSize(ctx, digest)
		return err
	}
	resolve := func(ctx context.Context, at *repository.Repository) error {
		_, err := at.Resolve(ctx, "tag")
		return err
	}
	serves := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	loop := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"?again", http.StatusTemporaryRedirect)
	}
	for name, tc := range map[string]struct {
		reason  string
		respond http.HandlerFunc
		call    func(context.Context, *repository.Repository) error
		want    func(error) bool
	}{
		"Other": {
			reason: "the content differs from the digest", call: manifest, respond: serves(`{"schemaVersion":3}`),
			want: isError(repository.ErrMismatch),
		},
		"Empty": {reason: "an empty response", call: manifest, respond: serves(""), want: isError(repository.ErrMismatch)},
		"Other blob": {
			reason: "the content differs from the digest", call: blob, respond: serves(`{"schemaVersion":3}`),
			want: isError(repository.ErrMismatch),
		},
		"Longer": {
			reason: "trailing content is not ignored", call: blob, respond: serves(string(content) + " "),
			want: isError(repository.ErrMismatch),
		},
		"Shorter": {reason: "a truncated response", call: blob, respond: serves(string(content[:5])), want: isCut(5, size)},
		"Broken": {
			reason: "a broken connection", call: blob, want: isCut(5, size),
			respond: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "19")
				_, _ = w.Write(content[:5])
			},
		},
		"Schema 1": {
			reason: "the digest header is not trusted, unlike in go-containerregistry", call: manifest, want: isError(repository.ErrMismatch),
			respond: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", string(types.DockerManifestSchema1Signed))
				w.Header().Set("Docker-Content-Digest", digest)
				_, _ = io.WriteString(w, "{}")
			},
		},
		"Endless": {
			reason: "a manifest is read up to its limit", call: manifest,
			respond: func(w http.ResponseWriter, _ *http.Request) { endless(w) }, want: isError(repository.ErrTooLarge),
		},
		"Endless blob": {
			reason: "a blob is read up to its size", call: blob,
			respond: func(w http.ResponseWriter, _ *http.Request) { endless(w) }, want: isError(repository.ErrMismatch),
		},
		"Endless error": {reason: "an error is read up to its limit", call: manifest, respond: func(w http.ResponseWriter,
			_ *http.Request,
		) {
			w.WriteHeader(http.StatusTeapot)
			endless(w)
		}, want: isStatus(http.StatusTeapot)},
		"Bomb": {
			reason: "a compressed response counts by its decompressed size", call: manifest, want: isError(repository.ErrTooLarge),
			respond: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(bytes.Repeat(zeros(t), 1000))
			},
		},
		"Loop":         {reason: "redirects are limited", call: manifest, respond: loop, want: isUnreachable("more than 5 redirects")},
		"Loop of blob": {reason: "redirects are limited", call: blob, respond: loop, want: isUnreachable("more than 5 redirects")},
		"Loop of size": {reason: "redirects are limited", call: blobSize, respond: loop, want: isUnreachable("more than 5 redirects")},
		"Loop of tag":  {reason: "redirects are limited", call: resolve, respond: loop, want: isUnreachable("more than 5 redirects")},
		"Ways off": {
			reason: "five redirects are followed", call: manifest, want: isError(nil),
			respond: func(w http.ResponseWriter, r *http.Request) {
				if r.URL.RawQuery == "aaaaa" {
					_, _ = w.Write(content)
					return
				}
				http.Redirect(w, r, r.URL.Path+"?"+r.URL.RawQuery+"a", http.StatusTemporaryRedirect)
			},
		},
		"File": {reason: "only redirects to HTTP are followed", call: manifest, respond: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}, want: isUnreachable("unsupported protocol scheme")},
		"Missing": {
			reason: "404 means that the content is missing", call: manifest, respond: status(http.StatusNotFound),
			want: repository.IsMissing,
		},
		"Forbidden": {
			reason: "403 does not mean that the content is missing", call: blob, respond: status(http.StatusForbidden),
			want: isStatus(http.StatusForbidden),
		},
		"No digest": {
			reason: "the response to a tag needs a digest", call: resolve, respond: serves("{}"),
			want: isError(repository.ErrMismatch),
		},
		"No hash": {reason: "only sha256 is supported", call: resolve, respond: func(w http.ResponseWriter,
			_ *http.Request,
		) {
			w.Header().Set("Docker-Content-Digest", "md5:0")
		}, want: isError(repository.ErrMismatch)},
	} {
		t.Run(name, func(t *testing.T) {
			host := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v2/" {
					tc.respond(w, r)
				}
			}))
			at := mustOpen(t, host+"/a/b")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := tc.call(t.Context(), at)
			runtime.ReadMemStats(&after)
			if !tc.want(err) {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > maxMemory {
				t.Errorf("%s: %d bytes allocated, want at most %d", tc.reason, n, maxMemory)
			}
		})
	}
}

// zeros is 1 MiB of zeros, compressed.
func zeros(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// TestHostilePing serves invalid responses before authentication.
func TestHostilePing(t *testing.T) {
	content := []byte("{}")
	for name, tc := range map[string]struct {
		reason string
		ping   http.HandlerFunc
		opens  bool
	}{
		"Endless": {reason: "a discarded response is bounded", ping: func(w http.ResponseWriter, _ *http.Request) { endless(w) }, opens: true},
		"Endless redirect": {
			reason: "a discarded response is bounded after a redirect", opens: true,
			ping: func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v2/" {
					http.Redirect(w, r, "/pinged", http.StatusFound)
					return
				}
				endless(w)
			},
		},
		"Loop": {
			reason: "redirects are limited",
			ping:   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/v2/", http.StatusFound) },
		},
		"Endless token": {
			reason: "a token is bounded",
			ping: func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/token" {
					endless(w)
					return
				}
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="x"`, r.Host))
				w.WriteHeader(http.StatusUnauthorized)
			},
		},
		"Token from inside": {
			reason: "a registry may not redirect into a private network",
			ping: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("WWW-Authenticate", `Bearer realm="http://169.254.169.254/token",service="x"`)
				w.WriteHeader(http.StatusUnauthorized)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			host := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/v2/a/") {
					_, _ = w.Write(content)
					return
				}
				tc.ping(w, r)
			}))
			at, err := open(t, host+"/a/b", http.DefaultTransport)
			if (err == nil) != tc.opens {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err != nil {
				return
			}
			if got, err := at.Manifest(t.Context(), digestOf(content)); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s: %q, %v", tc.reason, got, err)
			}
		})
	}
}

// hosts are servers without a network.
type hosts map[string]http.HandlerFunc

// RoundTrip implements http.RoundTripper.
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

// TestRedirects checks which redirects are followed, and that errors do not
// repeat the URL of a redirect, which may contain a credential.
func TestRedirects(t *testing.T) {
	content := []byte("{}")
	for name, tc := range map[string]struct {
		reason, from, to string
		rejected         bool
	}{
		"Storage": {reason: "registries store blobs on other hosts", from: "quay.example.com", to: "cdn.example.com"},
		"Public":  {reason: "a public address is allowed", from: "quay.example.com", to: "8.8.8.8"},
		"Private": {
			reason: "a public registry may not redirect to a private address", from: "quay.example.com", to: "10.0.0.1",
			rejected: true,
		},
		"Loopback": {reason: "nor to a loopback address", from: "quay.example.com", to: "127.0.0.1:8080", rejected: true},
		"Six":      {reason: "nor to an IPv6 loopback address", from: "quay.example.com", to: "[::1]", rejected: true},
		"Mapped":   {reason: "an IPv4-mapped private address", from: "quay.example.com", to: "[::ffff:10.0.0.1]", rejected: true},
		"Zone":     {reason: "a link-local address with a zone", from: "quay.example.com", to: "[fe80::1%25eth0]", rejected: true},
		"Metadata": {
			reason: "the metadata service of a cloud serves credentials", from: "quay.example.com", to: "169.254.169.254",
			rejected: true,
		},
		"Number":      {reason: "some resolvers parse one number as an IPv4 address", from: "quay.example.com", to: "2852039166", rejected: true},
		"Hexadecimal": {reason: "some resolvers parse it as an address", from: "quay.example.com", to: "0xa9.0xfe.0xa9.0xfe", rejected: true},
		"Short":       {reason: "some resolvers parse it as an address", from: "quay.example.com", to: "127.1", rejected: true},
		"Dot":         {reason: "some resolvers parse it as an address", from: "quay.example.com", to: "127.0.0.1.", rejected: true},
		"Nowhere":     {reason: "an error does not repeat the URL", from: "quay.example.com", to: "nowhere.example.com", rejected: true},
	} {
		t.Run(name, func(t *testing.T) {
			requested := ""
			storage := func(w http.ResponseWriter, r *http.Request) {
				requested = r.Header.Get("Authorization") + "requested"
				_, _ = w.Write(content)
			}
			servers := hosts{tc.from: func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v2/" {
					w.Header().Set("Location", "https://"+tc.to+"/blob?signature=secret!")
					w.WriteHeader(http.StatusTemporaryRedirect)
				}
			}}
			if tc.to != "nowhere.example.com" {
				servers[strings.ReplaceAll(tc.to, "%25", "%")] = storage
			}
			access := preflightregistry.Own(t.Context(), preflightregistry.Local{Transport: servers})
			_, err := access.Try(t.Context(), tc.from+"/a/b@"+digestOf(content), func(ctx context.Context, visit preflightregistry.Visit) error {
				at, err := repository.Open(ctx, visit.Reference.Context(), visit.Auth, visit.Transport)
				if err == nil {
					_, err = at.Blob(ctx, digestOf(content), int64(len(content)))
				}
				return err
			})
			if (err != nil) != tc.rejected || (requested == "requested") == tc.rejected {
				t.Errorf("%s: %v, and it was %q; want rejected %t", tc.reason, err, requested, tc.rejected)
			}
			if err != nil && strings.Contains(err.Error(), "secret!") {
				t.Errorf("%s: a secret is repeated: %v", tc.reason, err)
			}
		})
	}
}

func TestHangs(t *testing.T) {
	host := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	at := mustOpen(t, host+"/a/b")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := at.Manifest(ctx, digestOf([]byte("{}"))); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a registry that stops within the response: %v, want a deadline error", err)
	}
}
