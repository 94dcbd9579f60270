// Package release answers: how do the tests and the demo build a release?
//
// It builds component images and from them a release image like `oc adm release new`,
// pushes both by the registry protocol, signs the digest in the simple-signing format,
// and provides the signatures over HTTP, in a directory or in ConfigMaps. The digests
// are reproducible.
package release

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// File is a regular file of an image.
type File struct {
	// Mode holds the permission bits; 0 means 0644.
	Mode int64
	Data []byte
}

// Image is an image FROM scratch with one layer.
type Image struct {
	// Files by path in the image; the leading slash is optional. Their
	// directories are created with mode 0755.
	Files map[string]File
	// Config is the configuration for the container runtime: Entrypoint, User, Labels, Env …
	Config v1.Config
}

// BuildImage pushes image to registry (host:port, over HTTP when that is a
// loopback address) as openshift/<component> and returns its pull spec by
// digest.
func BuildImage(ctx context.Context, registry, component string, image Image) (string, error) {
	layer, err := newLayer(image.Files)
	if err != nil {
		return "", fmt.Errorf("build image %q: %w", component, err)
	}
	built, err := newImage("amd64", image.Config, layer)
	if err != nil {
		return "", fmt.Errorf("build image %q: %w", component, err)
	}
	repository, err := name.NewRepository(registry + "/openshift/" + component)
	if err != nil {
		return "", fmt.Errorf("name image %q: %w", component, err)
	}
	digest, err := built.Digest()
	if err != nil {
		return "", fmt.Errorf("build image %q: %w", component, err)
	}
	ref := repository.Digest(digest.String())
	if err := remote.Write(ref, built, remote.WithContext(ctx)); err != nil {
		return "", fmt.Errorf("push %q: %w", ref, err)
	}
	return ref.String(), nil
}

// newImage builds an image of the layers, for linux on the given architecture.
func newImage(architecture string, config v1.Config, layers ...v1.Layer) (v1.Image, error) {
	built, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: "linux", Architecture: architecture, Config: config,
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(built, layers...)
}

// newLayer builds a gzipped layer of files. The registry is local, so a layer that is
// compressed fast is better than a small one.
func newLayer(files map[string]File) (v1.Layer, error) {
	data, err := archive(files)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}, tarball.WithCompressedCaching, tarball.WithCompressionLevel(gzip.BestSpeed))
}
