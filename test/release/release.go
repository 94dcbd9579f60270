package release

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// defaultRepository is the repository of a release without Repository.
const defaultRepository = "openshift/release"

// Component is an image of a release, with the manifests that it adds to the release.
type Component struct {
	// Name is the tag in image-references, e.g. "cluster-ingress-operator".
	Name string
	// Image is the pull spec by digest, as BuildImage returns it. Without one
	// the component has manifests only and no tag.
	Image string
	// Source is the name of the image in manifests, e.g.
	// "quay.io/openshift/origin-cluster-ingress-operator". Every occurrence in any
	// manifest of the release, with any tag or digest, is replaced by Image, as
	// `oc adm release new` does (oc pkg/cli/admin/release/image_mapper.go). The
	// substitution does not parse YAML.
	Source string
	// Manifests by file name. A name without the prefix 0000_ becomes
	// 0000_50_<component>_<name>, as oc does.
	Manifests map[string]string
}

// Release describes a release image.
type Release struct {
	// Version is SemVer; it names the image stream and the pushed tag.
	Version  string
	Previous []string
	// Metadata is the free-form part of release-metadata, e.g. url.
	Metadata   map[string]string
	Components []Component
	// Repository in the registry; empty means openshift/release.
	Repository string
	// BaseLayers are the sizes, in incompressible bytes, of the layers below the one
	// with the manifests; none means one of 1024 bytes.
	BaseLayers []int
	// Padding is the number of filler manifests, PaddingBytes the size of each, at
	// least about 200 bytes.
	Padding      int
	PaddingBytes int
	// Architectures, e.g. amd64 and arm64, make the release an index with one
	// image each, all with the same last layer; none means one image, amd64.
	Architectures []string
	// Raw files of release-manifests/, by name, are written unchanged and replace
	// generated files of the same name, for broken releases.
	Raw map[string]string
}

// Push builds the release image, pushes it to registry (host:port) by digest
// and by the tag of its version, and returns the pull spec by digest.
func Push(ctx context.Context, registry string, r Release) (string, error) {
	repository, err := name.NewRepository(registry + "/" + r.repository())
	if err != nil {
		return "", fmt.Errorf("name release %q: %w", r.Version, err)
	}
	files, err := r.manifests()
	if err != nil {
		return "", fmt.Errorf("make release %q: %w", r.Version, err)
	}
	manifests, err := newLayer(files)
	if err != nil {
		return "", fmt.Errorf("make release %q: %w", r.Version, err)
	}
	// A tag cannot contain the plus sign of a build version.
	tag := repository.Tag(strings.ReplaceAll(r.Version, "+", "_"))
	var digest v1.Hash
	if len(r.Architectures) == 0 {
		digest, err = r.pushImage(ctx, tag, manifests)
	} else {
		digest, err = r.pushIndex(ctx, tag, manifests)
	}
	if err != nil {
		return "", fmt.Errorf("push release %q: %w", tag, err)
	}
	return repository.Digest(digest.String()).String(), nil
}

func (r Release) repository() string {
	if r.Repository == "" {
		return defaultRepository
	}
	return r.Repository
}

func (r Release) pushImage(ctx context.Context, tag name.Tag, manifests v1.Layer) (v1.Hash, error) {
	built, err := r.image("amd64", manifests)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := remote.Write(tag, built, remote.WithContext(ctx)); err != nil {
		return v1.Hash{}, err
	}
	return built.Digest()
}

func (r Release) pushIndex(ctx context.Context, tag name.Tag, manifests v1.Layer) (v1.Hash, error) {
	var images []mutate.IndexAddendum
	for _, architecture := range r.Architectures {
		built, err := r.image(architecture, manifests)
		if err != nil {
			return v1.Hash{}, err
		}
		images = append(images, mutate.IndexAddendum{Add: built, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: architecture},
		}})
	}
	index := mutate.IndexMediaType(mutate.AppendManifests(empty.Index, images...), types.DockerManifestList)
	if err := remote.WriteIndex(tag, index, remote.WithContext(ctx)); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// image is the release image for one architecture: its own base layers, then
// the manifests, which all architectures share.
func (r Release) image(architecture string, manifests v1.Layer) (v1.Image, error) {
	layers, err := r.baseLayers(architecture)
	if err != nil {
		return nil, err
	}
	config := v1.Config{
		Entrypoint: []string{"/usr/bin/cluster-version-operator"},
		Labels:     map[string]string{"io.openshift.release": r.Version},
	}
	return newImage(architecture, config, append(layers, manifests)...)
}
