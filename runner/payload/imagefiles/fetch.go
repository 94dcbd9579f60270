package imagefiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
	"github.com/openshift/update-preflight/runner/registry/repository"
	"github.com/openshift/update-preflight/signature"
)

// maxTime is the timeout of the cluster-version operator for the same (pkg/cvo/updatepayload.go).
const maxTime = 4 * time.Minute

// Source is where images are read from. The zero value reads them from the repository in
// the pull spec, without credentials.
type Source struct {
	// Access resolves and reaches the cluster's registries.
	Access *registry.Access
	// Cache stores content between runs; nil for none.
	Cache Cache
	// Architecture is the architecture of the control plane (GOARCH): which image of an index
	// is read. Empty means any.
	Architecture string
}

// Cache stores content by digest ("sha256:<hex>").
type Cache interface {
	// Get returns the content with the digest, if it has no more than most bytes.
	Get(digest string, most int64) ([]byte, bool)
	// Put stores the content. An error means that it is not stored.
	Put(digest string, content []byte) error
}

// maxLayer bounds the layer with the manifests, in bytes.
const maxLayer = 64 << 20

var errNotCached = errors.New("not in the cache")

// fetcher fetches blobs of one image. It returns only content that matches its digest.
type fetcher struct {
	image        name.Digest
	what         string
	choice       func(ocimanifest.Manifest) ([]ocispec.Descriptor, error)
	cache        Cache
	architecture string
	read         atomic.Int64
	// chosen is the digest of the image for the architecture in an index.
	chosen string
	// place is the current repository; nil while only the cache is read.
	place *repository.Repository
}

// newFetcher rejects the zero value of signature.Release, which proves nothing.
func newFetcher(proof signature.Release, source Source) (*fetcher, error) {
	if proof.PullSpec() == "" || proof.Digest() == "" {
		failure := Reject(reasonNotVerified, "the release image was not verified")
		failure.Remediation, failure.Actions = "Verify the release image first.", nil
		return nil, failure
	}
	image, err := name.NewDigest(proof.PullSpec())
	if err != nil || image.DigestStr() != proof.Digest() {
		failure := Reject(reasonInvalidPullSpec, "the release image %q is not a pull spec by the digest %q that was verified", words.External(proof.PullSpec()), words.External(proof.Digest()))
		failure.Err = err
		return nil, failure
	}
	return &fetcher{image: image, what: "the release image", choice: lastLayer, cache: source.Cache, architecture: source.Architecture}, nil
}

// lastLayer is the layer that holds the manifests of a release: "oc adm release new" appends it.
func lastLayer(manifest ocimanifest.Manifest) ([]ocispec.Descriptor, error) {
	layer := manifest.Layers[len(manifest.Layers)-1]
	return []ocispec.Descriptor{layer}, unusable(ocimanifest.CheckDescriptor(layer, "the last layer", maxLayer))
}

func (f *fetcher) cached(digest string, most int64) ([]byte, bool) {
	if f.cache == nil {
		return nil, false
	}
	return f.cache.Get(digest, most)
}

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
		return nil, Reject(ocimanifest.ReasonManifestTooLarge, "%s is larger than %d bytes", what, ocimanifest.MaxSize)
	case errors.Is(err, repository.ErrMismatch):
		return nil, mismatch(what)
	case err != nil:
		return nil, err
	}
	return f.keep(digest, content), nil
}

func mismatch(what string) *Error {
	return Reject(reasonDigestMismatch, "the registry served other content as %s", what)
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
		Reason: reasonLayerTruncated, Message: fmt.Sprintf("the registry served %d of the %d bytes of %s", cut.Got, cut.Want, what),
		Remediation: "Run the preflight again; if the error persists, mirror the release again with `oc adm release mirror`.",
		Actions:     []finding.Action{finding.Retry("")},
		Outcome:     preflight.Unknown,
	}
	if cut.Err != nil {
		failure.Err = errors.New(words.External(cut.Err.Error()))
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

// Reading of a release image.
type Reading struct {
	// Layer is the compressed size of the layer with the manifests, Read what registries sent, in bytes.
	Layer, Read int64
	// Child is the digest of the image for the architecture of the source in an index; empty for
	// an image that is no index, and where the architecture is unknown.
	Child string
}

// ReadRelease calls visit with every file directly in /release-manifests of the release
// image that proof is for, by its name. The error comes from visit, or is an *Error.
func ReadRelease(ctx context.Context, proof signature.Release, source Source, visit func(file string, content []byte) error) (Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	access := source.Access
	if access == nil {
		access = registry.Own(ctx, registry.Local{})
		defer access.Close()
	}
	fetcher, err := newFetcher(proof, source)
	if err != nil {
		return Reading{}, err
	}
	layers, err := fetcher.layers(ctx, access)
	if err != nil {
		return Reading{}, err
	}
	err = eachManifest(ctx, layers[0], ReleaseDirectory, visit)
	return Reading{Layer: int64(len(layers[0])), Read: fetcher.read.Load(), Child: fetcher.chosen}, err
}
