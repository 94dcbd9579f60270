package payload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/signature"
)

const (
	maxManifest = 4 << 20
	maxLayer    = 64 << 20
	// slack is what the answers to a ping, a token request and redirects may
	// take on top of what was asked for.
	slack = 1 << 20
)

// registry reads blobs of the repository that the release is in, and believes
// none of them before it has hashed it.
type registry struct {
	image  name.Digest
	puller *remote.Puller
	meter  *meter
	own    *http.Transport
}

// newRegistry refuses a proof that nobody gave: the zero value of
// signature.Release.
func newRegistry(proof signature.Release, settings options) (*registry, error) {
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
	r := &registry{image: image, meter: &meter{next: settings.transport}}
	if r.meter.next == nil {
		r.own = newTransport()
		r.meter.next = r.own
	}
	r.puller, err = remote.NewPuller(remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(r.meter), remote.WithUserAgent("oc-preflight"))
	if err != nil {
		return nil, unreadable(err, "the release image")
	}
	return r, nil
}

// newTransport limits the time of every step that a registry can be slow in;
// a body that trickles in is ended by the context.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		IdleConnTimeout:       30 * time.Second,
	}
}

func (r *registry) close() {
	if r.own != nil {
		r.own.CloseIdleConnections()
	}
}

// manifest returns the bytes of the manifest with that digest. It hashes them
// itself: go-containerregistry believes the server's header when the server
// calls the manifest a schema 1 one (pkg/v1/remote/fetcher.go).
func (r *registry) manifest(ctx context.Context, digest string) ([]byte, error) {
	r.meter.allow(maxManifest + slack)
	what := fmt.Sprintf("the manifest of %q", r.image.Context().Digest(digest).String())
	descriptor, err := r.puller.Get(ctx, r.image.Context().Digest(digest))
	if err != nil {
		return nil, unreadable(err, what)
	}
	if len(descriptor.Manifest) > maxManifest {
		return nil, refuse("ManifestTooLarge", "%s is larger than %d bytes", what, maxManifest)
	}
	if digestOf(descriptor.Manifest) != digest {
		return nil, refuse("DigestMismatch", "the registry served something else as %s", what)
	}
	return descriptor.Manifest, nil
}

// blob returns all bytes of the layer, once they are shown to be the right ones.
func (r *registry) blob(ctx context.Context, descriptor v1.Descriptor) ([]byte, error) {
	r.meter.allow(descriptor.Size + slack)
	what := fmt.Sprintf("the layer %s of %q", descriptor.Digest, r.image.String())
	layer, err := r.puller.Layer(ctx, r.image.Context().Digest(descriptor.Digest.String()))
	if err != nil {
		return nil, unreadable(err, what)
	}
	stream, err := layer.Compressed()
	if err != nil {
		return nil, unreadable(err, what)
	}
	defer stream.Close() //nolint:errcheck // Nothing is written, and what was read is hashed.
	content := bytes.NewBuffer(make([]byte, 0, descriptor.Size+bytes.MinRead))
	n, err := io.Copy(content, io.LimitReader(stream, descriptor.Size))
	switch {
	case n == descriptor.Size && digestOf(content.Bytes()) == descriptor.Digest.String():
		return content.Bytes(), nil
	case n == descriptor.Size:
		return nil, refuse("DigestMismatch", "the registry served something else as %s", what)
	case ctx.Err() != nil:
		return nil, unreadable(ctx.Err(), what)
	}
	return nil, &Error{
		Reason: "LayerTruncated", Message: fmt.Sprintf("the registry served %d of the %d bytes of %s", n, descriptor.Size, what),
		Remediation: "Run the preflight again; if it stays, mirror the release again: oc adm release mirror",
		Outcome:     preflight.Unknown, Err: err,
	}
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// meter counts what servers send, and stops them when it is more than allowed.
type meter struct {
	next    http.RoundTripper
	read    atomic.Int64
	allowed atomic.Int64
}

// allow lets n more bytes pass.
func (m *meter) allow(n int64) { m.allowed.Store(m.read.Load() + n) }

// RoundTrip passes the request on and counts the body of its response.
func (m *meter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := m.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &meteredBody{ReadCloser: response.Body, meter: m}
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
