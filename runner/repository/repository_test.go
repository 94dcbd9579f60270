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

	"github.com/openshift/update-preflight/runner/ocimanifest"
	"github.com/openshift/update-preflight/runner/repository"
)

// maxMemory is what refusing a hostile answer may allocate in bytes, the server
// included: reading a manifest of the largest size takes five times that.
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

// TestHonest reads what a real registry has.
func TestHonest(t *testing.T) {
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
		t.Errorf("Tagged: %q, %q, %v; want what has the tag", got, kind, err)
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
		t.Errorf("a tag that is not there: %v, want that it is missing", err)
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

// endless writes until nobody listens.
func endless(w http.ResponseWriter) {
	for block := bytes.Repeat([]byte("{},"), 1<<14); ; {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

func isStatus(code int) func(error) bool {
	return func(err error) bool {
		answer, ok := errors.AsType[*transport.Error](err)
		return ok && answer.StatusCode == code
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

// TestHostile has a registry that answers each question for content in its own
// way. No answer may be taken for the content, or cost memory.
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
	says := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	loop := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"?again", http.StatusTemporaryRedirect)
	}
	for name, tc := range map[string]struct {
		reason string
		answer http.HandlerFunc
		ask    func(context.Context, *repository.Repository) error
		want   func(error) bool
	}{
		"Other":      {reason: "one bit is enough", ask: manifest, answer: says(`{"schemaVersion":3}`), want: isError(repository.ErrMismatch)},
		"Empty":      {reason: "nothing is not it", ask: manifest, answer: says(""), want: isError(repository.ErrMismatch)},
		"Other blob": {reason: "one bit is enough", ask: blob, answer: says(`{"schemaVersion":3}`), want: isError(repository.ErrMismatch)},
		"Longer":     {reason: "what follows the blob is not hidden", ask: blob, answer: says(string(content) + " "), want: isError(repository.ErrMismatch)},
		"Shorter":    {reason: "the connection may have broken", ask: blob, answer: says(string(content[:5])), want: isCut(5, size)},
		"Broken": {
			reason: "it did break", ask: blob, want: isCut(5, size),
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "19")
				_, _ = w.Write(content[:5])
			},
		},
		"Schema 1": {
			reason: "go-containerregistry believes this header", ask: manifest, want: isError(repository.ErrMismatch),
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", string(types.DockerManifestSchema1Signed))
				w.Header().Set("Docker-Content-Digest", digest)
				_, _ = io.WriteString(w, "{}")
			},
		},
		"Endless":         {reason: "no more is read than is allowed", ask: manifest, answer: func(w http.ResponseWriter, _ *http.Request) { endless(w) }, want: isError(repository.ErrTooLarge)},
		"Endless blob":    {reason: "nor than is promised", ask: blob, answer: func(w http.ResponseWriter, _ *http.Request) { endless(w) }, want: isError(repository.ErrMismatch)},
		"Endless trouble": {reason: "nor of an error", ask: manifest, answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot); endless(w) }, want: isStatus(http.StatusTeapot)},
		"Bomb": {
			reason: "what is small on the way counts by what it becomes", ask: manifest, want: isError(repository.ErrTooLarge),
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(bytes.Repeat(zeros(t), 1000))
			},
		},
		"Loop":         {reason: "nobody follows for ever", ask: manifest, answer: loop, want: isUnreachable("more than 5 redirects")},
		"Loop of blob": {reason: "nobody follows for ever", ask: blob, answer: loop, want: isUnreachable("more than 5 redirects")},
		"Loop of size": {reason: "nobody follows for ever", ask: blobSize, answer: loop, want: isUnreachable("more than 5 redirects")},
		"Loop of tag":  {reason: "nobody follows for ever", ask: resolve, answer: loop, want: isUnreachable("more than 5 redirects")},
		"Ways off": {
			reason: "five are followed", ask: manifest, want: isError(nil),
			answer: func(w http.ResponseWriter, r *http.Request) {
				if r.URL.RawQuery == "aaaaa" {
					_, _ = w.Write(content)
					return
				}
				http.Redirect(w, r, r.URL.Path+"?"+r.URL.RawQuery+"a", http.StatusTemporaryRedirect)
			},
		},
		"File": {reason: "only HTTP is followed", ask: manifest, answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}, want: isUnreachable("unsupported protocol scheme")},
		"Not there": {reason: "a status is told", ask: manifest, answer: status(http.StatusNotFound), want: repository.IsMissing},
		"Refused":   {reason: "and is not the same as not there", ask: blob, answer: status(http.StatusForbidden), want: isStatus(http.StatusForbidden)},
		"No digest": {reason: "a tag stands for a digest", ask: resolve, answer: says("{}"), want: isError(repository.ErrMismatch)},
		"No hash":   {reason: "of a kind that is known", ask: resolve, answer: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Docker-Content-Digest", "md5:0") }, want: isError(repository.ErrMismatch)},
	} {
		t.Run(name, func(t *testing.T) {
			host := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v2/" {
					tc.answer(w, r)
				}
			}))
			at := mustOpen(t, host+"/a/b")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := tc.ask(t.Context(), at)
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

// zeros are 1 MiB of zeros in a few bytes.
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

// TestHostileGreeting has a registry that never gets to the point.
func TestHostileGreeting(t *testing.T) {
	content := []byte("{}")
	for name, tc := range map[string]struct {
		reason string
		greet  http.HandlerFunc
		opens  bool
	}{
		"Endless": {reason: "what is thrown away is not waited for", greet: func(w http.ResponseWriter, _ *http.Request) { endless(w) }, opens: true},
		"Endless elsewhere": {
			reason: "also after a redirect", opens: true,
			greet: func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v2/" {
					http.Redirect(w, r, "/greeting", http.StatusFound)
					return
				}
				endless(w)
			},
		},
		"Loop": {reason: "nobody follows for ever", greet: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/v2/", http.StatusFound) }},
		"Endless token": {
			reason: "a token is short",
			greet: func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/token" {
					endless(w)
					return
				}
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="x"`, r.Host))
				w.WriteHeader(http.StatusUnauthorized)
			},
		},
		"Token from inside": {
			reason: "a registry does not send us into the network that we are in",
			greet: func(w http.ResponseWriter, _ *http.Request) {
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
				tc.greet(w, r)
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

// TestRedirects shows where a registry may send us, and that where it did is not
// told: whoever knows the URL may have what is there.
func TestRedirects(t *testing.T) {
	content := []byte("{}")
	for name, tc := range map[string]struct {
		reason, from, to string
		refused          bool
	}{
		"Storage":     {reason: "registries keep blobs elsewhere", from: "quay.example.com", to: "cdn.example.com"},
		"Itself":      {reason: "or at another port", from: "10.0.0.1:5000", to: "10.0.0.1:9000"},
		"Next door":   {reason: "who is inside may have storage there", from: "10.0.0.1:5000", to: "10.0.0.2"},
		"Public":      {reason: "a public address is as good as a name", from: "quay.example.com", to: "8.8.8.8"},
		"Private":     {reason: "who is outside has nothing there", from: "quay.example.com", to: "10.0.0.1", refused: true},
		"Loopback":    {reason: "nor here", from: "quay.example.com", to: "127.0.0.1:8080", refused: true},
		"Six":         {reason: "nor here", from: "quay.example.com", to: "[::1]", refused: true},
		"Mapped":      {reason: "in whatever way it is written", from: "quay.example.com", to: "[::ffff:10.0.0.1]", refused: true},
		"Zone":        {reason: "in whatever way it is written", from: "quay.example.com", to: "[fe80::1%25eth0]", refused: true},
		"Metadata":    {reason: "clouds give credentials to whoever asks there", from: "quay.example.com", to: "169.254.169.254", refused: true},
		"Number":      {reason: "some resolvers take one number for four", from: "quay.example.com", to: "2852039166", refused: true},
		"Hexadecimal": {reason: "some resolvers take it for an address", from: "quay.example.com", to: "0xa9.0xfe.0xa9.0xfe", refused: true},
		"Short":       {reason: "some resolvers take it for an address", from: "quay.example.com", to: "127.1", refused: true},
		"Dot":         {reason: "some resolvers take it for an address", from: "quay.example.com", to: "127.0.0.1.", refused: true},
		"Nowhere":     {reason: "an error does not tell the rest", from: "quay.example.com", to: "nowhere.example.com", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			elsewhere := func(w http.ResponseWriter, r *http.Request) {
				asked = r.Header.Get("Authorization") + "asked"
				_, _ = w.Write(content)
			}
			there := hosts{tc.from: func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v2/" {
					w.Header().Set("Location", "https://"+tc.to+"/blob?signature=secret!")
					w.WriteHeader(http.StatusTemporaryRedirect)
				}
			}}
			if tc.to != "nowhere.example.com" {
				there[strings.ReplaceAll(tc.to, "%25", "%")] = elsewhere
			}
			at, err := open(t, tc.from+"/a/b", there)
			if err != nil {
				t.Fatal(err)
			}
			_, err = at.Blob(t.Context(), digestOf(content), int64(len(content)))
			if (err != nil) != tc.refused || (asked == "asked") == tc.refused {
				t.Errorf("%s: %v, and it was %q; refused should be %t", tc.reason, err, asked, tc.refused)
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
		t.Errorf("a registry that stops in the middle: %v, want that the time is up", err)
	}
}
