package image

import (
	"context"
	"errors"
	"net"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/openshift/update-preflight/runner/ocimanifest"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/repository"
)

// result is what came of asking for one image.
type result struct {
	// components are those that have the image.
	components []string
	// places are those that were asked, in order. Without failure, the last one
	// has the image.
	places  []registry.Place
	failure error
	// layers are those of each architecture of it; an image that is not in an
	// index is for "".
	layers map[string][]ocispec.Descriptor
}

// visitor asks registries.
type visitor struct {
	mode          Mode
	architectures []string

	mutex sync.Mutex
	// opened keep what a registry gave as a token, by place and credential.
	opened map[string]func() (stall, error)
	// dead are the errors of registries that no connection could be made to, by
	// host: it would take as long for each image.
	dead map[string]error
	// blobs are the answers about blobs, by place and digest: images share
	// layers.
	blobs map[string]func() error
}

func newVisitor(mode Mode, architectures []string) *visitor {
	return &visitor{
		mode: mode, architectures: architectures,
		opened: map[string]func() (stall, error){}, dead: map[string]error{}, blobs: map[string]func() error{},
	}
}

// look asks one place after the other for one image.
func (v *visitor) look(ctx context.Context, access *registry.Access, pullSpec string) result {
	var found result
	_, found.failure = access.Try(ctx, pullSpec, func(ctx context.Context, visit registry.Visit) error {
		found.places = append(found.places, visit.Place)
		layers, err := v.visit(ctx, visit)
		found.layers = layers
		return err
	})
	return found
}

// visit asks one place, as somebody.
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

// open asks a place once who asks, and for all images of it, so that a registry is
// asked for a token once.
func (v *visitor) open(ctx context.Context, visit registry.Visit) (stall, error) {
	key := visit.Repository + " " + visit.Credential
	v.mutex.Lock()
	if v.opened[key] == nil {
		v.opened[key] = sync.OnceValues(func() (stall, error) {
			opened, err := repository.Open(ctx, visit.Reference.Context(), visit.Auth, visit.Transport)
			return stall{name: visit.Repository, repository: opened}, err
		})
	}
	ask := v.opened[key]
	v.mutex.Unlock()
	return ask()
}

// image reads the manifests of an image and returns its layers by architecture.
func (v *visitor) image(ctx context.Context, at stall, digest string) (map[string][]ocispec.Descriptor, error) {
	top, err := at.manifest(ctx, digest)
	if err != nil {
		return nil, err
	}
	if !top.IsIndex() {
		return map[string][]ocispec.Descriptor{"": top.Layers}, v.lookAtBlobs(ctx, at, top)
	}
	images, err := top.Images(v.architectures...)
	if err != nil {
		return nil, unusable(err)
	}
	layers := map[string][]ocispec.Descriptor{}
	for _, described := range images {
		architecture := oneLine(described.Platform.Architecture)
		image, err := at.child(ctx, described)
		if repository.IsMissing(err) {
			return nil, refuse(reasonMissing, "the index is there, but not its image for linux/%s", architecture)
		}
		if err != nil {
			return nil, err
		}
		layers[architecture] = append(layers[architecture], image.Layers...)
		if err := v.lookAtBlobs(ctx, at, image); err != nil {
			return nil, err
		}
	}
	return layers, nil
}

// lookAtBlobs asks whether all blobs of an image are there.
func (v *visitor) lookAtBlobs(ctx context.Context, at stall, image ocimanifest.Manifest) error {
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

// stall is a repository with a way to it.
type stall struct {
	name       string
	repository *repository.Repository
}

// manifest returns the manifest with that digest.
func (s stall) manifest(ctx context.Context, digest string) (ocimanifest.Manifest, error) {
	content, err := s.content(ctx, digest)
	if err != nil {
		return ocimanifest.Manifest{}, err
	}
	manifest, err := ocimanifest.Parse(content)
	return manifest, unusable(err)
}

// child returns an image that an index describes.
func (s stall) child(ctx context.Context, described ocispec.Descriptor) (ocimanifest.Manifest, error) {
	content, err := s.content(ctx, described.Digest.String())
	if err != nil {
		return ocimanifest.Manifest{}, err
	}
	manifest, err := ocimanifest.Image(described, content)
	return manifest, unusable(err)
}

func (s stall) content(ctx context.Context, digest string) ([]byte, error) {
	content, err := s.repository.Manifest(ctx, digest)
	switch {
	case errors.Is(err, repository.ErrMismatch):
		return nil, refuse(reasonLie, "it serves something else as the manifest %s", digest)
	case errors.Is(err, repository.ErrTooLarge):
		return nil, refuse(reasonTooLarge, "it serves a manifest of more than %d MiB", ocimanifest.MaxSize>>20)
	}
	return content, err
}

// blob asks for the size of a blob.
func (s stall) blob(ctx context.Context, wanted ocispec.Descriptor) error {
	size, err := s.repository.BlobSize(ctx, wanted.Digest.String())
	switch {
	case repository.IsMissing(err):
		return refuse(reasonBlobs, "the manifest is there, but not the blob %s that it names", wanted.Digest)
	case err != nil:
		return err
	case size >= 0 && size != wanted.Size: // not every server says a size
		return refuse(reasonLie, "it has %d bytes as the blob %s, which has %d", size, wanted.Digest, wanted.Size)
	}
	return nil
}
