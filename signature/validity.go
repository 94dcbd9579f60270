package signature

import (
	"crypto"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// maxClockSkew is how far in the future a signature may be dated.
const maxClockSkew = 10 * time.Minute

// isStrong is true for digests that nobody can forge.
func isStrong(hash crypto.Hash) bool {
	switch hash { //nolint:exhaustive // everything that is not named is not good enough
	case crypto.SHA256, crypto.SHA384, crypto.SHA512, crypto.SHA3_256, crypto.SHA3_512:
		return true
	}
	return false
}

// checkValidity looks at everything that can end the life of a good signature,
// but for the end of the key's own life: clusters keep the keyring that they
// were installed with when the provider prolongs a key. The library's own check
// cannot be used: it refuses a key that has expired, and never gets to see that
// the signature has, too.
func checkValidity(key *openpgp.Key, sig *packet.Signature, now time.Time) *Error {
	primary, identity := key.Entity.PrimarySelfSignature()
	signatures := []*packet.Signature{sig, primary, key.SelfSignature, key.SelfSignature.EmbeddedSignature}
	for _, s := range signatures {
		if notation := unknownNotation(s); notation != "" {
			return newError(reasonUnsupportedSignature, "has the critical notation %q, which is not known", notation)
		}
	}
	id := key.PublicKey.KeyId
	switch {
	case key.Entity.Revoked(now), key.Revoked(now), identity != nil && identity.Revoked(now):
		return newError(reasonKeyRevoked, "made by key %016X, which is revoked", id)
	case sig.CreationTime.After(now.Add(maxClockSkew)):
		return newError(reasonNotYetValid, "dated %s, in the future: by the clock that counts it is %s",
			sig.CreationTime.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case isOver(sig, now):
		return newError(reasonSignatureExpired, "expired; it was made %s", sig.CreationTime.UTC().Format(time.RFC3339))
	case sig.CreationTime.Before(key.Entity.PrimaryKey.CreationTime), sig.CreationTime.Before(key.PublicKey.CreationTime):
		return newError(reasonKeyNotYetValid, "made %s by key %016X, which was made later", sig.CreationTime.UTC().Format(time.RFC3339), id)
	}
	return nil
}

// isExpired is true when the key, or the primary key above it, is not valid at a
// time.
func isExpired(key *openpgp.Key, at time.Time) bool {
	primary, _ := key.Entity.PrimarySelfSignature()
	return key.Entity.PrimaryKey.KeyExpired(primary, at) || key.PublicKey.KeyExpired(key.SelfSignature, at)
}

// isOver is true when a signature's own lifetime has ended.
func isOver(sig *packet.Signature, now time.Time) bool {
	if sig.SigLifetimeSecs == nil || *sig.SigLifetimeSecs == 0 {
		return false
	}
	return now.After(sig.CreationTime.Add(time.Duration(*sig.SigLifetimeSecs) * time.Second))
}

// unknownNotation is the first critical notation of sig; none are known.
func unknownNotation(sig *packet.Signature) string {
	if sig == nil {
		return ""
	}
	for _, notation := range sig.Notations {
		if notation.IsCritical {
			return notation.Name
		}
	}
	return ""
}
