package payload

import (
	"fmt"
	"maps"
	"slices"

	"github.com/blang/semver/v4"
	kjson "sigs.k8s.io/json"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/payload/manifestdoc"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
)

const (
	metadataFile = "release-metadata"
	metadataKind = "cincinnati-metadata-v0"
)

// releaseMetadata is the file that "oc adm release new" writes for the update
// service (openshift/oc pkg/cli/admin/release/new.go).
type releaseMetadata struct {
	Kind     string         `json:"kind"`
	Version  string         `json:"version"`
	Previous []string       `json:"previous"`
	Metadata map[string]any `json:"metadata"`
}

// describe reads the two files that every release has, and checks that
// they are of the same release, as the cluster-version operator does
// (pkg/payload/payload.go).
func (m *manifests) describe() (*Release, error) {
	metadata, err := m.readMetadata()
	if err != nil {
		return nil, err
	}
	named, images, err := m.readReferences()
	if err != nil {
		return nil, err
	}
	if named != metadata.Version {
		return nil, imagefiles.Reject(reasonVersionMismatch, "%s states version %q, but %s states %q", referencesFile, words.External(named), metadataFile, words.External(metadata.Version))
	}
	release := &Release{Release: update.Release{Version: metadata.Version}, Previous: metadata.Previous, Images: images, Metadata: map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(metadata.Metadata)) {
		value, ok := metadata.Metadata[key].(string)
		if !ok {
			m.report(metadataFile, manifestdoc.Place{}, manifestfilter.Warn(reasonMetadataNotString, fmt.Sprintf("the value of metadata %q is not a string; it is ignored", words.External(key)),
				"Report it to the publisher of the release."))
			continue
		}
		release.Metadata[key] = value
	}
	return release, nil
}

// readMetadata reads release-metadata. Unknown fields are ignored, as in the cluster-version operator.
func (m *manifests) readMetadata() (releaseMetadata, error) {
	var metadata releaseMetadata
	if err := unmarshal(m.metadata, &metadata, kjson.DisallowDuplicateFields); err != nil {
		return releaseMetadata{}, invalid(metadataFile, err)
	}
	if metadata.Kind != metadataKind {
		return releaseMetadata{}, invalid(metadataFile, fmt.Errorf("its kind is %q, not %q", words.External(metadata.Kind), metadataKind))
	}
	if _, err := semver.Parse(metadata.Version); err != nil {
		return releaseMetadata{}, invalid(metadataFile, fmt.Errorf("its version %q is not a semantic version: %w", words.External(metadata.Version), err))
	}
	return metadata, nil
}
