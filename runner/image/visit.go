package image

import (
	"context"
	"errors"
	"net"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
	"github.com/openshift/update-preflight/runner/registry/repository"
)

type result struct {
	components []string
	// places are the places that were tried, in order. Without failure, the last one has the image.
	places  []registry.Place
	failure error
	// layers are the layers by architecture; the architecture of an image that is not in an index is "".
	layers map[string][]ocispec.Descriptor
}

type visitor struct {
	mode          Mode
	architectures []string

	mutex  sync.Mutex
	opened map[string]func() (repoClient, error)
	// dead are the errors of unreachable registries by host, so that each is dialed once.
	dead map[string]error
	// blobs are the results for blobs by place and digest, since images share layers.
	blobs map[string]func() error
}

func newVisitor(mode Mode, architectures []string) *visitor {
	return &visitor{
		mode: mode, architectures: architectures,
		opened: map[string]func() (repoClient, error){}, dead: map[string]error{}, blobs: map[string]func() error{},
	}
}

// check requests one image from its places in order.
func (v *visitor) check(ctx context.Context, access *registry.Access, pullSpec string) result {
	var found result
	_, found.failure = access.Try(ctx, pullSpec, func(ctx context.Context, visit registry.Visit) error {
		found.places = append(found.places, visit.Place)
		layers, err := v.visit(ctx, visit)
		found.layers = layers
		return err
	})
	return found
}

func (v *visitor) visit(ctx context.Context, visit registry.Visit) (map[string][]ocispec.Descriptor, error) {
	host := visit.Reference.Context().RegistryStr()
	if err := v.isDead(host); err != nil {
		return nil, err
	}
	at, err := v.open(ctx, visit)
	var layers map[string][]ocispec.Descriptor
	if err == nil {
		layers, err = v.image(ctx, at, visit.Reference.Identifier())
	}
	if connection, ok := errors.AsType[*net.OpError](err); ok && ctx.Err() == nil && (connection.Op == "dial" || connection.Op == "proxyconnect") {
		v.mutex.Lock()
		defer v.mutex.Unlock()
		v.dead[host] = err
	}
	return layers, err
}

func (v *visitor) isDead(host string) error {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.dead[host]
}

// open opens a place once for each credential, so that one token serves all images.
func (v *visitor) open(ctx context.Context, visit registry.Visit) (repoClient, error) {
	key := visit.Repository + " " + visit.Credential
	v.mutex.Lock()
	if v.opened[key] == nil {
		v.opened[key] = sync.OnceValues(func() (repoClient, error) {
			opened, err := repository.Open(ctx, visit.Reference.Context(), visit.Auth, visit.Transport)
			return repoClient{name: visit.Repository, repository: opened}, err
		})
	}
	ask := v.opened[key]
	v.mutex.Unlock()
	return ask()
}

func (v *visitor) image(ctx context.Context, at repoClient, digest string) (map[string][]ocispec.Descriptor, error) {
	top, err := at.manifest(ctx, digest)
	if err != nil {
		return nil, err
	}
	if !top.IsIndex() {
		return map[string][]ocispec.Descriptor{"": top.Layers}, v.checkBlobs(ctx, at, top)
	}
	images, err := top.Images(v.architectures...)
	if err != nil {
		return nil, unusable(err)
	}
	layers := map[string][]ocispec.Descriptor{}
	for _, described := range images {
		architecture := words.External(described.Platform.Architecture)
		image, err := at.child(ctx, described)
		if repository.IsMissing(err) {
			return nil, reject(reasonImagesMissing, "it has the index but not its image for linux/%s", architecture)
		}
		if err != nil {
			return nil, err
		}
		layers[architecture] = append(layers[architecture], image.Layers...)
		if err := v.checkBlobs(ctx, at, image); err != nil {
			return nil, err
		}
	}
	return layers, nil
}

func (v *visitor) checkBlobs(ctx context.Context, at repoClient, image ocimanifest.Manifest) error {
	if v.mode != Blobs {
		return nil
	}
	for _, each := range image.Blobs() {
		v.mutex.Lock()
		key := at.name + "@" + each.Digest.String()
		if v.blobs[key] == nil {
			v.blobs[key] = sync.OnceValue(func() error { return at.blob(ctx, each) })
		}
		ask := v.blobs[key]
		v.mutex.Unlock()
		if err := ask(); err != nil {
			return err
		}
	}
	return nil
}

type repoClient struct {
	name       string
	repository *repository.Repository
}

func (c repoClient) manifest(ctx context.Context, digest string) (ocimanifest.Manifest, error) {
	content, err := c.content(ctx, digest)
	if err != nil {
		return ocimanifest.Manifest{}, err
	}
	manifest, err := ocimanifest.Parse(content)
	return manifest, unusable(err)
}

func (c repoClient) child(ctx context.Context, described ocispec.Descriptor) (ocimanifest.Manifest, error) {
	content, err := c.content(ctx, described.Digest.String())
	if err != nil {
		return ocimanifest.Manifest{}, err
	}
	manifest, err := ocimanifest.Image(described, content)
	return manifest, unusable(err)
}

func (c repoClient) content(ctx context.Context, digest string) ([]byte, error) {
	content, err := c.repository.Manifest(ctx, digest)
	switch {
	case errors.Is(err, repository.ErrMismatch):
		return nil, reject(reasonDigestMismatch, "it serves other content as the manifest %s", digest)
	case errors.Is(err, repository.ErrTooLarge):
		return nil, reject(reasonManifestTooLarge, "it serves a manifest of more than %d MiB", ocimanifest.MaxSize>>20)
	}
	return content, err
}

func (c repoClient) blob(ctx context.Context, wanted ocispec.Descriptor) error {
	size, err := c.repository.BlobSize(ctx, wanted.Digest.String())
	switch {
	case repository.IsMissing(err):
		return reject(reasonBlobsMissing, "it has the manifest but not its blob %s", wanted.Digest)
	case err != nil:
		return err
	case size >= 0 && size != wanted.Size: // not every server reports a size
		return reject(reasonDigestMismatch, "it serves %d bytes as the blob %s of %d bytes", size, wanted.Digest, wanted.Size)
	}
	return nil
}
