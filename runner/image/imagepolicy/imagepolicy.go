// Package imagepolicy answers: would the nodes of this cluster admit this image?
//
// A ClusterImagePolicy (config.openshift.io/v1) states which images must have a
// sigstore signature, and by which key. The nodes verify every image that they pull; a
// rejected image interrupts an update, since the pods of an operator do not start
// (SignatureValidationFailed). This package makes the decision of the nodes before the
// update (machine-config-operator pkg/controller/container-runtime-config,
// containers/image signature and docker).
//
// # What is decided
//
//   - Of all scopes that match an image, only the most specific one applies, with
//     all policies that have it. The image matches by its own name, regardless of
//     the mirror that it is pulled from.
//   - Root of trust PublicKey without a Rekor key. Any other is Unknown, and
//     the finding has its name.
//   - Signatures are read from the repository or mirror that the nodes pull the
//     image from: the tag sha256-<hex>.sig. One valid signature is sufficient.
//     Referrers and bundles are not read, because the nodes do not read them.
//   - All ways to compare the signed identity: MatchRepoDigestOrExact,
//     MatchRepository, ExactRepository and RemapIdentity.
//   - Of an image for several architectures, the nodes verify the manifest of
//     their own. The index itself is checked, too: an invalid signature of it is a
//     warning; a missing one is not reported, since the indexes of OpenShift's
//     releases have none.
//
// The policies that a release brings ([Policies.Before]) are asked as well: nodes have them before they pull the last
// images of the update, so an image must satisfy both the present policies and those after the update.
//
// Policies of one namespace (ImagePolicy) and those of v1alpha1 are not read.
//
// # Bounds
//
// A manifest (4 MiB, and 1000 layers or images), a signature (64 KiB),
// signatures of a manifest (64), architectures (16), and the bounds of package
// repository.
package imagepolicy

import (
	"context"
	"errors"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Check checks one image against all policies that cover it, also after the update. The finding has
// no name yet. An inconclusive check never passes.
func (p Policies) Check(ctx context.Context, image Image, puller Puller) finding.Finding {
	if !p.Changes(image.PullSpec) {
		return p.check(ctx, image, puller)
	}
	found := []finding.Finding{p.later.check(ctx, image, puller)}
	if found[0].Outcome != preflight.Pass {
		found[0].Message = "with the policies of the release: " + found[0].Message
	}
	if _, covering := p.covering(image.PullSpec); len(covering) > 0 {
		found = append(found, p.check(ctx, image, puller))
	}
	return worst(found)
}

func (p Policies) check(ctx context.Context, image Image, puller Puller) finding.Finding {
	reference, err := name.NewDigest(image.PullSpec)
	if err != nil || reference.String() != image.PullSpec {
		return unknown(reasonInvalidPullSpec, "%q is not a pull spec by digest", words.External(image.PullSpec))
	}
	scope, covering := p.covering(image.PullSpec)
	if len(covering) == 0 {
		return finding.Skipped(gap.Proven("the list of the ClusterImagePolicies"), reasonNoImagePolicy, "no ClusterImagePolicy covers %s", image.PullSpec).
			From(finding.SourceSignature)
	}
	requirements, failures := p.requirements(covering)
	if len(requirements) == 0 {
		return worst(failures)
	}
	check := &check{image: image, reference: reference, scope: scope, requirements: requirements}
	err = puller.Pull(ctx, image.PullSpec, check.at)
	if err == nil && len(check.findings) == 0 {
		err = errors.New("there is no repository to pull it from")
	}
	if err != nil {
		check.findings = append(check.findings, unknown(reasonImageUnavailable,
			"%s cannot be read, so its signatures are unknown: %s", image.PullSpec, words.External(err.Error())))
	}
	return worst(append(failures, check.findings...))
}
