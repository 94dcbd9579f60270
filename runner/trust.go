package runner

import (
	"context"
	"errors"
	"slices"
	"strings"

	configv1client "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/signature"
)

const (
	ReasonVerified         finding.Reason = "Verified"
	ReasonSignatureWarning finding.Reason = "SignatureWarning"
	ReasonError            finding.Reason = "Error"
	ReasonVersionMismatch  finding.Reason = "VersionMismatch"
	ReasonRead             finding.Reason = "Read"
)

// Trust is what the cluster trusts, with the keyrings and the stores each
// replaced where given has some.
func Trust(ctx context.Context, core corev1client.ConfigMapsGetter, config configv1client.ConfigV1Interface, given signature.Trust) (signature.Trust, error) {
	if len(given.Keyrings) > 0 && len(given.Stores) > 0 {
		return given, nil
	}
	trust, err := signature.FromCluster(ctx, core, config)
	if err != nil {
		return signature.Trust{}, err
	}
	if len(given.Keyrings) > 0 {
		trust.Keyrings = given.Keyrings
	}
	if len(given.Stores) > 0 {
		trust.Stores = given.Stores
	}
	return trust, nil
}

// verify looks for the proof that the target is signed, and tells the finding.
// Without proof and without force the session has no proof, and nothing of the
// release is read or run. Only bad input is an error.
func (s *session) verify(ctx context.Context) error {
	pullSpec, err := s.pullSpec(ctx)
	if err != nil {
		return err
	}
	s.target.image = pullSpec
	s.step("verifying the signature of %s", pullSpec)
	proof, failure := s.prove(ctx, pullSpec)
	if failure == nil {
		s.proof, s.acceptedByCVO = &proof, proof.CVOAccepts()
		s.tell("ReleaseSignature", finding.SourceSignature, verified(proof)...)
		return nil
	}
	if known, ok := errors.AsType[*signature.Error](failure); ok && known.Reason == signature.ReasonInvalidPullSpec {
		return &BadInputError{Err: failure}
	}
	s.tell("ReleaseSignature", finding.SourceSignature, unverified("ReleaseSignature", failure))
	return s.distrust(failure)
}

// distrust takes the proof away; with force, the release is read all the same,
// and the failure goes with it.
func (s *session) distrust(failure error) error {
	s.proof, s.acceptedByCVO = nil, nil
	if known, ok := errors.AsType[*signature.Error](failure); ok {
		s.acceptedByCVO = known.CVOAccepts()
	}
	if !s.config.Force {
		return nil
	}
	forced, err := signature.Force(s.target.image, failure)
	if err != nil {
		return &BadInputError{Err: err}
	}
	s.proof = &forced
	return nil
}

// pullSpec is the target's pull spec by digest. A tag is looked up only with
// force: whoever can move the tag can choose the release.
func (s *session) pullSpec(ctx context.Context) (string, error) {
	if strings.Contains(s.target.image, "@") {
		return s.target.image, nil
	}
	if !s.config.Force {
		return "", badInput("the pull spec %q has no digest, and only a digest can be verified: name it as REPOSITORY@sha256:..., or use --force to take what the tag means now",
			s.target.image)
	}
	pullSpec, err := payload.Resolve(ctx, s.target.image, s.registries)
	if err != nil {
		return "", err
	}
	return pullSpec, nil
}

func (s *session) prove(ctx context.Context, pullSpec string) (signature.Release, error) {
	given := signature.Trust{Keyrings: s.config.Keyrings, Stores: s.config.Stores}
	trust, err := Trust(ctx, s.config.Cluster.Kubernetes.CoreV1(), s.config.Cluster.OpenShift.ConfigV1(), given)
	if err != nil {
		return signature.Release{}, err
	}
	trust.Now = s.now()
	proof, err := signature.Verify(ctx, pullSpec, trust)
	if err != nil {
		return signature.Release{}, err
	}
	return proof, proof.CheckRepository(s.config.Repositories)
}

// verified are the findings of a release with proof: what the verification was
// lenient about is worth a warning.
func verified(proof signature.Release) []finding.Finding {
	findings := []finding.Finding{finding.Pass(ReasonVerified, "the release is signed by %s", strings.Join(proof.Signers(), "; ")).
		Named("ReleaseSignature")}
	for _, warning := range proof.Warnings() {
		findings = append(findings, finding.Warn(ReasonSignatureWarning, "%s", warning).
			Named("ReleaseSignature"))
	}
	return findings
}

// unverified is the finding of a release without proof. A failure that is not
// the signature package's own verdict could not tell.
func unverified(name string, failure error) finding.Finding {
	f := finding.Unknown(ReasonError, "%s", failure.Error()).
		Named(name).
		Remedy("Put right what the message names, or name keys and stores yourself with --keyring and --signature-store.")
	if known, ok := errors.AsType[*signature.Error](failure); ok {
		f.Outcome, f.Reason = known.Outcome, known.Reason
		f.Message, f.Remediation = known.Message, known.Remediation
	}
	return f
}

// extract reads the manifests of a release that was proven, and tells what is
// wrong with them. A release that must not be used is a finding; only one that
// could not be read is an error.
func (s *session) extract(ctx context.Context) error {
	if s.proof == nil {
		return nil
	}
	s.step("reading the manifests of %s", s.proof.PullSpec())
	defer s.registries.Close()
	read, err := payload.Extract(ctx, *s.proof, payload.Options{Access: s.registries, Cache: s.config.Cache, Cluster: s.filters(ctx)})
	if refused, ok := errors.AsType[*payload.Error](err); ok && refused.Outcome == preflight.Fail {
		s.tell("ReleasePayload", finding.SourcePayload, append(s.registries.Warnings(), finding.Fail(finding.Reason(refused.Reason), "%s", refused.Error()).
			Named("ReleasePayload").
			Remedy("%s", refused.Remediation))...)
		return nil
	}
	if err != nil {
		return err
	}
	if failure := s.proof.CheckVersion(read.Version); failure != nil {
		s.tell("ReleaseIdentity", finding.SourceSignature, unverified("ReleaseIdentity", failure))
		if err := s.distrust(failure); err != nil || s.proof == nil {
			return err
		}
	}
	s.payload = read
	s.tell("ReleasePayload", finding.SourcePayload, slices.Concat(s.registries.Warnings(), read.Problems, []finding.Finding{s.version(read)})...)
	if s.target.version == "" {
		s.target.version = read.Version
	}
	return nil
}

// version compares what the release says it is with what was asked for, as CVO
// does before it updates (reason VerifyPayloadVersion).
func (s *session) version(read *payload.Release) finding.Finding {
	if s.target.version != "" && s.target.version != read.Version {
		return finding.Fail(ReasonVersionMismatch,
			"the release image is version %s, not %s as the cluster has it", read.Version, s.target.version).
			Named("ReleasePayload").
			Remedy("Do not use this image. Refresh the available updates: oc adm upgrade")
	}
	return finding.Pass(ReasonRead, "release %s ships %d preflight checks", read.Version, len(read.Jobs)).
		Named("ReleasePayload")
}
