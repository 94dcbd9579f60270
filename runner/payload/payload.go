// Package payload answers: which preflights does this release ship?
//
// It reads the layer of a release image that holds the release's
// manifests, and returns the preflight Jobs, their supporting objects,
// the list of the release's images and its metadata. It requires proof that the
// release's digest was verified, and decompresses and parses nothing before its
// content is verified by digest.
//
// # Bounds
//
// All input from a registry or release is bounded: the manifests of the
// image (4 MiB), the layer (64 MiB), its decompressed size (512 MiB), each file in
// it (8 MiB), their number (20 000), each document in a file (3 MiB and 100 000
// tokens), all annotated objects (8 MiB, and 48 MiB decoded), all
// CustomResourceDefinitions (48 MiB, and 200 levels each) and the number of problems
// (1 000). The total time is at most four minutes. The layer
// is held in memory, and written only to the cache, if there is one; beyond it,
// at most one file is held in memory.
//
// # Filters
//
// Manifests are filtered by feature set, feature gate, capability, exclude
// annotation, cluster profile and ClusterVersion override as the cluster-version
// operator does (openshift/library-go pkg/manifest), with three differences. The
// cluster profile is required only where the manifest names one, since the
// operator itself would apply a Job that does. A filter that cannot be evaluated,
// for this cluster or for any, does not exclude: it is
// Unknown, so no check is lost. And release.openshift.io/major-version,
// which the operator rejects on Jobs, is Unknown too.
//
// # Limitations
//
// Only the last layer is read, where "oc adm release new" puts the manifests.
package payload

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/signature"
)

// Annotation marks a Job as a preflight, and other objects as its supporting
// objects, when its value is "true" (openshift/enhancements#363).
const Annotation = "openshift.io/preflight-check"

// maxTime is the timeout of the cluster-version operator for the same
// (pkg/cvo/updatepayload.go).
const maxTime = 4 * time.Minute

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

// Object is a typed Kubernetes object.
type Object interface {
	runtime.Object
	metav1.Object
}

// Options configure how a release is read. The zero value reads it from the
// repository in the pull spec, without credentials, for an unknown cluster.
type Options struct {
	// Access resolves and reaches the cluster's registries.
	Access *registry.Access
	// Cache stores content between runs; nil for none.
	Cache Cache
	// Cluster decides which manifests apply.
	Cluster Cluster
}

// Cache stores content by digest ("sha256:<hex>").
type Cache interface {
	// Get returns the content with the digest, if it has no more than most bytes.
	Get(digest string, most int64) ([]byte, bool)
	// Put stores the content. An error means that it is not stored.
	Put(digest string, content []byte) error
}

// Extract reads the release that proof is for. The error is always an
// *Error, and then there is no result. Violations of single manifests are
// among the Problems of the Release.
func Extract(ctx context.Context, proof signature.Release, options Options) (*Release, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	access := options.Access
	if access == nil {
		access = registry.Own(registry.Local{})
		defer access.Close()
	}
	fetcher, err := newFetcher(proof, options)
	if err != nil {
		return nil, err
	}
	layers, err := fetcher.layers(ctx, access)
	if err != nil {
		return nil, err
	}
	layer, manifests := layers[0], newManifests(&options.Cluster)
	if err := eachManifest(ctx, layer, manifestDirectory, manifests.add); err != nil {
		return nil, err
	}
	release, err := manifests.release()
	if err != nil {
		return nil, err
	}
	release.Image = proof.PullSpec()
	release.ManifestLayerBytes, release.BytesRead = int64(len(layer)), fetcher.read.Load()
	return release, nil
}
