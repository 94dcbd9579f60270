package signature

// acceptance reports whether CVO accepts what is rejected here for a reason; nil
// when the reason alone does not decide it. The sources are library-go pkg/verify
// and golang.org/x/crypto/openpgp, which it links.
func acceptance(reason Reason) *bool {
	switch reason { //nolint:exhaustive // no other reason decides it
	case ReasonTrailingData, ReasonDuplicateField, ReasonFieldCase, ReasonWeakDigest, ReasonNotYetValid, ReasonKeyNotYetValid,
		ReasonUnsignedAttributes, ReasonWrongRepository, ReasonWrongVersion, ReasonNoSignedVersion:
		return new(true)
	case ReasonNoSignature, ReasonUnknownKey, ReasonKeyRevoked, ReasonInvalidSignature, ReasonSignatureExpired, ReasonWrongDigest,
		ReasonInvalidClaim, ReasonTooManySignatures:
		return new(false)
	}
	return nil
}

// both is the conjunction of two conditions; nil means unknown.
func both(a, b *bool) *bool {
	switch {
	case a != nil && !*a:
		return a
	case b != nil && !*b:
		return b
	case a == nil:
		return nil
	}
	return b
}

// either is the disjunction of two conditions; nil means unknown.
func either(a, b *bool) *bool {
	switch {
	case a != nil && *a:
		return a
	case b != nil && *b:
		return b
	case a == nil:
		return nil
	}
	return b
}
