package signature

import (
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

	cvo *bool
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// CVOAccepts reports whether the cluster-version operator would accept the
// signatures rejected here; nil when that is unknown.
func (e *Error) CVOAccepts() *bool { return e.cvo }

// newError returns an Error for reason. The last error among args becomes the
// underlying error.
func newError(reason Reason, format string, args ...any) *Error {
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

// outcome is Unknown for reasons that leave the signature undecided, else Fail.
func outcome(reason Reason) preflight.Outcome {
	switch reason { //nolint:exhaustive // all other reasons are violations
	case ReasonNoKeys, ReasonNoStores, ReasonTrustUnavailable, ReasonInvalidKeyring, ReasonUnsupportedKeyring,
		ReasonInvalidStore, ReasonUnsupportedSignature, ReasonTimeout, ReasonStoreUnavailable, ReasonNoSignedVersion, ReasonNotVerified:
		return preflight.Unknown
	}
	return preflight.Fail
}

// remediation is the remedy for a reason.
func remediation(reason Reason) string {
	switch reason { //nolint:exhaustive // all other reasons share the last remedy
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
