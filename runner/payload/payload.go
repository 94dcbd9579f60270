// Package payload answers: which preflights does this release ship?
//
// [Extract] reads the manifests of a release image, and returns the [Release]: its
// preflight Jobs, their supporting objects, the list of the release's images and its
// metadata. It requires proof that the release's digest was verified.
//
// # Bounds
//
// All input from a registry or release is bounded: the manifests of the
// image (4 MiB), the layer (64 MiB), its decompressed size (512 MiB), each file in
// it (8 MiB), their number (20 000), each document in a file (3 MiB and 100 000
// tokens), all annotated objects (8 MiB, and 48 MiB decoded), all
// CustomResourceDefinitions, ClusterImagePolicies and ImageStreams (48 MiB for each of
// the kinds, and 200 levels for each object) and the number of problems (1 000). The total time is at most four minutes. The layer
// is held in memory, and written only to the cache, if there is one; beyond it,
// at most one file is held in memory.
package payload

import (
	"context"
	"maps"
	"slices"

	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/signature"
)

// Options configure how a release is read. The zero value reads it from the
// repository in the pull spec, without credentials, for an unknown cluster.
type Options struct {
	// Access resolves and reaches the cluster's registries.
	Access *registry.Access
	// Cache stores content between runs; nil for none.
	Cache imagefiles.Cache
	// Cluster decides which manifests apply.
	Cluster manifestfilter.Cluster
	// Manifests keeps the manifests of all kinds, of at most 48 MiB, and not only those that checks compare.
	Manifests bool
}

// Extract reads the release that proof is for. The error is always an
// *Error, and then there is no result. Violations of single manifests are
// among the Problems of the Release.
func Extract(ctx context.Context, proof signature.Release, options Options) (*Release, error) {
	manifests := newManifests(&options.Cluster)
	if options.Manifests {
		manifests.all = &definitions{}
	}
	source := imagefiles.Source{Access: options.Access, Cache: options.Cache, Architecture: options.Cluster.Architecture}
	reading, err := imagefiles.ReadRelease(ctx, proof, source, manifests.add)
	if err != nil {
		return nil, err
	}
	release, err := manifests.release()
	if err != nil {
		return nil, err
	}
	release.Image = proof.PullSpec()
	release.ManifestLayerBytes, release.BytesRead, release.Child = reading.Layer, reading.Read, reading.Child
	return release, nil
}

// ReadManifests reads manifests that are not part of a release yet, by
// file name, with the rules and bounds of those of a
// release, except the filters, since there is no cluster. Of the
// Release it sets only Jobs, Supporting and Problems. The error is an *Error.
func ReadManifests(files map[string][]byte) (*Release, error) {
	manifests := newManifests(nil)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := manifests.add(name, files[name]); err != nil {
			return nil, err
		}
	}
	release := &Release{}
	if err := manifests.gather(release); err != nil {
		return nil, err
	}
	return release, nil
}
