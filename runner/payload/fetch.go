package payload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/signature"
)

const (
	// maxManifest is enough for a thousand layers, and release images have about
	// six. Parsing costs memory by the number of descriptors: two bytes of JSON
	// become a quarter of a KiB.
	maxManifest = 256 << 10
	maxLayer    = 64 << 20
	// slack is what the answers to a ping, a token request and redirects may
	// take on top of what was asked for.
	slack = 64 << 10
)

// errNotKept says that the cache alone does not do.
var errNotKept = errors.New("not in the cache")

// fetcher gets blobs of the release image, and believes none of them before it
// has hashed it.
type fetcher struct {
	image        name.Digest
	cache        Cache
	architecture string
	meter        meter
	// puller reaches the place that is asked now; nil when none is.
	puller *remote.Puller
	// repository is the image's at that place.
	repository name.Repository
}

// newFetcher refuses a proof that nobody gave: the zero value of
// signature.Release.
func newFetcher(proof signature.Release, options Options) (*fetcher, error) {
	if proof.PullSpec() == "" || proof.Digest() == "" {
		failure := refuse("NotVerified", "the release image was not verified")
		failure.Remediation = "Verify the release image first: oc preflight verify PULLSPEC"
		return nil, failure
	}
	image, err := name.NewDigest(proof.PullSpec())
	if err != nil || image.DigestStr() != proof.Digest() {
		failure := refuse("InvalidPullSpec", "the release image %q is not a pull spec by the digest %q that was verified", oneLine(proof.PullSpec()), oneLine(proof.Digest()))
		failure.Err = err
		return nil, failure
	}
	return &fetcher{image: image, cache: options.Cache, architecture: options.Cluster.Architecture}, nil
}

// layer returns the layer with the manifests, from the cache when all of it is
// there, else from the first place that has it. What a place serves that is not
// what was promised is final: nodes would not look elsewhere either.
func (f *fetcher) layer(ctx context.Context, access *registry.Access) ([]byte, error) {
	content, err := f.visit(ctx)
	if !errors.Is(err, errNotKept) {
		return content, err
	}
	_, err = access.Try(ctx, f.image.String(), func(ctx context.Context, visit registry.Visit) error {
		visit.Transport = metered{meter: &f.meter, next: visit.Transport}
		f.repository = visit.Reference.Context()
		f.puller, err = remote.NewPuller(visit.Options(ctx)...)
		if err == nil {
			content, err = f.visit(ctx)
		}
		return err
	})
	if err != nil {
		return nil, unreadable(err, fmt.Sprintf("the release image %q", f.image.String()))
	}
	return content, nil
}

// visit reads the image, and the layer it names, at one place.
func (f *fetcher) visit(ctx context.Context) ([]byte, error) {
	descriptor, err := f.manifestLayer(ctx)
	if err != nil {
		return nil, err
	}
	return f.blob(ctx, descriptor)
}

// kept looks in the cache.
func (f *fetcher) kept(digest string, most int64) ([]byte, bool) {
	if f.cache == nil {
		return nil, false
	}
	return f.cache.Get(digest, most)
}

// keep puts what was hashed into the cache.
func (f *fetcher) keep(digest string, content []byte) []byte {
	if f.cache != nil {
		_ = f.cache.Put(digest, content) // what is not kept is fetched again
	}
	return content
}

// manifest returns the bytes of the manifest with that digest. It hashes them
// itself: go-containerregistry believes the server's header when the server
// calls the manifest a schema 1 one (pkg/v1/remote/fetcher.go).
func (f *fetcher) manifest(ctx context.Context, digest string) ([]byte, error) {
	if content, ok := f.kept(digest, maxManifest); ok {
		return content, nil
	}
	if f.puller == nil {
		return nil, errNotKept
	}
	f.meter.allow(maxManifest + slack)
	what := fmt.Sprintf("the manifest of %q", f.repository.Digest(digest).String())
	descriptor, err := f.puller.Get(ctx, f.repository.Digest(digest))
	switch {
	case err != nil && strings.Contains(err.Error(), "does not match requested digest"):
		// go-containerregistry gives this error no type.
		return nil, mismatch(what)
	case err != nil:
		return nil, err
	case len(descriptor.Manifest) > maxManifest:
		return nil, refuse("ManifestTooLarge", "%s is larger than %d bytes", what, maxManifest)
	case digestOf(descriptor.Manifest) != digest:
		return nil, mismatch(what)
	}
	return f.keep(digest, descriptor.Manifest), nil
}

func mismatch(what string) *Error {
	return refuse("DigestMismatch", "the registry served something else as %s", what)
}

// blob returns all bytes of the layer, once they are shown to be the right ones.
func (f *fetcher) blob(ctx context.Context, descriptor v1.Descriptor) ([]byte, error) {
	digest := descriptor.Digest.String()
	if content, ok := f.kept(digest, descriptor.Size); ok && int64(len(content)) == descriptor.Size {
		return content, nil
	}
	if f.puller == nil {
		return nil, errNotKept
	}
	f.meter.allow(descriptor.Size + slack)
	layer, err := f.puller.Layer(ctx, f.repository.Digest(digest))
	if err != nil {
		return nil, err
	}
	stream, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer stream.Close() //nolint:errcheck // Nothing is written, and what was read is hashed.
	content := bytes.NewBuffer(make([]byte, 0, descriptor.Size+bytes.MinRead))
	n, err := io.Copy(content, io.LimitReader(stream, descriptor.Size))
	what := fmt.Sprintf("the layer %s of %q", digest, f.repository.String())
	switch {
	case n == descriptor.Size && digestOf(content.Bytes()) == digest:
		return f.keep(digest, content.Bytes()), nil
	case n == descriptor.Size:
		return nil, mismatch(what)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, truncated(what, n, descriptor.Size, err)
}

func truncated(what string, got, want int64, err error) *Error {
	failure := &Error{
		Reason: "LayerTruncated", Message: fmt.Sprintf("the registry served %d of the %d bytes of %s", got, want, what),
		Remediation: "Run the preflight again; if it stays, mirror the release again: oc adm release mirror",
		Outcome:     preflight.Unknown,
	}
	if err != nil {
		failure.Err = errors.New(oneLine(err.Error()))
	}
	return failure
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// meter counts what servers send, and stops them when it is more than allowed.
type meter struct {
	read, allowed atomic.Int64
}

// allow lets n more bytes pass.
func (m *meter) allow(n int64) { m.allowed.Store(m.read.Load() + n) }

// metered is a way to a registry that the meter watches.
type metered struct {
	meter *meter
	next  http.RoundTripper
}

// RoundTrip passes the request on and counts the body of its response.
func (m metered) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := m.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &meteredBody{ReadCloser: response.Body, meter: m.meter}
	return response, nil
}

type meteredBody struct {
	io.ReadCloser
	meter *meter
}

// Read counts the bytes it returns.
func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.meter.read.Add(int64(n)) > b.meter.allowed.Load() {
		return 0, refuse("TooMuchData", "the registry sent more than the %d bytes it may for one request", b.meter.allowed.Load())
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, fmt.Errorf("the connection to the registry broke: %w", err)
	}
	return n, err
}
