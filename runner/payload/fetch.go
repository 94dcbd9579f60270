package payload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/name"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/ocimanifest"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/repository"
	"github.com/openshift/update-preflight/signature"
)

// maxLayer bounds the layer with the manifests, in bytes.
const maxLayer = 64 << 20

// errNotKept says that the cache alone does not do.
var errNotKept = errors.New("not in the cache")

// fetcher gets blobs of the release image, none of which it has before it is shown
// to be the right one.
type fetcher struct {
	image        name.Digest
	cache        Cache
	architecture string
	read         atomic.Int64
	// place is the repository that is asked now; nil when none is.
	place *repository.Repository
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
		f.place, err = repository.Open(ctx, visit.Reference.Context(), visit.Auth, metered{read: &f.read, next: visit.Transport})
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

// manifest returns the bytes of the manifest with that digest.
func (f *fetcher) manifest(ctx context.Context, digest string) ([]byte, error) {
	if content, ok := f.kept(digest, ocimanifest.MaxSize); ok {
		return content, nil
	}
	if f.place == nil {
		return nil, errNotKept
	}
	content, err := f.place.Manifest(ctx, digest)
	what := fmt.Sprintf("the manifest %s of %q", digest, f.image.String())
	switch {
	case errors.Is(err, repository.ErrTooLarge):
		return nil, refuse(string(ocimanifest.ManifestTooLarge), "%s is larger than %d bytes", what, ocimanifest.MaxSize)
	case errors.Is(err, repository.ErrMismatch):
		return nil, mismatch(what)
	case err != nil:
		return nil, err
	}
	return f.keep(digest, content), nil
}

func mismatch(what string) *Error {
	return refuse("DigestMismatch", "the registry served something else as %s", what)
}

// blob returns all bytes of the layer, once they are shown to be the right ones.
func (f *fetcher) blob(ctx context.Context, descriptor ocispec.Descriptor) ([]byte, error) {
	digest := descriptor.Digest.String()
	if content, ok := f.kept(digest, descriptor.Size); ok && int64(len(content)) == descriptor.Size {
		return content, nil
	}
	if f.place == nil {
		return nil, errNotKept
	}
	content, err := f.place.Blob(ctx, digest, descriptor.Size)
	what := fmt.Sprintf("the layer %s of %q", digest, f.image.String())
	cut, short := errors.AsType[*repository.CutError](err)
	switch {
	case errors.Is(err, repository.ErrMismatch):
		return nil, mismatch(what)
	case short && ctx.Err() != nil:
		return nil, ctx.Err()
	case short:
		return nil, truncated(what, cut)
	case err != nil:
		return nil, err
	}
	return f.keep(digest, content), nil
}

func truncated(what string, cut *repository.CutError) *Error {
	failure := &Error{
		Reason: "LayerTruncated", Message: fmt.Sprintf("the registry served %d of the %d bytes of %s", cut.Got, cut.Want, what),
		Remediation: "Run the preflight again; if it stays, mirror the release again: oc adm release mirror",
		Outcome:     preflight.Unknown,
	}
	if cut.Err != nil {
		failure.Err = errors.New(oneLine(cut.Err.Error()))
	}
	return failure
}

// metered is a way to a registry that counts what comes back.
type metered struct {
	read *atomic.Int64
	next http.RoundTripper
}

// RoundTrip passes the request on and counts the body of its response.
func (m metered) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := m.next.RoundTrip(request)
	if err == nil {
		response.Body = &meteredBody{ReadCloser: response.Body, read: m.read}
	}
	return response, err
}

type meteredBody struct {
	io.ReadCloser
	read *atomic.Int64
}

// Read counts the bytes it returns.
func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Add(int64(n))
	return n, err
}
