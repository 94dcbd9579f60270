// Package imagepolicy answers: would the nodes of this cluster admit this image?
//
// A ClusterImagePolicy (config.openshift.io/v1) says which images must have a
// sigstore signature, and of whom. The nodes hold every image that they pull
// against it, so one that they refuse breaks an update in its middle: the pods
// of an operator do not start (SignatureValidationFailed). This package decides
// before as the nodes do then (machine-config-operator
// pkg/controller/container-runtime-config, containers/image signature and
// docker).
//
// # What is decided
//
//   - Of all scopes that match an image, only the most specific one counts, and
//     all policies with that scope. The image counts by its own name, wherever
//     a copy of it is.
//   - Root of trust PublicKey without a Rekor key. Any other is Unknown, and
//     the finding has its name.
//   - Signatures are read where the image is: the tag sha256-<hex>.sig in the
//     repository, or the mirror, that the nodes pull it from. One good
//     signature is enough. Referrers and bundles are not read, because the
//     nodes do not read them.
//   - All ways to compare the signed identity: MatchRepoDigestOrExact,
//     MatchRepository, ExactRepository and RemapIdentity.
//   - Of an image for several architectures, the nodes hold the manifest of
//     their own against the policy. The list itself is looked at, too: a
//     signature of it that is not good is a warning; none is none, since
//     OpenShift's releases have none.
//
// Policies of one namespace (ImagePolicy) and those of v1alpha1 are not read.
//
// # Bounds
//
// A manifest (4 MiB, and 1000 layers or images), a signature (64 KiB),
// signatures of a manifest (64), architectures (16), and what package repository
// bounds.
package imagepolicy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	configv1 "github.com/openshift/api/config/v1"
	configv1client "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	"github.com/openshift/update-preflight/collector/finding"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const ReasonNoImagePolicy finding.Reason = "NoImagePolicy"

// Policies are the image policies of a cluster.
type Policies struct {
	policies []configv1.ClusterImagePolicy
}

// FromCluster reads all ClusterImagePolicies. It takes "list" on them. A cluster
// that does not know them has none.
func FromCluster(ctx context.Context, client configv1client.ClusterImagePoliciesGetter) (Policies, error) {
	list, err := client.ClusterImagePolicies().List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return Policies{}, nil
	}
	if err != nil {
		return Policies{}, fmt.Errorf("list ClusterImagePolicies: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b configv1.ClusterImagePolicy) int { return strings.Compare(a.Name, b.Name) })
	return Policies{policies: list.Items}, nil
}

// Place is where an image is, and how to get there. Auth and Transport are
// required.
type Place struct {
	Repository name.Repository
	// Mirror is false for the repository that the pull spec names.
	Mirror    bool
	Auth      authn.Authenticator
	Transport http.RoundTripper
}

// Puller knows from where the nodes pull.
type Puller interface {
	// Pull calls ask for one place after the other that the nodes would pull
	// the image from, until ask has no error. An error of go-containerregistry
	// says that the image is not to be had there.
	Pull(ctx context.Context, pullSpec string, ask func(context.Context, Place) error) error
}

// Image is an image to be held against the policies.
type Image struct {
	// PullSpec is repository@sha256:<hex>, as a manifest of the release has it.
	PullSpec string
	// Architectures are those of the nodes that would pull it, in the words of
	// their status (amd64); none means every one that the image has.
	Architectures []string
}

// Covers says whether any policy is about the image.
func (p Policies) Covers(pullSpec string) bool {
	_, covering := p.covering(pullSpec)
	return len(covering) > 0
}

// Check holds one image against all policies that are about it. The finding has
// no name yet, and it never passes an image that could not be judged.
func (p Policies) Check(ctx context.Context, image Image, puller Puller) finding.Finding {
	reference, err := name.NewDigest(image.PullSpec)
	if err != nil || reference.String() != image.PullSpec {
		return unknown("InvalidPullSpec", "%q is not a pull spec by digest", quotable(image.PullSpec))
	}
	scope, covering := p.covering(image.PullSpec)
	if len(covering) == 0 {
		return finding.Skipped(ReasonNoImagePolicy, "no ClusterImagePolicy is about %s", image.PullSpec).
			From(finding.SourceSignature)
	}
	requirements, failures := newRequirements(covering)
	if len(requirements) == 0 {
		return worst(failures)
	}
	check := &check{image: image, reference: reference, scope: scope, requirements: requirements}
	err = puller.Pull(ctx, image.PullSpec, check.at)
	if err == nil && len(check.findings) == 0 {
		err = errors.New("there is nowhere to pull it from")
	}
	if err != nil {
		check.findings = append(check.findings, unknown("ImageUnavailable",
			"%s cannot be read, so nobody knows whether its signatures are good: %s", image.PullSpec, quotable(err.Error())))
	}
	return worst(append(failures, check.findings...))
}
