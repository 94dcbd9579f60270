package image

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	// maxManifest is enough for a thousand layers.
	maxManifest = 256 << 10
	// maxBlob is more than any layer has. It keeps the sum of all sizes in a
	// release from overflowing.
	maxBlob = 1 << 40
)

// manifest is what matters here of the two kinds: an image has layers, an index
// has manifests.
type manifest struct {
	SchemaVersion int    `json:"schemaVersion"`
	Config        blob   `json:"config"`
	Layers        []blob `json:"layers"`
	Manifests     []part `json:"manifests"`
}

type blob struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// part is one manifest of an index.
type part struct {
	Digest   string `json:"digest"`
	Platform *struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

// refusal is an answer that is final, whatever other places have.
type refusal struct {
	reason, text string
	outcome      preflight.Outcome
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

func refuse(reason, format string, args ...any) *refusal {
	return &refusal{reason: reason, outcome: preflight.Fail, text: fmt.Sprintf(format, args...)}
}

func parse(content []byte) (manifest, error) {
	var parsed manifest
	if err := utiljson.Unmarshal(content, &parsed); err != nil {
		return manifest{}, refuse(reasonInvalid, "the manifest is not one of an image")
	}
	switch {
	case parsed.SchemaVersion != 2:
		return manifest{}, refuse(reasonInvalid, "the manifest has schema version %d, not 2", parsed.SchemaVersion)
	case (len(parsed.Layers) == 0) == (len(parsed.Manifests) == 0):
		return manifest{}, refuse(reasonInvalid, "the manifest has either both layers and manifests, or none of them")
	}
	if len(parsed.Layers) == 0 {
		return parsed, nil
	}
	for _, each := range append(slices.Clip(parsed.Layers), parsed.Config) {
		if each.Size < 0 || each.Size > maxBlob || !isDigest(each.Digest) {
			return manifest{}, refuse(reasonInvalid, "the manifest has a blob without a valid digest and size")
		}
	}
	return parsed, nil
}

// parts are the images of an index for the architectures; none means all.
func (m manifest) parts(architectures []string) ([]part, error) {
	var chosen []part
	var there []string
	for _, each := range m.Manifests {
		if each.Platform == nil || each.Platform.OS != "linux" {
			continue // an attestation, or nothing for a node
		}
		if !isDigest(each.Digest) {
			return nil, refuse(reasonInvalid, "the index has an image without a valid digest")
		}
		there = append(there, each.Platform.Architecture)
		if len(architectures) == 0 || slices.Contains(architectures, each.Platform.Architecture) {
			chosen = append(chosen, each)
		}
	}
	for _, wanted := range architectures {
		if !slices.Contains(there, wanted) {
			return nil, refuse(reasonArchitecture, "the index has no image for linux/%s, which nodes of this cluster have, only for: %s", wanted, oneLine(strings.Join(there, ", ")))
		}
	}
	if len(chosen) == 0 {
		return nil, refuse(reasonArchitecture, "the index has no image for linux")
	}
	return chosen, nil
}

func isDigest(text string) bool {
	_, err := name.NewDigest("registry.example.com/image@" + text)
	return err == nil && strings.HasPrefix(text, "sha256:")
}
