// Package repository answers: what does this registry have under this digest?
//
// A registry is not trusted, and a mirror may be anybody's. What has a digest is
// hashed before it is returned, whatever the server calls it; nothing is parsed.
//
// # Bounds
//
// No answer is longer than what was asked for, and none that was not asked for,
// as a greeting, a token or an error, is longer than 64 KiB. After five redirects
// it ends, and none leads from outside to an address inside a private network.
// How long all of it takes is the context's business.
//
// # Why not go-containerregistry
//
// Its client (pkg/v1/remote) follows redirects without end, and parses a manifest
// of up to 100 MiB before it returns it, at a hundred times its size. How
// registries want to know who asks is left to it (pkg/v1/remote/transport).
package repository

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/openshift/update-preflight/runner/ocimanifest"
)

var (
	// ErrMismatch says that the registry served something else than was asked
	// for. It is final: who lies once is not asked again.
	ErrMismatch = errors.New("the registry served something else")
	// ErrTooLarge says that a manifest has more bytes than the caller allows.
	ErrTooLarge = errors.New("the registry sent more than it may")
)

// CutError says that the answer of a registry ended before the content did.
type CutError struct {
	// Got and Want are numbers of bytes.
	Got, Want int64
	// Err is the cause, nil when the registry ended the answer by itself.
	Err error
}

// Error implements error.
func (e *CutError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("the registry served %d of %d bytes", e.Got, e.Want)
	}
	return fmt.Sprintf("the registry served %d of %d bytes: %v", e.Got, e.Want, e.Err)
}

// Unwrap returns the cause.
func (e *CutError) Unwrap() error { return e.Err }

// Repository is a repository at a registry, as somebody. Its methods may be
// called concurrently. An answer that is not the content is a *transport.Error
// of go-containerregistry, and a registry that cannot be talked to a *url.Error.
type Repository struct {
	name   name.Repository
	client *http.Client
}

// Open asks the registry how it wants to know who asks, and for a token where it
// gives those. Requests take the given way.
func Open(ctx context.Context, repository name.Repository, auth authn.Authenticator, way http.RoundTripper) (*Repository, error) {
	greeted := transport.NewUserAgent(brief{way}, "oc-preflight")
	asSomebody, err := transport.NewWithContext(context.WithValue(ctx, greeting{}, true), repository.Registry, auth, greeted, []string{repository.Scope(transport.PullScope)})
	if err != nil {
		return nil, err
	}
	return &Repository{name: repository, client: &http.Client{Transport: asSomebody, CheckRedirect: checkRedirect}}, nil
}

// Manifest returns the manifest with the digest ("sha256:<hex>"), at most
// ocimanifest.MaxSize bytes.
func (r *Repository) Manifest(ctx context.Context, digest string) ([]byte, error) {
	content, _, err := r.Tagged(ctx, digest)
	if err == nil && digestOf(content) != digest {
		return nil, fmt.Errorf("%w as the manifest %s", ErrMismatch, digest)
	}
	return content, err
}

// Tagged returns the manifest that the registry says has the tag, at most
// ocimanifest.MaxSize bytes, and the media type that it says it has. Neither is
// verified.
func (r *Repository) Tagged(ctx context.Context, tag string) (_ []byte, _ types.MediaType, err error) {
	response, err := r.ask(ctx, http.MethodGet, "manifests/"+tag)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	content, err := io.ReadAll(io.LimitReader(response.Body, ocimanifest.MaxSize+1))
	if err == nil && len(content) > ocimanifest.MaxSize {
		return nil, "", fmt.Errorf("%w: a manifest of more than %d bytes", ErrTooLarge, ocimanifest.MaxSize)
	}
	return content, types.MediaType(response.Header.Get("Content-Type")), err
}

// Blob returns the blob with the digest ("sha256:<hex>") and the size in bytes,
// which it makes room for at once. One that ends too early is a *CutError.
func (r *Repository) Blob(ctx context.Context, digest string, size int64) (_ []byte, err error) {
	response, err := r.ask(ctx, http.MethodGet, "blobs/"+digest)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	content := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	got, err := content.ReadFrom(io.LimitReader(response.Body, size+1))
	switch {
	case got < size:
		return nil, &CutError{Got: got, Want: size, Err: err}
	case got > size || digestOf(content.Bytes()) != digest:
		return nil, fmt.Errorf("%w as the blob %s", ErrMismatch, digest)
	}
	return content.Bytes(), nil
}

// BlobSize returns how many bytes the registry says that the blob has; -1 where
// it does not say.
func (r *Repository) BlobSize(ctx context.Context, digest string) (int64, error) {
	response, err := r.ask(ctx, http.MethodHead, "blobs/"+digest)
	if err != nil {
		return 0, err
	}
	return response.ContentLength, response.Body.Close()
}

// Resolve returns the digest that the registry says the tag stands for.
func (r *Repository) Resolve(ctx context.Context, tag string) (string, error) {
	response, err := r.ask(ctx, http.MethodHead, "manifests/"+tag)
	if err != nil {
		return "", err
	}
	if err := response.Body.Close(); err != nil {
		return "", err
	}
	digest, err := v1.NewHash(response.Header.Get("Docker-Content-Digest"))
	if err != nil || digest.Algorithm != "sha256" {
		return "", fmt.Errorf("%w: the tag %q has no sha256 digest", ErrMismatch, tag)
	}
	return digest.String(), nil
}

// IsMissing tells a registry that does not have it from one that did not say.
func IsMissing(err error) bool {
	answer, ok := errors.AsType[*transport.Error](err)
	return ok && answer.StatusCode == http.StatusNotFound
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
