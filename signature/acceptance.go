package signature

import (
	"crypto"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// acceptance says whether CVO accepts what is refused for a reason; nil when
// the reason alone does not tell. The sources are library-go pkg/verify and
// golang.org/x/crypto/openpgp, which it links.
func acceptance(reason string) *bool {
	switch reason {
	case reasonTrailingData, reasonDuplicateField, reasonFieldCase, reasonWeakDigest, reasonNotYetValid, reasonKeyNotYetValid,
		reasonUnsignedAttributes, reasonWrongRepository, reasonWrongVersion, reasonNoSignedVersion:
		return new(true)
	case reasonNoSignature, reasonUnknownKey, reasonKeyRevoked, reasonInvalidSignature, reasonSignatureExpired, reasonWrongDigest,
		reasonInvalidClaim, reasonTooManySignatures:
		return new(false)
	}
	return nil
}

// both is what comes of two conditions that must both hold.
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

// either is what comes of two conditions one of which is enough.
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

// readByCVO tells whether CVO's library can check a signature of key. Where it
// cannot, CVO may have accepted another signature: nil.
func (k Keyring) readByCVO(key *openpgp.Key, sig *packet.Signature) *bool {
	for i, entity := range k.keys {
		if entity == key.Entity && i >= k.first {
			return nil
		}
	}
	switch sig.PubKeyAlgo { //nolint:exhaustive // everything that is not named is not known to CVO's library
	case packet.PubKeyAlgoRSA, packet.PubKeyAlgoRSASignOnly, packet.PubKeyAlgoECDSA:
	default:
		return nil
	}
	switch sig.Hash { //nolint:exhaustive // everything that is not named is not known to CVO's library
	case crypto.SHA1, crypto.SHA224, crypto.SHA256, crypto.SHA384, crypto.SHA512:
		return new(true)
	}
	return nil
}
