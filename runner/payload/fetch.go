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

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/ocimanifest"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/repository"
	"github.com/openshift/update-preflight/signature"
)

// maxLayer bounds the layer with the manifests, in bytes.
const maxLayer = 64 << 20

// errNotCached reports that content is not in the cache.
var errNotCached = errors.New("not in the cache")

// fetcher fetches blobs of one image. It returns only content that matches its digest.
type fetcher struct {
	image name.Digest
	// what names the image in errors, choice its layers to fetch.
	what         string
	choice       func(ocimanifest.Manifest) ([]ocispec.Descriptor, error)
	cache        Cache
	architecture string
	read         atomic.Int64
	// place is the current repository; nil while only the cache is read.
	place *repository.Repository
}

// newFetcher rejects the zero value of signature.Release, which proves nothing.

func newFetcher(proof signature.Release, options Options) (*fetcher, error) {
	if proof.PullSpec() == "" || proof.Digest() == "" {
		failure := reject(ReasonNotVerified, "the release image was not verified")
		failure.Remediation, failure.Actions = "Verify the release image first.", nil
		return nil, failure
	}
	image, err := name.NewDigest(proof.PullSpec())
	if err != nil || image.DigestStr() != proof.Digest() {
		failure := reject(ReasonInvalidPullSpec, "the release image %q is not a pull spec by the digest %q that was verified", oneLine(proof.PullSpec()), oneLine(proof.Digest()))
		failure.Err = err
		return nil, failure
	}
	return &fetcher{image: image, what: "the release image", choice: lastLayer, cache: options.Cache, architecture: options.Cluster.Architecture}, nil
}

// layers returns the chosen layers, from the cache if they are complete
// there, else from the first place that has them. Content that does not match its
// digest is final: nodes would not try another place either.
func (f *fetcher) layers(ctx context.Context, access *registry.Access) ([][]byte, error) {
	content, err := f.visit(ctx)
	if !errors.Is(err, errNotCached) {
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
		return nil, unreadable(err, fmt.Sprintf("%s %q", f.what, f.image.String()))
	}
	return content, nil
}

// visit reads the image and its chosen layers at one place.
func (f *fetcher) visit(ctx context.Context) ([][]byte, error) {
	descriptors, err := f.descriptors(ctx)
	if err != nil {
		return nil, err
	}
	contents := make([][]byte, 0, len(descriptors))
	for _, descriptor := range descriptors {
		content, err := f.blob(ctx, descriptor)
		if err != nil {
			return nil, err
		}
		contents = append(contents, content)
	}
	return contents, nil
}

// cached reads content from the cache.
func (f *fetcher) cached(digest string, most int64) ([]byte, bool) {
	if f.cache == nil {
		return nil, false
	}
	return f.cache.Get(digest, most)
}

// keep stores verified content in the cache.
func (f *fetcher) keep(digest string, content []byte) []byte {
	if f.cache != nil {
		_ = f.cache.Put(digest, content) // otherwise it is fetched again
	}
	return content
}

// manifest returns the bytes of the manifest with that digest.
func (f *fetcher) manifest(ctx context.Context, digest string) ([]byte, error) {
	if content, ok := f.cached(digest, ocimanifest.MaxSize); ok {
		return content, nil
	}
	if f.place == nil {
		return nil, errNotCached
	}
	content, err := f.place.Manifest(ctx, digest)
	what := fmt.Sprintf("the manifest %s of %q", digest, f.image.String())
	switch {
	case errors.Is(err, repository.ErrTooLarge):
		return nil, reject(ocimanifest.ReasonManifestTooLarge, "%s is larger than %d bytes", what, ocimanifest.MaxSize)
	case errors.Is(err, repository.ErrMismatch):
		return nil, mismatch(what)
	case err != nil:
		return nil, err
	}
	return f.keep(digest, content), nil
}

func mismatch(what string) *Error {
	return reject(ReasonDigestMismatch, "the registry served other content as %s", what)
}

// blob returns the content of the layer, verified by digest.
func (f *fetcher) blob(ctx context.Context, descriptor ocispec.Descriptor) ([]byte, error) {
	digest := descriptor.Digest.String()
	if content, ok := f.cached(digest, descriptor.Size); ok && int64(len(content)) == descriptor.Size {
		return content, nil
	}
	if f.place == nil {
		return nil, errNotCached
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
		Reason: ReasonLayerTruncated, Message: fmt.Sprintf("the registry served %d of the %d bytes of %s", cut.Got, cut.Want, what),
		Remediation: "Run the preflight again; if the error persists, mirror the release again.",
		Actions:     []finding.Action{finding.Retry(""), finding.Run("oc adm release mirror")},
		Outcome:     preflight.Unknown,
	}
	if cut.Err != nil {
		failure.Err = errors.New(oneLine(cut.Err.Error()))
	}
	return failure
}

// metered is a transport that counts the bytes of responses.
type metered struct {
	read *atomic.Int64
	next http.RoundTripper
}

// RoundTrip sends the request and counts the body of its response.
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
