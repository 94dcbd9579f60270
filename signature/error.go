package signature

import (
	"fmt"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// ReasonInvalidPullSpec is the reason of an Error about the pull spec itself:
// bad input rather than a bad release.
const ReasonInvalidPullSpec = "InvalidPullSpec"

const (
	reasonNoKeys               = "NoKeys"
	reasonNoStores             = "NoStores"
	reasonTrustUnavailable     = "TrustUnavailable"
	reasonInvalidKeyring       = "InvalidKeyring"
	reasonUnsupportedKeyring   = "UnsupportedKeyring"
	reasonInvalidStore         = "InvalidStore"
	reasonKeyRevoked           = "KeyRevoked"
	reasonInvalidSignature     = "InvalidSignature"
	reasonWrongDigest          = "WrongDigest"
	reasonInvalidClaim         = "InvalidClaim"
	reasonSignatureExpired     = "SignatureExpired"
	reasonNotYetValid          = "SignatureNotYetValid"
	reasonKeyNotYetValid       = "KeyNotYetValid"
	reasonWeakDigest           = "WeakDigest"
	reasonUnsupportedSignature = "UnsupportedSignature"
	reasonTimeout              = "Timeout"
	reasonStoreUnavailable     = "StoreUnavailable"
	reasonUnknownKey           = "UnknownKey"
	reasonMalformedSignature   = "MalformedSignature"
	reasonTooLarge             = "TooLarge"
	reasonTooManySignatures    = "TooManySignatures"
	reasonTrailingData         = "TrailingData"
	reasonDuplicateField       = "DuplicateField"
	reasonFieldCase            = "FieldCase"
	reasonUnsignedAttributes   = "UnsignedAttributes"
	reasonWrongRepository      = "WrongRepository"
	reasonWrongVersion         = "WrongVersion"
	reasonNoSignedVersion      = "NoSignedVersion"
	reasonNotVerified          = "NotVerified"
	reasonNoSignature          = "NoSignature"
)

// Error says why there is no proof.
type Error struct {
	// Reason is one CamelCase word, stable between releases.
	Reason string
	// Message is the cause in one sentence.
	Message string
	// Remediation says what to do about it.
	Remediation string
	// Outcome is Fail when the release is not signed properly, Unknown when
	// that could not be decided.
	Outcome preflight.Outcome
	// Details say what is wrong with each signature that was looked at, at most
	// maxDetails of them, in the order in which they were found.
	Details []string
	// Err is the error underneath, where there is one.
	Err error

	cvo *bool
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Unwrap is the error underneath.
func (e *Error) Unwrap() error { return e.Err }

// CVOAccepts says whether the cluster-version operator accepts what is refused
// here; nil when that could not be told.
func (e *Error) CVOAccepts() *bool { return e.cvo }

// newError makes an Error for reason, with everything that follows from it. An
// error among args is kept as the one underneath.
func newError(reason, format string, args ...any) *Error {
	e := &Error{
		Reason: reason, Message: fmt.Sprintf(format, args...),
		Remediation: remediation(reason), Outcome: outcome(reason), cvo: acceptance(reason),
	}
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			e.Err = err
		}
	}
	return e
}

// outcome tells "looked, and it is bad" from "could not tell".
func outcome(reason string) preflight.Outcome {
	switch reason {
	case reasonNoKeys, reasonNoStores, reasonTrustUnavailable, reasonInvalidKeyring, reasonUnsupportedKeyring,
		reasonInvalidStore, reasonUnsupportedSignature, reasonTimeout, reasonStoreUnavailable, reasonNoSignedVersion, reasonNotVerified:
		return preflight.Unknown
	}
	return preflight.Fail
}

// remediation says what to do about a failure.
func remediation(reason string) string {
	switch reason {
	case ReasonInvalidPullSpec:
		return "name the release by digest; `oc adm release info PULLSPEC -o 'jsonpath={.digest}'` prints the digest of a tag"
	case reasonNoKeys, reasonInvalidKeyring:
		return "check the verifier-public-key-* entries of ConfigMap openshift-config-managed/release-verification, or name keyrings with --keyring"
	case reasonNoStores, reasonInvalidStore:
		return "check spec.signatureStores of ClusterVersion version and the store-* entries of ConfigMap openshift-config-managed/release-verification, or name a store with --signature-store"
	case reasonTrustUnavailable:
		return "make sure that you may get and list ConfigMaps in namespace openshift-config-managed, and get ClusterVersion version and Proxy cluster, or name --keyring and --signature-store"
	case reasonUnsupportedSignature, reasonUnsupportedKeyring:
		return "ask the provider of the release for an OpenPGP version 4 signature of a supported key, or verify it with `gpg --verify`"
	case reasonTimeout, reasonStoreUnavailable:
		return "make sure that the store can be reached from here (proxy, firewall), or mirror the release's signatures and name the copy with --signature-store"
	case reasonNoSignature, reasonTooLarge:
		return "check the digest; in a disconnected cluster, mirror the release's signatures with it (oc-mirror and `oc adm release mirror` write them as a ConfigMap to apply)"
	case reasonNotYetValid:
		return "check the clock of this machine"
	case reasonTooManySignatures:
		return "remove from the store what the provider of the release did not put there, or name another copy with --signature-store"
	case reasonWrongRepository:
		return "do not use this image as a release; if its provider signs releases under that name, say so with --repository"
	case reasonNoSignedVersion:
		return "ask the provider of the release for a signature that names the version; compare the digest with the one that the release was announced with"
	case reasonNotVerified:
		return "verify the release first: oc preflight verify PULLSPEC"
	}
	return "do not use this copy of the release: get it and its signatures again from the provider's own registry and store, and report it if that does not help"
}
