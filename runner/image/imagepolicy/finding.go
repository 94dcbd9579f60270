package imagepolicy

import (
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func unknown(reason finding.Reason, format string, args ...any) finding.Finding {
	fix := remedies()[reason]
	return finding.Unknown(reason, "%s", fmt.Sprintf(format, args...)).
		From(finding.SourceSignature).
		Remedy("%s", fix.text).Do(fix.actions...)
}

// remedy is an imperative sentence with its commands.
type remedy struct {
	text    string
	actions []finding.Action
}

func remedies() map[finding.Reason]remedy {
	return map[finding.Reason]remedy{
		reasonInvalidPullSpec: {text: "Name the image as REPOSITORY@sha256:DIGEST."},
		reasonUnsupportedRootOfTrust: {
			text: "Verify the image manually before the update, with the root of trust of the policy, such as with `cosign verify IMAGE`.",
		},
		reasonInvalidImagePolicy:  {text: "Correct the policy.", actions: []finding.Action{finding.Change("oc edit clusterimagepolicies")}},
		reasonSigstoreUnavailable: {text: "Make the registry reachable from here with permission to pull, then run the preflight again."},
		reasonImageUnavailable:    {text: "Make the image available from its registry or mirror, then run the preflight again."},
		reasonNoInstance:          {text: "Mirror the image for all architectures of the cluster."},
		reasonTooManySignatures:   {text: "Remove from the repository the signatures that are not by the provider."},
	}
}

func worst(findings []finding.Finding) finding.Finding {
	return slices.MinFunc(findings, func(a, b finding.Finding) int { return rank(a.Outcome) - rank(b.Outcome) })
}

func rank(outcome preflight.Outcome) int {
	return slices.Index([]preflight.Outcome{preflight.Fail, preflight.Unknown, preflight.Warn, preflight.Pass}, outcome)
}

// violation is why a signature does not satisfy a requirement.
type violation struct {
	reason  finding.Reason
	message string
	outcome preflight.Outcome
}

func violates(reason finding.Reason, format string, args ...any) *violation {
	return &violation{reason: reason, message: fmt.Sprintf(format, args...), outcome: preflight.Fail}
}

func undecided(format string, args ...any) *violation {
	return &violation{reason: reasonInvalidImagePolicy, message: fmt.Sprintf(format, args...), outcome: preflight.Unknown}
}

var (
	reasonImagePolicySatisfied = finding.NewReason("ImagePolicySatisfied", finding.Explanation{
		Meaning: "Reported when the signatures of an image satisfy the policies of the cluster.",
		Cause:   "The image is signed.",
	})
	reasonNoImagePolicy = finding.NewReason("NoImagePolicy", finding.Explanation{
		Meaning: "Reported when no ClusterImagePolicy covers an image.",
		Cause:   "The cluster requires no signature of the image.",
	})
	reasonDigestMismatch = finding.NewReason("DigestMismatch", finding.Explanation{
		Meaning: "Reported when a registry serves other content than the digest of an image.",
		Cause:   "A defect or compromise of the registry.",
		Remedy:  "Mirror the image again: oc adm release mirror.",
	})
	reasonNoInstance = finding.NewReason("NoInstance", finding.Explanation{
		Meaning: "Reported when an index has no image for an architecture of the nodes.",
		Cause:   "The image was not mirrored for all architectures.",
		Remedy:  "Mirror the image for all architectures: oc adm release mirror --keep-manifest-list.",
	})
	reasonMalformedAttachment = finding.NewReason("MalformedAttachment", finding.Explanation{
		Meaning: "Reported when the signature tag of an image is not a sigstore signature.",
		Cause:   "The tag was overwritten or pushed by an incompatible tool.",
		Remedy:  "Copy the signature again: cosign copy --only=sig.",
	})
	reasonSigstoreUnavailable = finding.NewReason("SigstoreUnavailable", finding.Explanation{
		Meaning: "Reported when the signatures of an image could not be read.",
		Cause:   "The registry cannot be reached, or denies access.",
		Remedy:  "Make the registry reachable, then run the preflight again.",
	})
	reasonTooManySignatures = finding.NewReason("TooManySignatures", finding.Explanation{
		Meaning: "Reported when an image has more signatures than are read.",
		Cause:   "Signatures of other keys were added.",
		Remedy:  "Remove the signatures that are not by the provider.",
	})
	reasonNoSigstoreSignature = finding.NewReason("NoSigstoreSignature", finding.Explanation{
		Meaning: "Reported when an image has no signature.",
		Cause:   "The image was copied without its signature, or never had one.",
		Remedy:  "Copy the signature to the mirror: cosign copy --only=sig.",
	})
	reasonInvalidPullSpec = finding.NewReason("InvalidPullSpec", finding.Explanation{
		Meaning: "Reported when an image is not named by digest.",
		Cause:   "The pull spec is malformed.",
		Remedy:  "Name the image as REPOSITORY@sha256:DIGEST.",
	})
	reasonImageUnavailable = finding.NewReason("ImageUnavailable", finding.Explanation{
		Meaning: "Reported when an image could not be read.",
		Cause:   "The registry cannot be reached, or lacks the image.",
		Remedy:  "Make the image available, then run the preflight again.",
	})
	reasonUnsupportedRootOfTrust = finding.NewReason("UnsupportedRootOfTrust", finding.Explanation{
		Meaning: "Reported when a policy has a root of trust that this check does not support.",
		Cause:   "The policy uses Fulcio, Rekor or PKI.",
		Remedy:  "Verify the image before the update: cosign verify.",
	})
	reasonInvalidImagePolicy = finding.NewReason("InvalidImagePolicy", finding.Explanation{
		Meaning: "Reported when a policy cannot be evaluated.",
		Cause:   "Its public key or its identity rule is invalid.",
		Remedy:  "Correct the policy: oc edit clusterimagepolicies.",
	})
	reasonInvalidSigstoreSignature = finding.NewReason("InvalidSigstoreSignature", finding.Explanation{
		Meaning: "Reported when the key of the policy did not make the signature.",
		Cause:   "The image was signed by another key, or was modified.",
		Remedy:  "Get the image and its signature again from its provider.",
	})
	reasonInvalidSigstoreClaim = finding.NewReason("InvalidSigstoreClaim", finding.Explanation{
		Meaning: "Reported when the signed content is not a signature claim.",
		Cause:   "The key signed something else.",
		Remedy:  "Get the image and its signature again from its provider.",
	})
	reasonWrongSigstoreDigest = finding.NewReason("WrongSigstoreDigest", finding.Explanation{
		Meaning: "Reported when the signature claim is for another digest.",
		Cause:   "The signature belongs to another image.",
		Remedy:  "Get the image and its signature again from its provider.",
	})
	reasonWrongSigstoreIdentity = finding.NewReason("WrongSigstoreIdentity", finding.Explanation{
		Meaning: "Reported when the signature claim is for another repository than the policy requires.",
		Cause:   "The image was signed under another name.",
		Remedy:  "Change the signedIdentity of the policy: oc edit clusterimagepolicies.",
	})
)
