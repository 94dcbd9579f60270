package refusal

// Reason is the kind of an [Error]: one CamelCase word, stable between releases.
type Reason string

// ReasonInvalidPullSpec is reported when the release is not named by a digest.
//
// Cause: the pull spec has a tag, or is not a pull spec.
//
// Remedy: name the release as REPOSITORY@sha256:DIGEST; oc adm release info
// PULLSPEC -o 'jsonpath={.digest}' prints the digest of a tag.
const ReasonInvalidPullSpec Reason = "InvalidPullSpec"

// ReasonNoKeys is reported when the cluster provides no keys to verify releases
// with.
//
// Cause: the ConfigMap openshift-config-managed/release-verification does not
// exist or has no verifier-public-key-* entry.
//
// Remedy: restore the ConfigMap, or provide keyrings for this run.
const ReasonNoKeys Reason = "NoKeys"

// ReasonNoStores is reported when there is no signature store to search.
//
// Cause: spec.signatureStores of ClusterVersion "version" is an empty list, which
// replaces the stores of the release, or no store was provided.
//
// Remedy: add a store to spec.signatureStores, or provide a store for this run.
const ReasonNoStores Reason = "NoStores"

// ReasonTrustUnavailable is reported when the keyrings or stores of the cluster
// could not be read.
//
// Cause: a permission is missing, or the API server did not respond.
//
// Remedy: obtain get and list on ConfigMaps in openshift-config-managed, and get
// on ClusterVersion "version" and Proxy "cluster"; or provide keyrings and stores.
const ReasonTrustUnavailable Reason = "TrustUnavailable"

// ReasonInvalidKeyring is reported when a keyring cannot be read.
//
// Cause: the keyring is not a set of OpenPGP public keys, or is too large.
//
// Remedy: replace the keyring with the public keys of the release's provider.
const ReasonInvalidKeyring Reason = "InvalidKeyring"

// ReasonUnsupportedKeyring is reported when no key of a keyring is supported.
//
// Cause: the keys have an algorithm or version that the OpenPGP library rejects.
//
// Remedy: ask the provider of the release for a supported OpenPGP version 4 key.
const ReasonUnsupportedKeyring Reason = "UnsupportedKeyring"

// ReasonInvalidStore is reported when a signature store cannot be used.
//
// Cause: its location is not a supported URL, or its CA is missing or invalid.
//
// Remedy: correct spec.signatureStores of ClusterVersion "version" or the store-*
// entries of ConfigMap openshift-config-managed/release-verification.
const ReasonInvalidStore Reason = "InvalidStore"

// ReasonKeyRevoked is reported when a revoked key made the signature.
//
// Cause: the keyring holds a revocation of the key.
//
// Remedy: do not use this copy of the release; ask its provider for a signature
// by a valid key.
const ReasonKeyRevoked Reason = "KeyRevoked"

// ReasonInvalidSignature is reported when a signature does not match the content
// and the key that it names.
//
// Cause: the signature or the content was modified.
//
// Remedy: do not use this copy of the release; get it again from its provider.
const ReasonInvalidSignature Reason = "InvalidSignature"

// ReasonWrongDigest is reported when the signature claim is for another digest.
//
// Cause: a signature of another image was stored under this digest.
//
// Remedy: do not use this copy of the release; get it again from its provider.
const ReasonWrongDigest Reason = "WrongDigest"

// ReasonInvalidClaim is reported when the signed content is not a signature claim.
//
// Cause: the key signed something other than a container image.
//
// Remedy: do not use this copy of the release; get it again from its provider.
const ReasonInvalidClaim Reason = "InvalidClaim"

// ReasonSignatureExpired is reported when the lifetime of the signature is over.
//
// Cause: the signer limited the lifetime of the signature.
//
// Remedy: ask the provider of the release for a new signature.
const ReasonSignatureExpired Reason = "SignatureExpired"

// ReasonNotYetValid is reported when the signature is dated in the future.
//
// Cause: the clock of this machine, or of the signer, is wrong.
//
// Remedy: check the clock of this machine.
const ReasonNotYetValid Reason = "SignatureNotYetValid"

// ReasonKeyNotYetValid is reported when the signature is older than its key.
//
// Cause: the signature was backdated, or the clock of the signer was wrong.
//
// Remedy: do not use this copy of the release; get it again from its provider.
const ReasonKeyNotYetValid Reason = "KeyNotYetValid"

// ReasonWeakDigest is reported when the signature uses a digest that can be
// forged.
//
// Cause: it was made with MD5, RIPEMD-160, SHA-1 or SHA-224.
//
// Remedy: ask the provider of the release for a signature over SHA-256 or longer.
const ReasonWeakDigest Reason = "WeakDigest"

// ReasonUnsupportedSignature is reported when the signature has a form that the
// OpenPGP library does not support.
//
// Cause: it is a version 3 signature, has an unknown algorithm or a critical
// notation, or is compressed with bzip2.
//
// Remedy: ask the provider of the release for an OpenPGP version 4 signature.
const ReasonUnsupportedSignature Reason = "UnsupportedSignature"

// ReasonTimeout is reported when a signature store did not respond in time.
//
// Cause: the store is slow, or a firewall drops the connection.
//
// Remedy: make the store reachable, or mirror the signatures of the release.
const ReasonTimeout Reason = "Timeout"

// ReasonStoreUnavailable is reported when a signature store could not be read.
//
// Cause: the store is down, denies access, or cannot be reached from here.
//
// Remedy: make the store reachable, or mirror the signatures of the release.
const ReasonStoreUnavailable Reason = "StoreUnavailable"

// ReasonUnknownKey is reported when no trusted key made the signature.
//
// Cause: the release was signed by another provider, or the keyring is outdated.
//
// Remedy: do not use this copy of the release; get it again from its provider.
const ReasonUnknownKey Reason = "UnknownKey"

// ReasonMalformedSignature is reported when a signature is not an OpenPGP message
// as gpg --sign makes it.
//
// Cause: the store serves something else, or the signature is damaged.
//
// Remedy: get the signatures of the release again from its provider.
const ReasonMalformedSignature Reason = "MalformedSignature"

// ReasonTooLarge is reported when a signature exceeds 64 KiB.
//
// Cause: the store serves something else under the digest.
//
// Remedy: check the digest, and mirror the signatures of the release again.
const ReasonTooLarge Reason = "TooLarge"

// ReasonTooManySignatures is reported when a store has more signatures of the
// digest than are read.
//
// Cause: signatures of other keys were added to the store.
//
// Remedy: remove from the store what the provider of the release did not publish.
const ReasonTooManySignatures Reason = "TooManySignatures"

// ReasonTrailingData is reported when data follows the signature claim.
//
// Cause: the signed content is ambiguous.
//
// Remedy: do not use this copy of the release; get it again from its provider.
const ReasonTrailingData Reason = "TrailingData"

// ReasonDuplicateField is reported when the signature claim has a field twice.
//
// Cause: the signed content is ambiguous.
//
// Remedy: do not use this copy of the release; get it again from its provider.
const ReasonDuplicateField Reason = "DuplicateField"

// ReasonFieldCase is reported when a field of the signature claim has unexpected
// letter case.
//
// Cause: the signed content is ambiguous.
//
// Remedy: do not use this copy of the release; get it again from its provider.
const ReasonFieldCase Reason = "FieldCase"

// ReasonUnsignedAttributes is reported when the signature packet has attributes
// that the signature does not cover.
//
// Cause: the signature was modified after it was made.
//
// Remedy: do not use this copy of the release; get it again from its provider.
const ReasonUnsignedAttributes Reason = "UnsignedAttributes"

// ReasonWrongRepository is reported when the image was signed under the name of a
// repository that is not one of releases.
//
// Cause: a trusted key signed another image, or the provider publishes releases
// under another name.
//
// Remedy: do not use this image as a release, unless its provider signs releases
// under that name; then allow the repository for this run.
const ReasonWrongRepository Reason = "WrongRepository"

// ReasonWrongVersion is reported when the image was signed as another version
// than its metadata states.
//
// Cause: the signature belongs to another release.
//
// Remedy: do not use this copy of the release; get it again from its provider.
const ReasonWrongVersion Reason = "WrongVersion"

// ReasonNoSignedVersion is reported when the signature does not name a version.
//
// Cause: the signed reference has no tag.
//
// Remedy: ask the provider of the release for a signature that names the version.
const ReasonNoSignedVersion Reason = "NoSignedVersion"

// ReasonNotVerified is reported when a release is used that was not verified.
//
// Cause: a defect of the calling program.
//
// Remedy: verify the release first.
const ReasonNotVerified Reason = "NotVerified"

// ReasonNoSignature is reported when no store has a signature of the release.
//
// Cause: the digest is not that of a release, or its signatures were not mirrored.
//
// Remedy: check the digest; in a disconnected cluster, mirror the signatures with
// the release: oc adm release mirror --apply-release-image-signature.
const ReasonNoSignature Reason = "NoSignature"
