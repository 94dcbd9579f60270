// Package refusal answers: why is the signature of a release not accepted?
//
// [New] makes an [Error] for a [Reason], which decides the remedy, whether the release is not
// signed properly or its verification was inconclusive, and what the cluster-version operator
// (CVO) would decide.
package refusal

import (
	"errors"
	"fmt"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Error reports that a release could not be verified.
type Error struct {
	// Reason is the kind of error.
	Reason Reason
	// Message is the cause in one sentence.
	Message string
	// Remediation is an imperative sentence; it names no option of a program.
	Remediation string
	// Outcome is Fail when the release is not signed properly, Unknown when the
	// verification was inconclusive.
	Outcome preflight.Outcome
	// Details are the violations of the signatures that were checked, in search
	// order, at most maxDetails.
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

// New returns an Error for reason. The format is that of [fmt.Errorf]: an error for the verb %w
// becomes the underlying error.
func New(reason Reason, format string, args ...any) *Error {
	text := fmt.Errorf(format, args...)
	return &Error{
		Reason: reason, Message: text.Error(), Err: errors.Unwrap(text),
		Remediation: remediation(reason), Outcome: outcome(reason), CVOAccepts: acceptance(reason),
	}
}

// outcome is Unknown for reasons that leave the signature undecided, else Fail.
func outcome(reason Reason) preflight.Outcome {
	switch reason {
	case ReasonNoKeys, ReasonNoStores, ReasonTrustUnavailable, ReasonInvalidKeyring, ReasonUnsupportedKeyring,
		ReasonInvalidStore, ReasonUnsupportedSignature, ReasonTimeout, ReasonStoreUnavailable, ReasonNoSignedVersion, ReasonNotVerified:
		return preflight.Unknown
	}
	return preflight.Fail
}

// remediation is the remedy for a reason.
func remediation(reason Reason) string {
	switch reason {
	case ReasonInvalidPullSpec:
		return "Name the release by digest; oc adm release info PULLSPEC -o 'jsonpath={.digest}' prints the digest of a tag."
	case ReasonNoKeys, ReasonInvalidKeyring:
		return "Check the verifier-public-key-* entries of ConfigMap openshift-config-managed/release-verification, or provide keyrings for this run."
	case ReasonNoStores, ReasonInvalidStore:
		return "Check spec.signatureStores of ClusterVersion version and the store-* entries of ConfigMap openshift-config-managed/release-verification, or provide a signature store for this run."
	case ReasonTrustUnavailable:
		return "Obtain get and list on ConfigMaps in namespace openshift-config-managed, and get on ClusterVersion version and Proxy cluster, or provide keyrings and signature stores for this run."
	case ReasonUnsupportedSignature, ReasonUnsupportedKeyring:
		return "Ask the provider of the release for an OpenPGP version 4 signature by a supported key."
	case ReasonTimeout, ReasonStoreUnavailable:
		return "Make the signature store reachable from here (proxy, firewall), or mirror the signatures of the release and provide the mirrored signature store for this run."
	case ReasonNoSignature, ReasonTooLarge:
		return "Check the digest; in a disconnected cluster, mirror the signatures with the release (oc-mirror and oc adm release mirror write them as a ConfigMap to apply)."
	case ReasonNotYetValid:
		return "Check the clock of this machine."
	case ReasonTooManySignatures:
		return "Remove from the signature store what the provider of the release did not publish, or provide another signature store for this run."
	case ReasonWrongRepository:
		return "Do not use this image as a release; if its provider signs releases under that name, allow the repository for this run."
	case ReasonNoSignedVersion:
		return "Ask the provider of the release for a signature that names the version, and compare the digest with the announcement of the release."
	case ReasonNotVerified:
		return "Verify the release first."
	}
	return "Do not use this copy of the release: get it and its signatures again from the registry and signature store of its provider, and report the violation to the provider if it persists."
}

// acceptance reports whether CVO accepts what is rejected here for a reason; nil
// when the reason alone does not decide it. The sources are library-go pkg/verify
// and golang.org/x/crypto/openpgp, which it links.
func acceptance(reason Reason) *bool {
	switch reason {
	case ReasonTrailingData, ReasonDuplicateField, ReasonFieldCase, ReasonWeakDigest, ReasonNotYetValid, ReasonKeyNotYetValid,
		ReasonUnsignedAttributes, ReasonWrongRepository, ReasonWrongVersion, ReasonNoSignedVersion:
		return new(true)
	case ReasonNoSignature, ReasonUnknownKey, ReasonKeyRevoked, ReasonInvalidSignature, ReasonSignatureExpired, ReasonWrongDigest,
		ReasonInvalidClaim, ReasonTooManySignatures:
		return new(false)
	}
	return nil
}
