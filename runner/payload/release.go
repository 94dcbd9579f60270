package payload

import (
	"fmt"
	"maps"
	"slices"

	"github.com/blang/semver/v4"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/payload/manifestdoc"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
)

// Release is the content of a release: its metadata, images and preflights.
type Release struct {
	// Release identifies it: its version is the same in both files that state it, its
	// image is the verified pull spec.
	update.Release
	// Previous are the versions from which the release can be reached, by its metadata.
	Previous []string
	// Child is the digest of the image for the architecture of the cluster, where the release is an
	// index; empty otherwise, and where the architecture is unknown.
	Child string
	// Metadata is free text by key, for example "url".
	Metadata map[string]string
	// Images maps the name of a component to its pull spec, always by digest.
	Images map[string]string
	// AdminGates are the descriptions of the admin gates of the release, by key: a
	// cluster that runs it must acknowledge them before it leaves a minor version.
	AdminGates map[string]string
	// Definitions are the CustomResourceDefinitions that the cluster-version operator
	// would apply to the cluster or delete from it, or for which that is unknown,
	// sorted by file; for each name the last one.
	Definitions []Definition
	// ImagePolicies are the ClusterImagePolicies, as Definitions are.
	ImagePolicies []Definition
	// ImageStreams are those for the cluster, as Definitions are; the list of the images is not among them.
	ImageStreams []Definition
	// Manifests are those of all kinds for the cluster, in the order in which the operator applies them; nil unless
	// Options.Manifests is set, or where they exceed the limit.
	Manifests []Definition
	// Jobs and Supporting are sorted by file, then by place in the file.
	Jobs       []Job
	Supporting []Supporting
	// Problems are warnings and failures, sorted by file and place. Each names
	// its file; those that fail or are inconclusive block the update to Version.
	Problems []finding.Finding
	// ManifestLayerBytes is the compressed size of the layer that holds the
	// manifests; BytesRead is the total size of all responses of registries,
	// 0 when the cache had all content.
	ManifestLayerBytes int64
	BytesRead          int64
}

// Job is one preflight Job, as its author wrote it.
type Job struct {
	// File is the sanitized name of the manifest, Component the part of it that identifies
	// the component that ships it.
	File      string
	Component string
	// Lines are the lines of the Job's fields in the file.
	Lines manifestdoc.Lines
	// Management is true for a Job that is for the management cluster where the cluster is hosted.
	Management bool
	Job        *batchv1.Job
}

// Supporting is an annotated object that Jobs need: a ServiceAccount, Role,
// ClusterRole, RoleBinding, ClusterRoleBinding or ConfigMap.
type Supporting struct {
	File       string
	Component  string
	Lines      manifestdoc.Lines
	Management bool
	Object     Object
}

// keep adds an object under the sanitized name of its file, which findings, listings and annotations show.
func (r *Release) keep(each manifestdoc.Located[Object]) {
	file := words.External(each.File)
	if job, ok := each.Value.(*batchv1.Job); ok {
		r.Jobs = append(r.Jobs, Job{File: file, Component: manifestfilter.Component(file), Lines: each.Lines, Management: manifestfilter.ForManagement(job), Job: job})
		return
	}
	r.Supporting = append(r.Supporting, Supporting{File: file, Component: manifestfilter.Component(file), Lines: each.Lines, Management: manifestfilter.ForManagement(each.Value), Object: each.Value})
}

// Annotation marks a Job as a preflight, and other objects as its supporting
// objects, when its value is "true" (openshift/enhancements#363).
const Annotation = "openshift.io/preflight-check"

// deleteAnnotation makes the cluster-version operator delete the object (lib/resourcedelete/helper.go).
const deleteAnnotation = "release.openshift.io/delete"

// Object is a typed Kubernetes object.
type Object interface {
	runtime.Object
	metav1.Object
}

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
