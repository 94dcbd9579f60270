package payload

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

// Release is the content of a release: its metadata, images and preflights.
type Release struct {
	// Release identifies it: its version is the same in both files that state it, its
	// image is the verified pull spec.
	update.Release
	// Previous are the versions from which the release can be reached, by its metadata.
	Previous []string
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
	Lines Lines
	Job   *batchv1.Job
}

// Supporting is an annotated object that Jobs need: a ServiceAccount, Role,
// ClusterRole, RoleBinding, ClusterRoleBinding or ConfigMap.
type Supporting struct {
	File      string
	Component string
	Lines     Lines
	Object    Object
}

// keep adds an object under the sanitized name of its file, which findings, listings
// and annotations show.
func (r *Release) keep(each located[Object]) {
	file := words.External(each.file)
	if job, ok := each.value.(*batchv1.Job); ok {
		r.Jobs = append(r.Jobs, Job{File: file, Component: component(file), Lines: each.lines, Job: job})
		return
	}
	r.Supporting = append(r.Supporting, Supporting{File: file, Component: component(file), Lines: each.lines, Object: each.value})
}
