package imagepolicy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// maxAnswer is what a registry may send for one request, whatever it is for.
	maxAnswer    = maxManifest + 1<<20
	maxRedirects = 5
)

// visit reads one repository. It does so with its own client:
// go-containerregistry's parses a manifest of any kind before it returns it, at
// a hundred times its size, and follows redirects without end.
type visit struct {
	place  Place
	client *http.Client
}

// newVisit finds out how the registry wants to know who asks.
func newVisit(ctx context.Context, place Place) (*visit, error) {
	scopes := []string{place.Repository.Scope(transport.PullScope)}
	registry := transport.NewUserAgent(bounded{place.Transport}, "oc-preflight")
	asSomebody, err := transport.NewWithContext(ctx, place.Repository.Registry, place.Auth, registry, scopes)
	if err != nil {
		return nil, err
	}
	return &visit{place: place, client: &http.Client{
		Transport: asSomebody,
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			return nil
		},
	}}, nil
}

// manifest returns the manifest with a digest, whatever the server calls it.
func (v *visit) manifest(ctx context.Context, digest string) (manifest, error) {
	content, _, err := v.get(ctx, "manifests/"+digest, maxManifest)
	if err != nil {
		return manifest{}, err
	}
	if digestOf(content) != digest {
		return manifest{}, fmt.Errorf("%s served something else as %s", v.place.Repository, digest)
	}
	return parseManifest(content)
}

// get reads "manifests/<reference>" or "blobs/<digest>" of the repository. An
// answer that is not the thing is an error of go-containerregistry.
func (v *visit) get(ctx context.Context, path string, limit int64) (_ []byte, _ types.MediaType, err error) {
	repository := v.place.Repository
	location := url.URL{Scheme: repository.Scheme(), Host: repository.RegistryStr(), Path: "/v2/" + repository.RepositoryStr() + "/" + path}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), http.NoBody)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Accept", strings.Join([]string{
		string(types.OCIManifestSchema1), string(types.DockerManifestSchema2), string(types.OCIImageIndex), string(types.DockerManifestList), "*/*",
	}, ","))
	response, err := v.client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if err := transport.CheckError(response, http.StatusOK); err != nil {
		return nil, "", err
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%w: the registry sent more than %d bytes", errMalformed, limit)
	}
	return content, types.MediaType(response.Header.Get("Content-Type")), err
}

// isMissing tells a registry that does not have it from one that did not say.
func isMissing(err error) bool {
	answer, ok := errors.AsType[*transport.Error](err)
	return ok && answer.StatusCode == http.StatusNotFound
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// repositoryOf is the repository of an image by digest, as it is written.
func repositoryOf(image name.Digest) string {
	return strings.TrimSuffix(image.String(), "@"+image.DigestStr())
}

// bounded ends answers that are too large, also those to a question who asks.
type bounded struct {
	next http.RoundTripper
}

// RoundTrip passes the request on.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &boundedBody{ReadCloser: response.Body, left: maxAnswer}
	return response, nil
}

type boundedBody struct {
	io.ReadCloser
	left int
}

// Read counts what it returns.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("%w: the registry sent more than %d bytes", errMalformed, maxAnswer)
	}
	return n, err
}
