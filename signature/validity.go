package signature

import (
	"crypto"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/openshift/update-preflight/signature/refusal"
)

// maxClockSkew is how far in the future a signature may be dated.
const maxClockSkew = 10 * time.Minute

// isStrong is true for digest algorithms without known collisions.
func isStrong(hash crypto.Hash) bool {
	switch hash { //nolint:exhaustive // no other algorithm is strong enough
	case crypto.SHA256, crypto.SHA384, crypto.SHA512, crypto.SHA3_256, crypto.SHA3_512:
		return true
	}
	return false
}

// checkValidity checks everything that can invalidate a signature, except the
// expiration of the key: clusters keep the keyring that they were installed with
// when the provider extends a key. The library's own check does not fit: it
// rejects an expired key before it checks the lifetime of the signature.
func checkValidity(key *openpgp.Key, sig *packet.Signature, now time.Time) *refusal.Error {
	primary, identity := key.Entity.PrimarySelfSignature()
	signatures := []*packet.Signature{sig, primary, key.SelfSignature, key.SelfSignature.EmbeddedSignature}
	for _, s := range signatures {
		if notation := unknownNotation(s); notation != "" {
			return refusal.New(refusal.ReasonUnsupportedSignature, "has the unsupported critical notation %q", notation)
		}
	}
	id := key.PublicKey.KeyId
	switch {
	case key.Entity.Revoked(now), key.Revoked(now), identity != nil && identity.Revoked(now):
		return refusal.New(refusal.ReasonKeyRevoked, "made by key %016X, which is revoked", id)
	case sig.CreationTime.After(now.Add(maxClockSkew)):
		return refusal.New(refusal.ReasonNotYetValid, "dated %s, in the future; the current time is %s",
			sig.CreationTime.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case isOver(sig, now):
		return refusal.New(refusal.ReasonSignatureExpired, "the lifetime of the signature made %s has ended", sig.CreationTime.UTC().Format(time.RFC3339))
	case sig.CreationTime.Before(key.Entity.PrimaryKey.CreationTime), sig.CreationTime.Before(key.PublicKey.CreationTime):
		return refusal.New(refusal.ReasonKeyNotYetValid, "made %s by key %016X, which was created later", sig.CreationTime.UTC().Format(time.RFC3339), id)
	}
	return nil
}

// isExpired is true when the key or its primary key has expired at a time.
func isExpired(key *openpgp.Key, at time.Time) bool {
	primary, _ := key.Entity.PrimarySelfSignature()
	return key.Entity.PrimaryKey.KeyExpired(primary, at) || key.PublicKey.KeyExpired(key.SelfSignature, at)
}

// isOver is true when the lifetime of the signature has ended.
func isOver(sig *packet.Signature, now time.Time) bool {
	if sig.SigLifetimeSecs == nil || *sig.SigLifetimeSecs == 0 {
		return false
	}
	return now.After(sig.CreationTime.Add(time.Duration(*sig.SigLifetimeSecs) * time.Second))
}

// unknownNotation is the first critical notation of sig; none is supported.
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
