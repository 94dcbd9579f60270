package imagepolicy

import "github.com/openshift/update-preflight/collector/finding"

// ReasonImagePolicySatisfied is reported when the signatures of an image
// satisfy the policies of the cluster.
//
// Cause: the image is signed.
//
// Remedy: none is needed.
const ReasonImagePolicySatisfied finding.Reason = "ImagePolicySatisfied"

// ReasonNoImagePolicy is reported when no ClusterImagePolicy covers an image.
//
// Cause: the cluster requires no signature of the image.
//
// Remedy: none is needed.
const ReasonNoImagePolicy finding.Reason = "NoImagePolicy"

// ReasonDigestMismatch is reported when a registry serves other content than
// the digest of an image.
//
// Cause: a defect or compromise of the registry.
//
// Remedy: mirror the image again: oc adm release mirror.
const ReasonDigestMismatch finding.Reason = "DigestMismatch"

// ReasonNoInstance is reported when an index has no image for an architecture
// of the nodes.
//
// Cause: the image was not mirrored for all architectures.
//
// Remedy: mirror the image for all architectures: oc adm release mirror
// --keep-manifest-list.
const ReasonNoInstance finding.Reason = "NoInstance"

// ReasonMalformedAttachment is reported when the signature tag of an image is
// not a sigstore signature.
//
// Cause: the tag was overwritten or pushed by an incompatible tool.
//
// Remedy: copy the signature again: cosign copy --only=sig.
const ReasonMalformedAttachment finding.Reason = "MalformedAttachment"

// ReasonSigstoreUnavailable is reported when the signatures of an image could
// not be read.
//
// Cause: the registry cannot be reached, or denies access.
//
// Remedy: make the registry reachable, then run the preflight again.
const ReasonSigstoreUnavailable finding.Reason = "SigstoreUnavailable"

// ReasonTooManySignatures is reported when an image has more signatures than
// are read.
//
// Cause: signatures of other keys were added.
//
// Remedy: remove the signatures that are not by the provider.
const ReasonTooManySignatures finding.Reason = "TooManySignatures"

// ReasonNoSigstoreSignature is reported when an image has no signature.
//
// Cause: the image was copied without its signature, or never had one.
//
// Remedy: copy the signature to the mirror: cosign copy --only=sig.
const ReasonNoSigstoreSignature finding.Reason = "NoSigstoreSignature"

// ReasonInvalidPullSpec is reported when an image is not named by digest.
//
// Cause: the pull spec is malformed.
//
// Remedy: name the image as REPOSITORY@sha256:DIGEST.
const ReasonInvalidPullSpec finding.Reason = "InvalidPullSpec"

// ReasonImageUnavailable is reported when an image could not be read.
//
// Cause: the registry cannot be reached, or lacks the image.
//
// Remedy: make the image available, then run the preflight again.
const ReasonImageUnavailable finding.Reason = "ImageUnavailable"

// ReasonUnsupportedRootOfTrust is reported when a policy has a root of trust
// that this check does not support.
//
// Cause: the policy uses Fulcio, Rekor or PKI.
//
// Remedy: verify the image before the update: cosign verify.
const ReasonUnsupportedRootOfTrust finding.Reason = "UnsupportedRootOfTrust"

// ReasonInvalidImagePolicy is reported when a policy cannot be evaluated.
//
// Cause: its public key or its identity rule is invalid.
//
// Remedy: correct the policy: oc edit clusterimagepolicies.
const ReasonInvalidImagePolicy finding.Reason = "InvalidImagePolicy"

// ReasonInvalidSigstoreSignature is reported when the key of the policy did not
// make the signature.
//
// Cause: the image was signed by another key, or was modified.
//
// Remedy: get the image and its signature again from its provider.
const ReasonInvalidSigstoreSignature finding.Reason = "InvalidSigstoreSignature"

// ReasonInvalidSigstoreClaim is reported when the signed content is not a
// signature claim.
//
// Cause: the key signed something else.
//
// Remedy: get the image and its signature again from its provider.
const ReasonInvalidSigstoreClaim finding.Reason = "InvalidSigstoreClaim"

// ReasonWrongSigstoreDigest is reported when the signature claim is for another
// digest.
//
// Cause: the signature belongs to another image.
//
// Remedy: get the image and its signature again from its provider.
const ReasonWrongSigstoreDigest finding.Reason = "WrongSigstoreDigest"

// ReasonWrongSigstoreIdentity is reported when the signature claim is for
// another repository than the policy requires.
//
// Cause: the image was signed under another name.
//
// Remedy: change the signedIdentity of the policy: oc edit
// clusterimagepolicies.
const ReasonWrongSigstoreIdentity finding.Reason = "WrongSigstoreIdentity"
