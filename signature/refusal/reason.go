package refusal

import "slices"

// Reason is the kind of an [Error]. Two are equal when all of their fields are.
type Reason struct {
	// Name is one CamelCase word, stable between releases.
	Name string
	// Meaning is when the reason is reported, Cause what brings that about, Remedy what to
	// do: sentences.
	Meaning, Cause, Remedy string
}

// String is the name.
func (r Reason) String() string { return r.Name }

var declared []Reason //nolint:gochecknoglobals // only the initialization of this package appends to it

// Reasons are all reasons of this package.
func Reasons() []Reason { return slices.Clone(declared) }

func declare(r Reason) Reason {
	declared = append(declared, r)
	return r
}

// The reasons.
var (
	ReasonInvalidPullSpec = declare(Reason{
		Name:    "InvalidPullSpec",
		Meaning: "Reported when the release is not named by a digest.",
		Cause:   "The pull spec has a tag, or is not a pull spec.",
		Remedy: "Name the release as REPOSITORY@sha256:DIGEST; oc adm release info PULLSPEC -o 'jsonpath={.digest}' " +
			"prints the digest of a tag.",
	})
	ReasonNoKeys = declare(Reason{
		Name:    "NoKeys",
		Meaning: "Reported when the cluster provides no keys to verify releases with.",
		Cause: "The ConfigMap openshift-config-managed/release-verification does not exist or has no " +
			"verifier-public-key-* entry.",
		Remedy: "Restore the ConfigMap, or provide keyrings for this run.",
	})
	ReasonNoStores = declare(Reason{
		Name:    "NoStores",
		Meaning: "Reported when there is no signature store to search.",
		Cause: "spec.signatureStores of ClusterVersion \"version\" is an empty list, which replaces the stores of the " +
			"release, or no store was provided.",
		Remedy: "Add a store to spec.signatureStores, or provide a store for this run.",
	})
	ReasonTrustUnavailable = declare(Reason{
		Name:    "TrustUnavailable",
		Meaning: "Reported when the keyrings or stores of the cluster could not be read.",
		Cause:   "A permission is missing, or the API server did not respond.",
		Remedy: "Obtain get and list on ConfigMaps in openshift-config-managed, and get on ClusterVersion \"version\" and " +
			"Proxy \"cluster\"; or provide keyrings and stores.",
	})
	ReasonInvalidKeyring = declare(Reason{
		Name:    "InvalidKeyring",
		Meaning: "Reported when a keyring cannot be read.",
		Cause:   "The keyring is not a set of OpenPGP public keys, or is too large.",
		Remedy:  "Replace the keyring with the public keys of the release's provider.",
	})
	ReasonUnsupportedKeyring = declare(Reason{
		Name:    "UnsupportedKeyring",
		Meaning: "Reported when no key of a keyring is supported.",
		Cause:   "The keys have an algorithm or version that the OpenPGP library rejects.",
		Remedy:  "Ask the provider of the release for a supported OpenPGP version 4 key.",
	})
	ReasonInvalidStore = declare(Reason{
		Name:    "InvalidStore",
		Meaning: "Reported when a signature store cannot be used.",
		Cause:   "Its location is not a supported URL, or its CA is missing or invalid.",
		Remedy: "Correct spec.signatureStores of ClusterVersion \"version\" or the store-* entries of ConfigMap " +
			"openshift-config-managed/release-verification.",
	})
	ReasonKeyRevoked = declare(Reason{
		Name:    "KeyRevoked",
		Meaning: "Reported when a revoked key made the signature.",
		Cause:   "The keyring holds a revocation of the key.",
		Remedy:  "Do not use this copy of the release; ask its provider for a signature by a valid key.",
	})
	ReasonInvalidSignature = declare(Reason{
		Name:    "InvalidSignature",
		Meaning: "Reported when a signature does not match the content and the key that it names.",
		Cause:   "The signature or the content was modified.",
		Remedy:  "Do not use this copy of the release; get it again from its provider.",
	})
	ReasonWrongDigest = declare(Reason{
		Name:    "WrongDigest",
		Meaning: "Reported when the signature claim is for another digest.",
		Cause:   "A signature of another image was stored under this digest.",
		Remedy:  "Do not use this copy of the release; get it again from its provider.",
	})
	ReasonInvalidClaim = declare(Reason{
		Name:    "InvalidClaim",
		Meaning: "Reported when the signed content is not a signature claim.",
		Cause:   "The key signed something other than a container image.",
		Remedy:  "Do not use this copy of the release; get it again from its provider.",
	})
	ReasonSignatureExpired = declare(Reason{
		Name:    "SignatureExpired",
		Meaning: "Reported when the lifetime of the signature is over.",
		Cause:   "The signer limited the lifetime of the signature.",
		Remedy:  "Ask the provider of the release for a new signature.",
	})
	ReasonNotYetValid = declare(Reason{
		Name:    "SignatureNotYetValid",
		Meaning: "Reported when the signature is dated in the future.",
		Cause:   "The clock of this machine, or of the signer, is wrong.",
		Remedy:  "Check the clock of this machine.",
	})
	ReasonKeyNotYetValid = declare(Reason{
		Name:    "KeyNotYetValid",
		Meaning: "Reported when the signature is older than its key.",
		Cause:   "The signature was backdated, or the clock of the signer was wrong.",
		Remedy:  "Do not use this copy of the release; get it again from its provider.",
	})
	ReasonWeakDigest = declare(Reason{
		Name:    "WeakDigest",
		Meaning: "Reported when the signature uses a digest that can be forged.",
		Cause:   "It was made with MD5, RIPEMD-160, SHA-1 or SHA-224.",
		Remedy:  "Ask the provider of the release for a signature over SHA-256 or longer.",
	})
	ReasonUnsupportedSignature = declare(Reason{
		Name:    "UnsupportedSignature",
		Meaning: "Reported when the signature has a form that the OpenPGP library does not support.",
		Cause:   "It is a version 3 signature, has an unknown algorithm or a critical notation, or is compressed with bzip2.",
		Remedy:  "Ask the provider of the release for an OpenPGP version 4 signature.",
	})
	ReasonTimeout = declare(Reason{
		Name:    "Timeout",
		Meaning: "Reported when a signature store did not respond in time.",
		Cause:   "The store is slow, or a firewall drops the connection.",
		Remedy:  "Make the store reachable, or mirror the signatures of the release.",
	})
	ReasonStoreUnavailable = declare(Reason{
		Name:    "StoreUnavailable",
		Meaning: "Reported when a signature store could not be read.",
		Cause:   "The store is down, denies access, or cannot be reached from here.",
		Remedy:  "Make the store reachable, or mirror the signatures of the release.",
	})
	ReasonUnknownKey = declare(Reason{
		Name:    "UnknownKey",
		Meaning: "Reported when no trusted key made the signature.",
		Cause:   "The release was signed by another provider, or the keyring is outdated.",
		Remedy:  "Do not use this copy of the release; get it again from its provider.",
	})
	ReasonMalformedSignature = declare(Reason{
		Name:    "MalformedSignature",
		Meaning: "Reported when a signature is not an OpenPGP message as gpg --sign makes it.",
		Cause:   "The store serves something else, or the signature is damaged.",
		Remedy:  "Get the signatures of the release again from its provider.",
	})
	ReasonTooLarge = declare(Reason{
		Name:    "TooLarge",
		Meaning: "Reported when a signature exceeds 64 KiB.",
		Cause:   "The store serves something else under the digest.",
		Remedy:  "Check the digest, and mirror the signatures of the release again.",
	})
	ReasonTooManySignatures = declare(Reason{
		Name:    "TooManySignatures",
		Meaning: "Reported when a store has more signatures of the digest than are read.",
		Cause:   "Signatures of other keys were added to the store.",
		Remedy:  "Remove from the store what the provider of the release did not publish.",
	})
	ReasonTrailingData = declare(Reason{
		Name:    "TrailingData",
		Meaning: "Reported when data follows the signature claim.",
		Cause:   "The signed content is ambiguous.",
		Remedy:  "Do not use this copy of the release; get it again from its provider.",
	})
	ReasonDuplicateField = declare(Reason{
		Name:    "DuplicateField",
		Meaning: "Reported when the signature claim has a field twice.",
		Cause:   "The signed content is ambiguous.",
		Remedy:  "Do not use this copy of the release; get it again from its provider.",
	})
	ReasonFieldCase = declare(Reason{
		Name:    "FieldCase",
		Meaning: "Reported when a field of the signature claim has unexpected letter case.",
		Cause:   "The signed content is ambiguous.",
		Remedy:  "Do not use this copy of the release; get it again from its provider.",
	})
	ReasonUnsignedAttributes = declare(Reason{
		Name:    "UnsignedAttributes",
		Meaning: "Reported when the signature packet has attributes that the signature does not cover.",
		Cause:   "The signature was modified after it was made.",
		Remedy:  "Do not use this copy of the release; get it again from its provider.",
	})
	ReasonWrongRepository = declare(Reason{
		Name:    "WrongRepository",
		Meaning: "Reported when the image was signed under the name of a repository that is not one of releases.",
		Cause:   "A trusted key signed another image, or the provider publishes releases under another name.",
		Remedy: "Do not use this image as a release, unless its provider signs releases under that name; then allow the " +
			"repository for this run.",
	})
	ReasonWrongVersion = declare(Reason{
		Name:    "WrongVersion",
		Meaning: "Reported when the image was signed as another version than its metadata states.",
		Cause:   "The signature belongs to another release.",
		Remedy:  "Do not use this copy of the release; get it again from its provider.",
	})
	ReasonNoSignedVersion = declare(Reason{
		Name:    "NoSignedVersion",
		Meaning: "Reported when the signature does not name a version.",
		Cause:   "The signed reference has no tag.",
		Remedy:  "Ask the provider of the release for a signature that names the version.",
	})
	ReasonNotVerified = declare(Reason{
		Name:    "NotVerified",
		Meaning: "Reported when a release is used that was not verified.",
		Cause:   "A defect of the calling program.",
		Remedy:  "Verify the release first.",
	})
	ReasonNoSignature = declare(Reason{
		Name:    "NoSignature",
		Meaning: "Reported when no store has a signature of the release.",
		Cause:   "The digest is not that of a release, or its signatures were not mirrored.",
		Remedy: "Check the digest; in a disconnected cluster, mirror the signatures with the release: oc adm release " +
			"mirror --apply-release-image-signature.",
	})
)
