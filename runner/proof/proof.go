// Package proof answers: who signed this release, and would this cluster run its image?
//
// [Verifier.Verify] searches for the proof. Without one, no content of a release is read or run, unless the
// administrator forces it.
package proof

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/image/imagepolicy"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/refusal"
	"github.com/openshift/update-preflight/signature/store"
)

// Proof is the result of verifying a release.
type Proof struct {
	// PullSpec is the pull spec of the release, by digest.
	PullSpec string
	// Release may be read: it is verified, or its verification is overridden by force. It
	// is nil for a release that is not trusted.
	Release *signature.Release
	// CVO is whether CVO accepts the signature; nil when that is not known.
	CVO *bool
	// Policies are the image policies of the cluster.
	Policies imagepolicy.Policies
	// Sources are the findings about the signature and the policies.
	Sources []collector.Source
}

// notListed is the proof of a version that the cluster does not list; known names those that it does.
func notListed(version, known string) Proof {
	f := finding.Unknown(reasonNotListed,
		"the cluster knows %s, but not %s, so the image of the release is unknown: its signature, its content and "+
			"its checks were not evaluated",
		known, version).
		Named(nameSignature).Remedy("Specify the release by its image, or set a channel that contains it.").Do(finding.Targets())
	return Proof{Sources: []collector.Source{collector.Known(nameSignature, finding.SourceSignature, f)}}
}

// Signers names the signers of a signature that the cluster trusts; none for a release that is
// untrusted, or read by force.
func (p Proof) Signers() []string {
	if p.Release == nil || !p.Release.Verified() {
		return nil
	}
	return p.Release.Signers()
}

// signedBy are the findings about a verified release. The cluster-version operator of a hosted cluster
// gets the release unpacked, and verifies nothing.
func (v Verifier) signedBy(release signature.Release) []finding.Finding {
	message := "the release is signed by " + strings.Join(release.Signers(), "; ")
	if v.Scene.Management() != v.Scene.Cluster {
		message += ", with keys of the management cluster; this is the only verification, because HyperShift does " +
			"not verify signatures"
	}
	findings := []finding.Finding{finding.Pass(gap.Proven("the verified signature"), reasonVerified, "%s", message).Named(nameSignature)}
	for _, warning := range release.Warnings() {
		findings = append(findings, finding.Warn(reasonSignatureWarning, "%s", warning).Named(nameSignature))
	}
	return findings
}

// unproven is the finding about a release without proof. A failure that is not
// about the signature itself is inconclusive.
func unproven(failure error) finding.Finding {
	if known, ok := errors.AsType[*refusal.Error](failure); ok {
		return finding.New(known.Outcome, finding.ReportedReason(known.Reason.Name), "%s", known.Message).
			Remedy("%s", known.Remediation).Do(finding.Retry(finding.OptionTrust))
	}
	return finding.Unknown(collector.ReasonError, "%v", failure).
		Remedy("Fix the problem in the message, or provide keyrings and signature stores for this run.").
		Do(finding.Retry(finding.OptionTrust))
}

var (
	nameSignature = finding.NewName("ReleaseSignature", "The findings about the release's signature.")

	nameIdentity = finding.NewName("ReleaseIdentity",
		"The finding about a release image that contains a different version than its signature.")

	reasonVerified = finding.NewReason("Verified", finding.Explanation{
		Meaning: "The release is signed with a key that the cluster trusts.",
		Cause:   "A valid signature of the release's digest was found.",
	})
	reasonNotListed = finding.NewReason("NotListed", finding.Explanation{
		Meaning: "The cluster does not list the version as an update, and has never run it. Checks that do not need " +
			"the content of the release still run.",
		Cause:   "The channel of the cluster does not contain the version, or the cluster could not retrieve its updates.",
		Remedy:  "Specify the release by its image.",
		Command: "oc preflight run --to-image PULLSPEC",
	})
	reasonSignatureWarning = finding.NewReason("SignatureWarning", finding.Explanation{
		Meaning: "The signature is valid, but has a property that other verifiers may reject.",
		Cause:   "The message contains the property.",
		Remedy:  "Report it to the publisher of the release.",
	})
)

// Trust is the trust that the administrator adds to the cluster's.
type Trust struct {
	// Keyrings and Stores, if set, replace the keyrings and stores that the cluster trusts. Repositories are the names
	// that signatures may use for the repository of a release; none means OpenShift's own.
	Keyrings     []signature.Keyring
	Stores       []store.Store
	Repositories []string
}

// Verifier verifies the target of an update of one cluster.
type Verifier struct {
	Scene scene.Scene
	From  departure.Departure
	Trust Trust
	// Registries is how the cluster pulls images.
	Registries *registry.Access
}

// Verify searches for proof that a release is signed, and holds its image
// against the image policies of the cluster. What is wrong with the release is a finding of
// the proof, and so is a release without an image; an *input.Error is about a pull spec that cannot be
// verified.
func (v Verifier) Verify(ctx context.Context, release update.Release) (Proof, error) {
	if release.Image == "" {
		return notListed(release.Version, scene.ListVersions(scene.KnownReleases(v.Scene.Version))), nil
	}
	pullSpec, err := v.byDigest(ctx, release.Image)
	if err != nil {
		return Proof{}, err
	}
	v.Scene.Step("verifying the signature of %s", pullSpec)
	signed, failure := v.prove(ctx, pullSpec)
	if failure == nil {
		proven := Proof{PullSpec: pullSpec, Release: &signed, CVO: signed.CVOAccepts()}
		proven.Sources = []collector.Source{collector.Known(nameSignature, finding.SourceSignature, v.signedBy(signed)...)}
		return v.holdAgainstPolicies(ctx, proven), nil
	}
	if known, ok := errors.AsType[*refusal.Error](failure); ok && known.Reason == refusal.ReasonInvalidPullSpec {
		return Proof{}, &input.Error{Err: failure}
	}
	proven := Proof{PullSpec: pullSpec, Sources: []collector.Source{
		collector.Known(nameSignature, finding.SourceSignature, v.unproven(failure).Named(nameSignature)),
	}}
	if proven, err = v.distrust(proven, failure); err != nil {
		return Proof{}, err
	}
	return v.holdAgainstPolicies(ctx, proven), nil
}

// Misnamed is the proof of a release that contains another version than its signature
// names.
func (v Verifier) Misnamed(proven Proof, failure error) (Proof, error) {
	distrusted, err := v.distrust(proven, failure)
	if err != nil {
		return Proof{}, err
	}
	identity := collector.Known(nameIdentity, finding.SourceSignature, unproven(failure).Named(nameIdentity))
	distrusted.Sources = append(distrusted.Sources, identity)
	return distrusted, nil
}

// byDigest is the pull spec by digest. A tag is resolved only by force: a user who can
// move the tag can choose the release.
func (v Verifier) byDigest(ctx context.Context, pullSpec string) (string, error) {
	if (update.Release{Image: pullSpec}).Digest() != "" {
		return pullSpec, nil
	}
	if !v.Scene.Settings.Judgement.Force {
		return "", input.Errorf("the pull spec %q has no digest, and only a digest can be verified: specify it as "+
			"REPOSITORY@sha256:DIGEST, or force the run to resolve the tag", pullSpec)
	}
	return imagefiles.Resolve(ctx, pullSpec, v.Registries)
}

func (v Verifier) prove(ctx context.Context, pullSpec string) (signature.Release, error) {
	c := v.Scene.Management()
	given := signature.Trust{Keyrings: v.Trust.Keyrings, Stores: v.Trust.Stores}
	trust, err := signature.Override(ctx, c.Kubernetes.CoreV1(), c.OpenShift.ConfigV1(), given)
	if err != nil {
		return signature.Release{}, err
	}
	trust.Now = c.Now()
	release, err := signature.Verify(ctx, pullSpec, trust)
	if err != nil {
		return signature.Release{}, err
	}
	return release, release.CheckRepository(v.Trust.Repositories)
}

// distrust is the proof of a release whose verification failed: by force, it is read
// nevertheless.
func (v Verifier) distrust(proven Proof, failure error) (Proof, error) {
	proven.Release, proven.CVO = nil, nil
	if known, ok := errors.AsType[*refusal.Error](failure); ok {
		proven.CVO = known.CVOAccepts
	}
	if !v.Scene.Settings.Judgement.Force {
		return proven, nil
	}
	forced, err := signature.Force(proven.PullSpec, failure)
	if err != nil {
		return Proof{}, &input.Error{Err: err}
	}
	proven.Release = &forced
	return proven, nil
}

// unproven is the finding about the target without proof. Of a later update it is
// inconclusive where only a trusted key is missing: the release before may add it.
func (v Verifier) unproven(failure error) finding.Finding {
	known, ok := errors.AsType[*refusal.Error](failure)
	if !departure.Provisional(v.From) || !ok || known.Reason != refusal.ReasonUnknownKey {
		return unproven(failure)
	}
	from := v.From.From(v.Scene)
	return finding.Unknown(finding.ReportedReason(known.Reason.Name), "%s; release %s may add the key", known.Message, from).
		Remedy("Verify the signature when the cluster runs %s, or provide keyrings for this run.", from).Do(finding.Retry(finding.OptionTrust))
}

// holdAgainstPolicies holds the release image against the image policies of the
// cluster before it is read: nodes do so before they run it. It adds no result
// where no policy covers the image.
func (v Verifier) holdAgainstPolicies(ctx context.Context, proven Proof) Proof {
	policies, err := imagepolicy.FromCluster(ctx, v.Scene.Management().OpenShift.ConfigV1())
	if err != nil {
		proven.Sources = append(proven.Sources, collector.Known(NameReleasePolicy, finding.SourceSignature,
			finding.Unknown(reasonImagePoliciesUnavailable, "the images that nodes accept are unknown: %v", err).Named(NameReleasePolicy).
				Remedy("Run the preflight as a user with permission to list ClusterImagePolicies.").Do(finding.Roles())))
		return proven
	}
	proven.Policies = policies
	return v.HoldAgainst(ctx, proven, policies)
}

// HoldAgainst holds the release image against policies, in place of an earlier result.
func (v Verifier) HoldAgainst(ctx context.Context, proven Proof, policies imagepolicy.Policies) Proof {
	if proven.Release == nil || !policies.Covers(proven.Release.PullSpec()) {
		return proven
	}
	v.Scene.Step("checking %s against the image policies of the cluster", proven.Release.PullSpec())
	image := imagepolicy.Image{PullSpec: proven.Release.PullSpec(), Architectures: v.Scene.ReleaseArchitectures(ctx)}
	result := policies.Check(ctx, image, Puller(v.Registries)).Named(NameReleasePolicy)
	others := slices.DeleteFunc(slices.Clone(proven.Sources), func(each collector.Source) bool { return each.Name == NameReleasePolicy })
	proven.Sources = append(others, collector.Known(NameReleasePolicy, finding.SourceSignature, result))
	return proven
}

var reasonImagePoliciesUnavailable = finding.NewReason("ImagePoliciesUnavailable", finding.Explanation{
	Meaning: "The image policies of the cluster could not be read.",
	Cause:   "The user lacks the permission to list ClusterImagePolicies.",
	Remedy:  "Bind the roles that \"auth run\" prints.",
})

// NameReleasePolicy names the findings about the image policies of the release image.
var NameReleasePolicy = finding.NewName("ReleaseImagePolicy",
	"The findings about the image policies that cover the release image.")

// PolicyNeeds are the permissions to hold images against the image policies.
// Where the nodes may not be read, all architectures of an image are inspected.
func PolicyNeeds() access.Needs {
	return access.Needs{
		Required: []access.Request{{Verb: "list", Group: "config.openshift.io", Resource: "clusterimagepolicies"}},
		Optional: []access.Request{{Verb: "list", Resource: "nodes"}},
	}
}

// Puller pulls as the nodes do.
func Puller(access *registry.Access) imagepolicy.Puller { return puller{access} }

type puller struct{ access *registry.Access }

func (p puller) Pull(ctx context.Context, pullSpec string, ask func(context.Context, imagepolicy.Place) error) error {
	_, err := p.access.Try(ctx, pullSpec, func(ctx context.Context, visit registry.Visit) error {
		return ask(ctx, imagepolicy.Place{
			Repository: visit.Reference.Context(), Mirror: visit.Mirror, Auth: visit.Auth, Transport: visit.Transport,
		})
	})
	return err
}
