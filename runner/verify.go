package runner

import (
	"context"
	"errors"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/imagefiles"
	"github.com/openshift/update-preflight/runner/imagepolicy"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/signature"
)

// verified is the second stage: the release by digest, and what is proven of it.
type verified struct {
	observed
	// registries is how the cluster pulls images.
	registries *registry.Access
	// policies are the image policies of the cluster.
	policies imagepolicy.Policies
	// proof is trusted or untrusted. Nothing of an untrusted release is read or run.
	proof proof
	// sources are the results of this stage.
	sources []collector.Source
}

// verify searches for proof that the target is signed, and holds its image
// against the image policies of the cluster. Only bad input is an error.
func verify(ctx context.Context, o observed) (verified, error) {
	v := verified{observed: o, registries: o.registryAccess(ctx, o.options.Local)}
	pullSpec, err := byDigest(ctx, o, v.registries)
	if err != nil {
		return verified{}, err
	}
	v.target.Image = pullSpec
	o.progress.step("verifying the signature of %s", pullSpec)
	signed, failure := prove(ctx, o, pullSpec)
	if failure == nil {
		v.proof = trusted{release: signed, cvo: signed.CVOAccepts()}
		v.sources = append(v.sources, collector.Known(nameSignature, finding.SourceSignature, signedBy(signed)...))
		return v.holdAgainstPolicies(ctx), nil
	}
	if known, ok := errors.AsType[*signature.Error](failure); ok && known.Reason == signature.ReasonInvalidPullSpec {
		return verified{}, &BadInputError{Err: failure}
	}
	v.sources = append(v.sources, collector.Known(nameSignature, finding.SourceSignature, o.unproven(failure).Named(nameSignature)))
	if v.proof, err = distrust(o, pullSpec, failure); err != nil {
		return verified{}, err
	}
	return v.holdAgainstPolicies(ctx), nil
}

// byDigest is the target's pull spec by digest. A tag is resolved only by force:
// a user who can move the tag can choose the release.
func byDigest(ctx context.Context, o observed, registries *registry.Access) (string, error) {
	if o.target.Digest() != "" {
		return o.target.Image, nil
	}
	if !o.options.Force {
		return "", badInput("the pull spec %q has no digest, and only a digest can be verified: name it as REPOSITORY@sha256:DIGEST, or force the run to resolve the tag", o.target.Image)
	}
	return imagefiles.Resolve(ctx, o.target.Image, registries)
}

// holdAgainstPolicies holds the release image against the image policies of the
// cluster before it is read: nodes do so before they run it. It adds no result
// where no policy covers the image.
func (v verified) holdAgainstPolicies(ctx context.Context) verified {
	policies, err := imagepolicy.FromCluster(ctx, v.cluster.OpenShift.ConfigV1())
	if err != nil {
		v.sources = append(v.sources, collector.Known(nameReleasePolicy, finding.SourceSignature,
			finding.Unknown(reasonImagePoliciesUnavailable, "unknown which images the nodes admit: %v", err).Named(nameReleasePolicy).
				Remedy("Run the preflight as a user with permission to list ClusterImagePolicies.").Do(finding.Roles())))
		return v
	}
	v.policies = policies
	trusted, ok := v.proof.(trusted)
	if !ok || !policies.Covers(trusted.release.PullSpec()) {
		return v
	}
	v.progress.step("checking %s against the image policies of the cluster", trusted.release.PullSpec())
	image := imagepolicy.Image{PullSpec: trusted.release.PullSpec(), Architectures: v.architectures(ctx)}
	result := policies.Check(ctx, image, puller{access: v.registries}).Named(nameReleasePolicy)
	v.sources = append(v.sources, collector.Known(nameReleasePolicy, finding.SourceSignature, result))
	return v
}

// reasonImagePoliciesUnavailable is reported when the image policies of the
// cluster could not be read.
//
// Cause: the permission to list ClusterImagePolicies is missing.
//
// Remedy: bind the roles that "auth run" prints.
const reasonImagePoliciesUnavailable finding.Reason = "ImagePoliciesUnavailable"
