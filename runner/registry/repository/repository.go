// Package repository answers: what content does this registry serve for this digest?
//
// Registries, mirrors included, are not trusted. Content requested by digest is hashed before it is returned,
// regardless of the response headers. Nothing is parsed.
//
// # Bounds
//
// Content is read up to its expected size; all other responses, such as pings, tokens and errors, up to 64 KiB. At most
// five redirects are followed; the transport decides where they may lead. The context bounds the time.
//
// # Why not go-containerregistry
//
// Its client (pkg/v1/remote) follows redirects without limit, and parses a manifest of up to 100 MiB, using a hundred
// times its size in memory. Only its authentication (pkg/v1/remote/transport) is used.
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
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
)

var (
	// ErrMismatch reports that the registry served other content than requested. Do not retry it.
	ErrMismatch = errors.New("the registry served different content")
	// ErrTooLarge reports that a manifest has more than ocimanifest.MaxSize bytes.
	ErrTooLarge = errors.New("the registry served too much content")
)

// CutError reports that a response ended before its content was complete.
type CutError struct {
	// Got and Want are numbers of bytes.
	Got, Want int64
	// Err is the cause; nil when the registry ended the response.
	Err error
}

// Error returns the message, with the cause if there is one.
func (e *CutError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("the registry served %d of %d bytes", e.Got, e.Want)
	}
	return fmt.Sprintf("the registry served %d of %d bytes: %v", e.Got, e.Want, e.Err)
}

// Unwrap returns the cause.
func (e *CutError) Unwrap() error { return e.Err }

// Repository is a repository of a registry, accessed with one credential. Its
// methods may be called concurrently. A response with another status than 200 is a
// *transport.Error of go-containerregistry, a failed request a *url.Error.
type Repository struct {
	name   name.Repository
	client *http.Client
}

// Open authenticates to the registry with pull scope. Requests are sent by base.
func Open(ctx context.Context, repository name.Repository, auth authn.Authenticator, base http.RoundTripper) (*Repository, error) {
	named := transport.NewUserAgent(boundTransport{base}, "oc-preflight")
	authenticated, err := transport.NewWithContext(context.WithValue(ctx, pingKey{}, true), repository.Registry, auth, named,
		[]string{repository.Scope(transport.PullScope)})
	if err != nil {
		return nil, err
	}
	return &Repository{name: repository, client: &http.Client{Transport: authenticated, CheckRedirect: checkRedirect}}, nil
}

// Manifest returns the manifest with the digest ("sha256:<hex>"), at most ocimanifest.MaxSize bytes.
func (r *Repository) Manifest(ctx context.Context, digest string) ([]byte, error) {
	content, _, err := r.Tagged(ctx, digest)
	if err == nil && digestOf(content) != digest {
		return nil, fmt.Errorf("%w as the manifest %s", ErrMismatch, digest)
	}
	return content, err
}

// Tagged returns the manifest of a tag, at most ocimanifest.MaxSize bytes, and the
// media type in the response. Neither is verified.
func (r *Repository) Tagged(ctx context.Context, tag string) (_ []byte, _ types.MediaType, err error) {
	response, err := r.send(ctx, http.MethodGet, "manifests/"+tag)
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

// Blob returns the blob with the digest ("sha256:<hex>") and the size in bytes. It
// allocates size bytes before it reads. A truncated response is a *CutError.
func (r *Repository) Blob(ctx context.Context, digest string, size int64) (_ []byte, err error) {
	response, err := r.send(ctx, http.MethodGet, "blobs/"+digest)
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

// BlobSize returns the size of a blob in bytes as the registry reports it, unverified; -1 when it reports none.
func (r *Repository) BlobSize(ctx context.Context, digest string) (int64, error) {
	response, err := r.send(ctx, http.MethodHead, "blobs/"+digest)
	if err != nil {
		return 0, err
	}
	return response.ContentLength, response.Body.Close()
}

// Resolve returns the digest of a tag as the registry reports it, unverified.
func (r *Repository) Resolve(ctx context.Context, tag string) (string, error) {
	response, err := r.send(ctx, http.MethodHead, "manifests/"+tag)
	if err != nil {
		return "", err
	}
	if err := response.Body.Close(); err != nil {
		return "", err
	}
	digest, err := v1.NewHash(response.Header.Get("Docker-Content-Digest"))
	if err != nil || digest.Algorithm != "sha256" {
		return "", fmt.Errorf("%w: no sha256 digest for the tag %q", ErrMismatch, tag)
	}
	return digest.String(), nil
}

// IsMissing reports whether the registry responded that the content does not exist.
func IsMissing(err error) bool {
	response, ok := errors.AsType[*transport.Error](err)
	return ok && response.StatusCode == http.StatusNotFound
}

// send sends one request. Any status but 200 is an error.
func (r *Repository) send(ctx context.Context, method, path string) (*http.Response, error) {
	location := url.URL{Scheme: r.name.Scheme(), Host: r.name.RegistryStr(), Path: "/v2/" + r.name.RepositoryStr() + "/" + path}
	request, err := http.NewRequestWithContext(ctx, method, location.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", strings.Join([]string{
		string(types.OCIManifestSchema1), string(types.DockerManifestSchema2), string(types.OCIImageIndex), string(types.DockerManifestList),
		"*/*",
	}, ","))
	response, err := r.client.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		failed.URL = location.String() // the URL of a redirect may contain a credential
	}
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	response.Body = limitedBody(response.Body)
	return nil, errors.Join(transport.CheckError(response, http.StatusOK), response.Body.Close())
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

const (
	maxRedirects = 5
	// maxErrorBytes bounds a response that is not content, such as an error.
	maxErrorBytes = 64 << 10
)

// checkRedirect bounds redirects. The transport decides where they may lead.
func checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// pingKey marks the context of requests whose response go-containerregistry reads
// in full and discards (pkg/v1/remote/transport/ping.go).
type pingKey struct{}

// boundTransport bounds the responses of such requests.
type boundTransport struct{ next http.RoundTripper }

func (p boundTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(request)
	if err == nil && request.Context().Value(pingKey{}) != nil {
		response.Body = limitedBody(response.Body)
	}
	return response, err
}

// limitedBody is the first maxErrorBytes bytes of a body.
func limitedBody(body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, maxErrorBytes), body}
}
