// Package payload answers: what does this release ask us to check?
//
// It reads the one layer of a release image that holds the release's
// manifests, and finds in it the preflight Jobs, the objects that these need,
// the list of the release's images and its metadata. It demands proof that the
// release's digest was verified, and unpacks and parses nothing before every
// byte is shown to belong to that digest.
//
// # Bounds
//
// Whatever a registry or a release can choose is bounded: the manifests of the
// image (256 KiB), the layer (64 MiB), what it unpacks to (512 MiB), each file in
// it (8 MiB), their number (20 000), each document in a file (3 MiB and 100 000
// tokens), everything annotated (8 MiB, and 48 MiB as objects) and the number of
// problems (1 000). All of it together takes no more than four minutes. The layer
// is held in memory, and written to the cache alone, if there is one; beyond it,
// no more than one file is held while it is read.
//
// # Filters
//
// Manifests are filtered by feature set, feature gate, capability, exclude
// annotation, cluster profile and ClusterVersion override as the cluster-version
// operator does (openshift/library-go pkg/manifest), with three differences. The
// cluster profile is required only where the manifest names one, since the
// operator itself would apply a Job that does. A filter that cannot be read, for
// a cluster of which that is not known or for anybody, does not exclude: it is
// Unknown, so that no check is lost. And release.openshift.io/major-version,
// which the operator lets no Job have, is Unknown too.
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

// Annotation is what makes a Job a preflight, and other objects its supporting
// objects, when its value is "true" (openshift/enhancements#363).
const Annotation = "openshift.io/preflight-check"

// maxTime is what the cluster-version operator allows itself for the same
// (pkg/cvo/updatepayload.go).
const maxTime = 4 * time.Minute

// Release is what a release says about itself and asks to be checked.
type Release struct {
	// Release names it: its version is the same in both files that state it, its
	// image is the pull spec by digest that was read.
	update.Release
	// Previous are the versions that the release says it can be reached from.
	Previous []string
	// Metadata is free text by key, e.g. "url".
	Metadata map[string]string
	// Images maps the name of a component to its pull spec, always by digest.
	Images map[string]string
	// AdminGates are the gates that the release brings, by key: what a cluster
	// that runs it has to acknowledge before it leaves a minor version.
	AdminGates map[string]string
	// Jobs and Supporting are sorted by file, then by place in the file.
	Jobs       []Job
	Supporting []Supporting
	// Problems are warnings and failures, sorted by file and place. Each names
	// its file, and those that fail block the update to Version.
	Problems []finding.Finding
	// ManifestLayerBytes is the compressed size of the layer that holds the
	// manifests; BytesRead counts what registries sent, all requests together,
	// and is 0 when all of it was in the cache.
	ManifestLayerBytes int64
	BytesRead          int64
}

// Job is one preflight Job, as its author wrote it.
type Job struct {
	// File is the name of the manifest, Component the part of it that names
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

// Options say how a release is read. The zero value reads it from where the pull
// spec says, as nobody, for a cluster of which nothing is known.
type Options struct {
	// Access is how the cluster's registries are reached.
	Access *registry.Access
	// Cache keeps what was read before; nil for none.
	Cache Cache
	// Cluster decides which manifests count.
	Cluster Cluster
}

// Cache keeps content by its digest ("sha256:<hex>").
type Cache interface {
	// Get returns content that has the digest, in no more than most bytes.
	Get(digest string, most int64) ([]byte, bool)
	// Put keeps the content. An error means that it is not kept.
	Put(digest string, content []byte) error
}

// Extract reads the release that proof was given for. The error is always an
// *Error, and then there is nothing to go by. Whatever is wrong with a single
// manifest is among the Problems of the Release instead.
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
	layer, err := fetcher.layer(ctx, access)
	if err != nil {
		return nil, err
	}
	manifests := newManifests(&options.Cluster)
	if err := eachManifest(ctx, layer, manifests.add); err != nil {
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
