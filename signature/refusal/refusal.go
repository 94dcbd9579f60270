// Package refusal answers: why is the signature of a release not accepted?
//
// [New] returns an [Error] for a [Reason]. The reason determines the remedy, whether the release is not signed properly
// or its verification was inconclusive, and what the cluster-version operator (CVO) would decide.
package refusal

import (
	"errors"
	"fmt"
	"slices"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Error reports that a release could not be verified.
type Error struct {
	Reason Reason
	// Message is the cause in one sentence.
	Message string
	// Remediation is an imperative sentence; it names no option of a program.
	Remediation string
	// Outcome is Fail when the release is not signed properly, Unknown when the verification was inconclusive.
	Outcome preflight.Outcome
	// Details are the violations of the signatures that were checked, in search order, at most maxDetails.
	Details []string
	// Err is the underlying error; nil when there is none.
	Err error

	// CVOAccepts reports whether the cluster-version operator would accept the signatures
	// that are rejected here; nil when that is unknown.
	CVOAccepts *bool
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// New returns an Error for reason. The format is passed to [fmt.Errorf]: an error for the verb %w
// becomes the underlying error.
func New(reason Reason, format string, args ...any) *Error {
	text := fmt.Errorf(format, args...)
	outcome := preflight.Fail
	if reason.Inconclusive {
		outcome = preflight.Unknown
	}
	return &Error{
		Reason: reason, Message: text.Error(), Err: errors.Unwrap(text),
		Remediation: reason.Remedy, Outcome: outcome, CVOAccepts: reason.CVO.known(),
	}
}

// Reason is the kind of an [Error]. Two are equal when all of their fields are.
type Reason struct {
	// Name is one CamelCase word, stable between releases.
	Name string
	// Meaning is the condition, Cause its usual cause, Remedy the next step: sentences.
	Meaning, Cause, Remedy string
	// Inconclusive is true when the signature is neither proven nor refuted.
	Inconclusive bool
	// CVO is the decision of the cluster-version operator (CVO). The sources are library-go pkg/verify and
	// golang.org/x/crypto/openpgp, which it links.
	CVO Acceptance
}

// Acceptance is whether CVO accepts signatures that are rejected here.
type Acceptance int

// The reason alone may not decide it: then it is the zero value.
const (
	cvoAccepts Acceptance = iota + 1
	cvoRejects
)

// known is true or false; nil when the reason alone does not decide it.
func (a Acceptance) known() *bool {
	if a == 0 {
		return nil
	}
	return new(a == cvoAccepts)
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

// distrust is the remedy for a release that may have been forged.
const distrust = "Do not use this copy of the release. Get it and its signatures again from the registry and " +
	"signature store of its provider; if the violation persists, report it to the provider."

// The reasons.
var (
	ReasonInvalidPullSpec = declare(Reason{
		Name:    "InvalidPullSpec",
		Meaning: "The release is not specified by a digest.",
		Cause:   "The pull spec contains a tag, or is invalid.",
		Remedy: "Specify the release by digest; oc adm release info PULLSPEC -o 'jsonpath={.digest}' prints the " +
			"digest of a tag.",
	})
	ReasonNoKeys = declare(Reason{
		Name:    "NoKeys",
		Meaning: "The cluster provides no keys for verifying releases.",
		Cause: "The ConfigMap openshift-config-managed/release-verification does not exist or has no " +
			"verifier-public-key-* entry.",
		Remedy: "Check the verifier-public-key-* entries of ConfigMap openshift-config-managed/release-verification, " +
			"or provide keyrings for this run.",
		Inconclusive: true,
	})
	ReasonNoStores = declare(Reason{
		Name:    "NoStores",
		Meaning: "There is no signature store to search.",
		Cause: "spec.signatureStores of ClusterVersion \"version\" is an empty list, which replaces the stores of the " +
			"release, or no store was provided.",
		Remedy: "Check spec.signatureStores of ClusterVersion version and the store-* entries of ConfigMap " +
			"openshift-config-managed/release-verification, or provide a signature store for this run.",
		Inconclusive: true,
	})
	ReasonTrustUnavailable = declare(Reason{
		Name:    "TrustUnavailable",
		Meaning: "The keyrings or stores of the cluster could not be read.",
		Cause:   "A permission is missing, or the API server did not respond.",
		Remedy: "Obtain get and list on ConfigMaps in namespace openshift-config-managed, and get on ClusterVersion " +
			"version and Proxy cluster, or provide keyrings and signature stores for this run.",
		Inconclusive: true,
	})
	ReasonInvalidKeyring = declare(Reason{
		Name:    "InvalidKeyring",
		Meaning: "A keyring cannot be read.",
		Cause:   "The keyring is not a set of OpenPGP public keys, or is too large.",
		Remedy: "Check the verifier-public-key-* entries of ConfigMap openshift-config-managed/release-verification, " +
			"or provide keyrings for this run.",
		Inconclusive: true,
	})
	ReasonUnsupportedKeyring = declare(Reason{
		Name:         "UnsupportedKeyring",
		Meaning:      "No key of a keyring is supported.",
		Cause:        "The OpenPGP library rejects the algorithm or version of the keys.",
		Remedy:       "Ask the provider of the release for an OpenPGP version 4 signature by a supported key.",
		Inconclusive: true,
	})
	ReasonInvalidStore = declare(Reason{
		Name:    "InvalidStore",
		Meaning: "A signature store cannot be used.",
		Cause:   "Its location is not a supported URL, or its CA is missing or invalid.",
		Remedy: "Check spec.signatureStores of ClusterVersion version and the store-* entries of ConfigMap " +
			"openshift-config-managed/release-verification, or provide a signature store for this run.",
		Inconclusive: true,
	})
	ReasonKeyRevoked = declare(Reason{
		Name:    "KeyRevoked",
		Meaning: "The signature was made with a revoked key.",
		Cause:   "The keyring contains a revocation of the key.",
		Remedy:  "Do not use this copy of the release; ask its provider for a signature by a valid key.",
		CVO:     cvoRejects,
	})
	ReasonInvalidSignature = declare(Reason{
		Name:    "InvalidSignature",
		Meaning: "A signature does not match the content and the key that it names.",
		Cause:   "The signature or the content was modified.",
		Remedy:  distrust,
		CVO:     cvoRejects,
	})
	ReasonWrongDigest = declare(Reason{
		Name:    "WrongDigest",
		Meaning: "The signature claim is for another digest.",
		Cause:   "A signature of another image was stored under this digest.",
		Remedy:  distrust,
		CVO:     cvoRejects,
	})
	ReasonInvalidClaim = declare(Reason{
		Name:    "InvalidClaim",
		Meaning: "The signed content is not a signature claim.",
		Cause:   "The key was used to sign something other than a container image.",
		Remedy:  distrust,
		CVO:     cvoRejects,
	})
	ReasonSignatureExpired = declare(Reason{
		Name:    "SignatureExpired",
		Meaning: "The signature has expired.",
		Cause:   "The signer limited the lifetime of the signature.",
		Remedy:  "Ask the provider of the release for a new signature.",
		CVO:     cvoRejects,
	})
	ReasonNotYetValid = declare(Reason{
		Name:    "SignatureNotYetValid",
		Meaning: "The signature is dated in the future.",
		Cause:   "The clock of this machine or of the signer is wrong.",
		Remedy:  "Check the clock of this machine.",
		CVO:     cvoAccepts,
	})
	ReasonKeyNotYetValid = declare(Reason{
		Name:    "KeyNotYetValid",
		Meaning: "The signature is older than its key.",
		Cause:   "The signature was backdated, or the clock of the signer was wrong.",
		Remedy:  distrust,
		CVO:     cvoAccepts,
	})
	ReasonWeakDigest = declare(Reason{
		Name:    "WeakDigest",
		Meaning: "The signature uses a digest algorithm that can be forged.",
		Cause:   "It was made with MD5, RIPEMD-160, SHA-1 or SHA-224.",
		Remedy:  "Ask the provider of the release for a signature over SHA-256 or longer.",
		CVO:     cvoAccepts,
	})
	ReasonUnsupportedSignature = declare(Reason{
		Name:    "UnsupportedSignature",
		Meaning: "The OpenPGP library does not support the form of the signature.",
		Cause: "It is a version 3 signature, has an unknown algorithm or a critical notation, or is " +
			"compressed with bzip2.",
		Remedy:       "Ask the provider of the release for an OpenPGP version 4 signature by a supported key.",
		Inconclusive: true,
	})
	ReasonTimeout = declare(Reason{
		Name:    "Timeout",
		Meaning: "A signature store did not respond in time.",
		Cause:   "The store is slow, or a firewall drops the connection.",
		Remedy: "Make the signature store reachable from here (proxy, firewall), or mirror the signatures of the " +
			"release and provide the mirrored signature store for this run.",
		Inconclusive: true,
	})
	ReasonStoreUnavailable = declare(Reason{
		Name:    "StoreUnavailable",
		Meaning: "A signature store could not be read.",
		Cause:   "The store is down, denies access, or cannot be reached from here.",
		Remedy: "Make the signature store reachable from here (proxy, firewall), or mirror the signatures of the " +
			"release and provide the mirrored signature store for this run.",
		Inconclusive: true,
	})
	ReasonUnknownKey = declare(Reason{
		Name:    "UnknownKey",
		Meaning: "No trusted key made the signature.",
		Cause:   "The release was signed by another provider, or the keyring is outdated.",
		Remedy:  distrust,
		CVO:     cvoRejects,
	})
	ReasonMalformedSignature = declare(Reason{
		Name:    "MalformedSignature",
		Meaning: "A signature is not an OpenPGP message as created by gpg --sign.",
		Cause:   "The store serves something else, or the signature is damaged.",
		Remedy:  "Get the signatures of the release again from its provider.",
	})
	ReasonTooLarge = declare(Reason{
		Name:    "TooLarge",
		Meaning: "A signature is larger than 64 KiB.",
		Cause:   "The store serves something else under the digest.",
		Remedy: "Check the digest; in a disconnected cluster, mirror the signatures with the release (oc-mirror and " +
			"oc adm release mirror write them as a ConfigMap to apply).",
	})
	ReasonTooManySignatures = declare(Reason{
		Name:    "TooManySignatures",
		Meaning: "A store has more signatures of the digest than the limit.",
		Cause:   "Signatures of other keys were added to the store.",
		Remedy: "Remove signatures that the provider of the release did not publish from the store, or provide " +
			"another signature store for this run.",
		CVO: cvoRejects,
	})
	ReasonTrailingData = declare(Reason{
		Name:    "TrailingData",
		Meaning: "Data follows the signature claim.",
		Cause:   "The signed content is ambiguous.",
		Remedy:  distrust,
		CVO:     cvoAccepts,
	})
	ReasonDuplicateField = declare(Reason{
		Name:    "DuplicateField",
		Meaning: "The signature claim contains a field twice.",
		Cause:   "The signed content is ambiguous.",
		Remedy:  distrust,
		CVO:     cvoAccepts,
	})
	ReasonFieldCase = declare(Reason{
		Name:    "FieldCase",
		Meaning: "A field of the signature claim has unexpected letter case.",
		Cause:   "The signed content is ambiguous.",
		Remedy:  distrust,
		CVO:     cvoAccepts,
	})
	ReasonUnsignedAttributes = declare(Reason{
		Name:    "UnsignedAttributes",
		Meaning: "The signature packet has attributes that the signature does not cover.",
		Cause:   "The signature was modified after it was made.",
		Remedy:  distrust,
		CVO:     cvoAccepts,
	})
	ReasonWrongRepository = declare(Reason{
		Name:    "WrongRepository",
		Meaning: "The image was signed under the name of a repository that is not known for releases.",
		Cause:   "A trusted key signed another image, or the provider publishes releases under another name.",
		Remedy: "Do not use this image as a release; if its provider signs releases under that name, allow the " +
			"repository for this run.",
		CVO: cvoAccepts,
	})
	ReasonWrongVersion = declare(Reason{
		Name:    "WrongVersion",
		Meaning: "The image was signed as a different version than its metadata contains.",
		Cause:   "The signature belongs to another release.",
		Remedy:  distrust,
		CVO:     cvoAccepts,
	})
	ReasonNoSignedVersion = declare(Reason{
		Name:    "NoSignedVersion",
		Meaning: "The signature does not name a version.",
		Cause:   "The signed reference has no tag.",
		Remedy: "Ask the provider of the release for a signature that names the version, and compare the digest with " +
			"the announcement of the release.",
		Inconclusive: true,
		CVO:          cvoAccepts,
	})
	ReasonNotVerified = declare(Reason{
		Name:         "NotVerified",
		Meaning:      "A release is used that was not verified.",
		Cause:        "The calling program is defective.",
		Remedy:       "Verify the release first.",
		Inconclusive: true,
	})
	ReasonNoSignature = declare(Reason{
		Name:    "NoSignature",
		Meaning: "No store has a signature of the release.",
		Cause:   "The digest is not the digest of a release, or its signatures were not mirrored.",
		Remedy: "Check the digest; in a disconnected cluster, mirror the signatures with the release (oc-mirror and " +
			"oc adm release mirror write them as a ConfigMap to apply).",
		CVO: cvoRejects,
	})
)
