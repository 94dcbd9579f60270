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

	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/signature"
)

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

// Extract reads the release that proof is for. The error is always an
// *Error, and then there is no result. Violations of single manifests are
// among the Problems of the Release.
func Extract(ctx context.Context, proof signature.Release, options Options) (*Release, error) {
	manifests := newManifests(&options.Cluster)
	source := Source{Access: options.Access, Cache: options.Cache, Architecture: options.Cluster.Architecture}
	size, err := ReadRelease(ctx, proof, source, manifests.add)
	if err != nil {
		return nil, err
	}
	release, err := manifests.release()
	if err != nil {
		return nil, err
	}
	release.Image = proof.PullSpec()
	release.ManifestLayerBytes, release.BytesRead = size.Layer, size.Read
	return release, nil
}
