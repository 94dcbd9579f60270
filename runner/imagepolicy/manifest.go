package imagepolicy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	maxManifest      = 4 << 20
	maxDescriptors   = 1000
	maxArchitectures = 16
)

// manifest is what matters here of a manifest: an image has layers, a list has
// manifests.
type manifest struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     types.MediaType `json:"mediaType"`
	Layers        descriptors     `json:"layers"`
	Manifests     descriptors     `json:"manifests"`
}

// descriptors are as many as are looked at: two bytes of JSON make one of two
// hundred.
type descriptors []v1.Descriptor

// UnmarshalJSON implements json.Unmarshaler.
func (d *descriptors) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
		return err // null, or of another kind: none
	}
	for decoder.More() {
		if len(*d) == maxDescriptors {
			return fmt.Errorf("more than %d parts", maxDescriptors)
		}
		var one json.RawMessage
		if err := decoder.Decode(&one); err != nil {
			return err
		}
		var descriptor v1.Descriptor
		if err := utiljson.Unmarshal(one, &descriptor); err != nil {
			return err
		}
		*d = append(*d, descriptor)
	}
	return nil
}

// parseManifest goes by the content alone. One that could be read as image and
// as list is refused (CVE-2021-41190), and so is schema version 1.
func parseManifest(content []byte) (manifest, error) {
	var m manifest
	if err := utiljson.Unmarshal(content, &m); err != nil {
		return manifest{}, fmt.Errorf("not a manifest: %w", err)
	}
	switch {
	case m.SchemaVersion != 2:
		return manifest{}, fmt.Errorf("a manifest of schema version %d, not 2", m.SchemaVersion)
	case len(m.Layers) > 0 && len(m.Manifests) > 0:
		return manifest{}, errors.New("a manifest with both layers and manifests")
	}
	return m, nil
}

// instances are the digests of the images in a list that nodes would pull.
func (m manifest) instances(architectures []string) ([]string, error) {
	var digests, found []string
	for _, instance := range m.Manifests {
		platform := instance.Platform
		if platform == nil || platform.OS != "linux" {
			continue
		}
		if len(architectures) > 0 && !slices.Contains(architectures, platform.Architecture) {
			continue
		}
		if instance.Digest.Algorithm != "sha256" {
			return nil, fmt.Errorf("the image for %s is not named by a sha256 digest", quotable(platform.Architecture))
		}
		found = append(found, platform.Architecture)
		digests = append(digests, instance.Digest.String())
	}
	for _, architecture := range architectures {
		if !slices.Contains(found, architecture) {
			return nil, fmt.Errorf("the list has no image for linux/%s, which the cluster has nodes of", architecture)
		}
	}
	switch {
	case len(digests) == 0:
		return nil, errors.New("the list has no image for linux")
	case len(digests) > maxArchitectures:
		return nil, fmt.Errorf("the list has %d images for linux, and %d are the limit: %s", len(digests), maxArchitectures, quotable(strings.Join(found, ", ")))
	}
	return digests, nil
}
