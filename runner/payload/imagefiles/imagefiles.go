// Package imagefiles answers: which files does this image have in the directory of its manifests?
//
// [ReadRelease] reads the files of a release, and requires proof that its digest was verified; [Read] reads the files
// of any other image. Nothing is decompressed before it is verified by digest. [Resolve] returns the digest to which a
// pull spec resolves.
//
// # Limitations
//
// Only the last layer of a release is read, where "oc adm release new" puts the manifests.
package imagefiles

import (
	"cmp"
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

// ImageDirectory is the directory of the manifests in an image that is not a release.
const ImageDirectory = "manifests"

// maxImageLayers bounds the layers of an image of manifests, which together have the bound of one of a release.
const maxImageLayers = 16

var reasonNotAnImageOfManifests = finding.NewReason("NotAnImageOfManifests", finding.Explanation{
	Meaning: "The image is not a valid image of manifests: at most 16 layers of 64 MiB in total, with each manifest " +
		"in one layer.",
	Cause:  "It is a different image, or has a large base image.",
	Remedy: "Build the image \"FROM scratch\" with one COPY of the manifests to /manifests/.",
})

// Read calls visit with every file directly in /manifests of an image, by its name. All layers are read, and no file
// may be in two of them, because one would hide the other. The pull spec must contain a digest, which verifies all
// content. The bounds of a release apply. The error comes from visit, or is an *Error.
func Read(ctx context.Context, pullSpec string, source Source, visit func(file string, content []byte) error) error {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	image, err := name.NewDigest(pullSpec, name.StrictValidation)
	if err != nil {
		return malformedImage("%q is not a pull spec by digest", words.External(pullSpec))
	}
	access := source.Access
	if access == nil {
		access = registry.Own(ctx, registry.Local{})
		defer access.Close()
	}
	f := &fetcher{image: image, what: "the image", choice: allLayers, cache: source.Cache, architecture: source.Architecture}
	layers, err := f.layers(ctx, access)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, layer := range layers {
		err := eachManifest(ctx, layer, ImageDirectory, func(file string, content []byte) error {
			if seen[file] {
				return malformedImage("the file %q is in two layers of %s", words.External(file), pullSpec)
			}
			seen[file] = true
			return visit(file, content)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func allLayers(manifest ocimanifest.Manifest) ([]ocispec.Descriptor, error) {
	if len(manifest.Layers) > maxImageLayers {
		return nil, malformedImage("the image has %d layers; the limit is %d", len(manifest.Layers), maxImageLayers)
	}
	left := int64(maxLayer)
	for _, layer := range manifest.Layers {
		if err := ocimanifest.CheckDescriptor(layer, "a layer", left); err != nil {
			return nil, unusable(err)
		}
		left -= layer.Size
	}
	return manifest.Layers, nil
}

func malformedImage(format string, args ...any) *Error {
	failure := Reject(reasonNotAnImageOfManifests, format, args...)
	failure.Remediation, failure.Actions = "Build the image FROM scratch with one COPY of the manifests to /manifests/.", nil
	return failure
}

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
		failure := Reject(reasonInvalidPullSpec, "the release image %q is not a pull spec with the verified digest %q",
			words.External(proof.PullSpec()), words.External(proof.Digest()))
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
	return Reject(reasonDigestMismatch, "the registry served different content as %s", what)
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
	// Child is the digest of the image for the architecture of the source in an index; empty for an image that is not
	// an index, and if the architecture is unknown.
	Child string
}

// ReadRelease calls visit with every file directly in /release-manifests of the release
// image that proof is for, by its name. The error comes from visit, or is an *Error.
func ReadRelease(ctx context.Context, proof signature.Release, source Source,
	visit func(file string, content []byte) error,
) (Reading, error) {
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

// descriptors returns the chosen layers of the image. In an index, every architecture
// has the same manifests (openshift/oc pkg/cli/image/append).
func (f *fetcher) descriptors(ctx context.Context) ([]ocispec.Descriptor, error) {
	content, err := f.manifest(ctx, f.image.DigestStr())
	if err != nil {
		return nil, err
	}
	manifest, err := ocimanifest.Parse(content)
	if err == nil && manifest.IsIndex() {
		manifest, err = f.child(ctx, manifest)
	}
	if err != nil {
		return nil, unusable(err)
	}
	return f.choice(manifest)
}

func (f *fetcher) child(ctx context.Context, index ocimanifest.Manifest) (ocimanifest.Manifest, error) {
	image, err := f.choose(index)
	if err != nil {
		return ocimanifest.Manifest{}, err
	}
	content, err := f.manifest(ctx, image.Digest.String())
	if err != nil {
		return ocimanifest.Manifest{}, err
	}
	if f.architecture != "" {
		f.chosen = image.Digest.String()
	}
	return ocimanifest.Image(image, content)
}

// choose selects the image for the cluster's architecture; if that is unknown, the one for amd64, else the first.
func (f *fetcher) choose(index ocimanifest.Manifest) (ocispec.Descriptor, error) {
	images, err := index.Images(cmp.Or(f.architecture, "amd64"))
	if rejected, ok := errors.AsType[*ocimanifest.Violation](err); ok && f.architecture == "" &&
		rejected.Reason == ocimanifest.ReasonArchitectureMissing {
		images, err = index.Images()
	}
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return images[0], nil
}

// Resolve returns the pull spec by digest to which a pull spec currently
// resolves: at the cluster's mirrors of tags, then at the repository that it
// names. The result depends on all users who may push there and is not trusted:
// verify it. A pull spec by digest is returned unchanged. The error is always an *Error.
func Resolve(ctx context.Context, pullSpec string, access *registry.Access) (string, error) {
	reference, err := name.ParseReference(pullSpec)
	if digest, ok := reference.(name.Digest); ok && err == nil {
		return digest.String(), nil
	}
	var resolved string
	_, err = access.Try(ctx, pullSpec, func(ctx context.Context, visit registry.Visit) error {
		place, err := repository.Open(ctx, visit.Reference.Context(), visit.Auth, visit.Transport)
		if err == nil {
			resolved, err = place.Resolve(ctx, visit.Reference.Identifier())
		}
		return err
	})
	if err != nil {
		return "", unreadable(err, "the image \""+words.External(pullSpec)+"\"")
	}
	// The result names the repository of the pull spec, even if a mirror resolved the tag.
	return reference.Context().Digest(resolved).String(), nil
}
