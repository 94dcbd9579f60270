package runner

import (
	"context"
	"errors"
	"strings"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/refusal"
)

// proof is what the verification of a release came to.
type proof interface {
	// signers are those of a signature that the cluster trusts; none for a release
	// that is untrusted, or read by force.
	signers() []string
	// acceptedByCVO is whether CVO accepts the signature; nil when that is not known.
	acceptedByCVO() *bool
}

// trusted may be read: it is verified, or its verification is overridden by force.
type trusted struct {
	release signature.Release
	cvo     *bool
}

func (t trusted) acceptedByCVO() *bool { return t.cvo }

func (t trusted) signers() []string {
	if !t.release.Verified() {
		return nil
	}
	return t.release.Signers()
}

// untrusted may not be read.
type untrusted struct{ cvo *bool }

func (u untrusted) acceptedByCVO() *bool { return u.cvo }

func (untrusted) signers() []string { return nil }

// distrust is the proof of a release whose verification failed: by force, it is
// read nevertheless.
func distrust(o observed, pullSpec string, failure error) (proof, error) {
	var cvo *bool
	if known, ok := errors.AsType[*refusal.Error](failure); ok {
		cvo = known.CVOAccepts
	}
	if !o.options.Force {
		return untrusted{cvo: cvo}, nil
	}
	forced, err := signature.Force(pullSpec, failure)
	if err != nil {
		return nil, &BadInputError{Err: err}
	}
	return trusted{release: forced, cvo: cvo}, nil
}

func prove(ctx context.Context, o observed, pullSpec string) (signature.Release, error) {
	given := signature.Trust{Keyrings: o.options.Keyrings, Stores: o.options.Stores}
	trust, err := signature.Override(ctx, o.cluster.Kubernetes.CoreV1(), o.cluster.OpenShift.ConfigV1(), given)
	if err != nil {
		return signature.Release{}, err
	}
	trust.Now = o.cluster.Now()
	release, err := signature.Verify(ctx, pullSpec, trust)
	if err != nil {
		return signature.Release{}, err
	}
	return release, release.CheckRepository(o.options.Repositories)
}

// signedBy are the findings about a verified release.
func signedBy(release signature.Release) []finding.Finding {
	findings := []finding.Finding{finding.Pass(reasonVerified, "the release is signed by %s", strings.Join(release.Signers(), "; ")).Named(nameSignature)}
	for _, warning := range release.Warnings() {
		findings = append(findings, finding.Warn(reasonSignatureWarning, "%s", warning).Named(nameSignature))
	}
	return findings
}

// unproven is the finding about the target without proof. Of a later update it is
// inconclusive where only a trusted key is missing: the release before may add it.
func (v view) unproven(failure error) finding.Finding {
	known, ok := errors.AsType[*refusal.Error](failure)
	if v.hop == nil || !ok || known.Reason != refusal.ReasonUnknownKey {
		return unproven(failure)
	}
	return finding.Unknown(finding.Reason(known.Reason), "%s; release %s may add the key", known.Message, v.from()).
		Remedy("Verify the signature when the cluster runs %s, or name keyrings for this run.", v.from()).Do(finding.Retry(finding.OptionTrust))
}

// unproven is the finding about a release without proof. A failure that is not
// about the signature itself is inconclusive.
func unproven(failure error) finding.Finding {
	if known, ok := errors.AsType[*refusal.Error](failure); ok {
		return finding.New(known.Outcome, finding.Reason(known.Reason), "%s", known.Message).
			Remedy("%s", known.Remediation).Do(finding.Retry(finding.OptionTrust))
	}
	return finding.Unknown(collector.ReasonError, "%v", failure).
		Remedy("Fix what the message names, or name keyrings and signature stores for this run.").
		Do(finding.Retry(finding.OptionTrust))
}

// reasonVerified is reported when the release is signed by a key that the cluster
// trusts.
//
// Cause: a signature of the release's digest was found and is valid.
//
// Remedy: none needed.
const reasonVerified finding.Reason = "Verified"

// reasonSignatureWarning is reported when the signature is valid, with a property
// that other verifiers may not accept.
//
// Cause: the message has it.
//
// Remedy: report it to the publisher of the release.
const reasonSignatureWarning finding.Reason = "SignatureWarning"

// nameSignature names the findings about the release's signature.
const nameSignature = "ReleaseSignature"
