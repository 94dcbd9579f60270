package signature

import (
	"crypto"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

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

// readByCVO reports whether CVO's library can check a signature by key. Where it
// cannot, CVO may have accepted another signature: nil.
func (k Keyring) readByCVO(key *openpgp.Key, sig *packet.Signature) *bool {
	for i, entity := range k.keys {
		if entity == key.Entity && i >= k.first {
			return nil
		}
	}
	switch sig.PubKeyAlgo { //nolint:exhaustive // CVO's library supports no other algorithm
	case packet.PubKeyAlgoRSA, packet.PubKeyAlgoRSASignOnly, packet.PubKeyAlgoECDSA:
	default:
		return nil
	}
	switch sig.Hash { //nolint:exhaustive // CVO's library supports no other algorithm
	case crypto.SHA1, crypto.SHA224, crypto.SHA256, crypto.SHA384, crypto.SHA512:
		return new(true)
	}
	return nil
}
