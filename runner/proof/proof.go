// Package proof answers: who signed this release, and would this cluster run its image?
//
// [Verifier.Verify] searches for the proof. Nothing of a release without one is read or
// run, unless the administrator forces it.
package proof

import (
	"errors"
	"strings"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/runner/image/imagepolicy"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/refusal"
)

// Proof is what the verification of a release came to.
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
		"the cluster knows %s, and not %s, so the image of the release is unknown: its signature, its content and its checks were not evaluated", known, version).
		Named(nameSignature).Remedy("Name the release by its image, or set a channel that has it.").Do(finding.Targets())
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
		message += ", by the keys of the management cluster; this is the only verification: HyperShift makes none"
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
		Remedy("Fix what the message names, or name keyrings and signature stores for this run.").
		Do(finding.Retry(finding.OptionTrust))
}

var (
	nameSignature = finding.NewName("ReleaseSignature", "The findings about the release's signature.")

	nameIdentity = finding.NewName("ReleaseIdentity",
		"The finding about a release image that contains another version than its signature names.")

	reasonVerified = finding.NewReason("Verified", finding.Explanation{
		Meaning: "Reported when the release is signed by a key that the cluster trusts.",
		Cause:   "A signature of the release's digest was found and is valid.",
	})
	reasonNotListed = finding.NewReason("NotListed", finding.Explanation{
		Meaning: "Reported for a version that the cluster does not list as an update, and has not run before. What does not depend on the content of the release is judged nevertheless.",
		Cause:   "The channel of the cluster does not have the version, or the cluster could not retrieve its updates.",
		Remedy:  "Name the release by its image.",
		Command: "oc preflight run --to-image PULLSPEC",
	})
	reasonSignatureWarning = finding.NewReason("SignatureWarning", finding.Explanation{
		Meaning: "Reported when the signature is valid, with a property that other verifiers may not accept.",
		Cause:   "The message has it.",
		Remedy:  "Report it to the publisher of the release.",
	})
)
