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
// image (4 MiB), the layer (64 MiB), what it unpacks to (512 MiB), each file in
// it (8 MiB), their number (20 000), each document in a file (3 MiB and 100 000
// tokens), everything annotated (8 MiB and 80 000 nodes) and the number of
// problems (1 000). All of it together takes no more than four minutes. The layer is held in memory
// and written nowhere; beyond it, no more than one file is held while it is read.
//
// # Limitations
//
// Manifests are not yet filtered by feature set, feature gate, capability,
// major version, exclude annotation or ClusterVersion override as the
// cluster-version operator does; only the cluster profile is looked at.
// Credentials are found by go-containerregistry's rules, which know entries
// for a host and for a full repository, not for a namespace. Mirrors of the
// cluster are not consulted. Only the last layer is read, where "oc adm
// release new" puts the manifests.
package payload

import (
	"context"
	"net/http"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/signature"
)

// Annotation is what makes a Job a preflight, and other objects its supporting
// objects, when its value is "true" (openshift/enhancements#363).
const Annotation = "openshift.io/preflight-check"

const (
	// maxTime is what the cluster-version operator allows itself for the same
	// (pkg/cvo/updatepayload.go).
	maxTime = 4 * time.Minute
	// defaultProfile is the cluster profile of a cluster that names none
	// (cluster-version-operator pkg/payload/payload.go).
	defaultProfile = "self-managed-high-availability"
)

// Release is what a release says about itself and asks to be checked.
type Release struct {
	// Version is a semantic version, the same in both files that state it.
	Version string
	// Image is the pull spec by digest that was read, and Digest its digest.
	Image  string
	Digest string
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
	Problems []preflight.Finding
	// ManifestLayerBytes is the compressed size of the layer that holds the
	// manifests; BytesRead counts what the registry sent, all requests together.
	ManifestLayerBytes int64
	BytesRead          int64
}

// Job is one preflight Job, as its author wrote it.
type Job struct {
	// File is the name of the manifest, Component the part of it that names
	// the component that ships it.
	File      string
	Component string
	Job       *batchv1.Job
}

// Supporting is an annotated object that Jobs need: a ServiceAccount, Role,
// ClusterRole, RoleBinding, ClusterRoleBinding or ConfigMap.
type Supporting struct {
	File      string
	Component string
	Object    Object
}

// Object is a typed Kubernetes object.
type Object interface {
	runtime.Object
	metav1.Object
}

// Option changes how Extract reads a release.
type Option func(*options)

type options struct {
	transport http.RoundTripper
	profile   string
}

// WithTransport sets how the registry is reached; without it, through the
// proxy of the environment and with time limits for each step.
func WithTransport(transport http.RoundTripper) Option {
	return func(o *options) { o.transport = transport }
}

// WithClusterProfile sets the cluster profile; without it, it is
// self-managed-high-availability.
func WithClusterProfile(profile string) Option {
	return func(o *options) { o.profile = profile }
}

// Extract reads the release that proof was given for. The error is always an
// *Error, and then there is nothing to go by. Whatever is wrong with a single
// manifest is among the Problems of the Release instead.
func Extract(ctx context.Context, proof signature.Release, opts ...Option) (*Release, error) {
	settings := options{profile: defaultProfile}
	for _, option := range opts {
		option(&settings)
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	registry, err := newRegistry(proof, settings)
	if err != nil {
		return nil, err
	}
	defer registry.close()
	descriptor, err := registry.manifestLayer(ctx)
	if err != nil {
		return nil, err
	}
	layer, err := registry.blob(ctx, descriptor)
	if err != nil {
		return nil, err
	}
	manifests := newManifests(settings.profile)
	if err := eachManifest(ctx, layer, manifests.add); err != nil {
		return nil, err
	}
	release, err := manifests.release()
	if err != nil {
		return nil, err
	}
	release.Image, release.Digest = proof.PullSpec(), proof.Digest()
	release.ManifestLayerBytes, release.BytesRead = descriptor.Size, registry.meter.read.Load()
	return release, nil
}
