package signature

import (
	"bufio"
	"bytes"
	"crypto"
	"encoding/binary"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"sigs.k8s.io/json"

	"github.com/openshift/update-preflight/signature/refusal"
)

// maxKeyringBytes bounds a keyring. OpenShift's keyrings are below 10 KiB.
const maxKeyringBytes = 1 << 20

// maxKeyPackets bounds the packets of a block; each costs about 1 KiB of memory.
// A key with its identities, subkeys and signatures has about ten.
const maxKeyPackets = 10_000

// Keyring is a set of public keys; a signature by any key satisfies it.
type Keyring struct {
	name string
	keys openpgp.EntityList
	// first is the number of keys of the first block, the only one that CVO reads.
	first int
	// unusable is the number of keys that the OpenPGP library does not support.
	unusable int
}

// ReadKeyring reads public keys, armored (all blocks) or binary, at most 1 MiB.
// Errors refer to the keyring by name. A keyring without a usable key, or with a
// block that is not a public key, is an *Error.
func ReadKeyring(name string, r io.Reader) (Keyring, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxKeyringBytes+1))
	if err != nil {
		return Keyring{}, refusal.New(refusal.ReasonInvalidKeyring, "read keyring %q: %w", name, err)
	}
	if len(data) > maxKeyringBytes {
		return Keyring{}, refusal.New(refusal.ReasonInvalidKeyring, "keyring %q is larger than %d bytes", name, maxKeyringBytes)
	}
	blocks := [][]byte{data}
	if bytes.Contains(data, []byte("-----BEGIN ")) {
		if blocks, err = unarmor(data); err != nil {
			return Keyring{}, refusal.New(refusal.ReasonInvalidKeyring, "keyring %q: %w", name, err)
		}
	}
	keyring := Keyring{name: name}
	for i, block := range blocks {
		if err = keyring.add(block); err != nil {
			return Keyring{}, refusal.New(refusal.ReasonInvalidKeyring, "keyring %q: %w", name, err)
		}
		if i == 0 {
			keyring.first = len(keyring.keys)
		}
	}
	switch {
	case len(keyring.keys) == 0 && keyring.unusable > 0:
		return Keyring{}, refusal.New(refusal.ReasonUnsupportedKeyring, "keyring %q has no supported key; unsupported keys: %d", name,
			keyring.unusable)
	case len(keyring.keys) == 0:
		return Keyring{}, refusal.New(refusal.ReasonInvalidKeyring, "keyring %q has no public key", name)
	}
	return keyring, nil
}

// add reads the keys of a block one by one: in a whole block, the library would
// attribute the parts of an unsupported key to the key before it.
func (k *Keyring) add(block []byte) error {
	separate, err := separateKeys(block)
	if err != nil {
		return err
	}
	for _, key := range separate {
		keys, err := openpgp.ReadKeyRing(bytes.NewReader(key))
		if err != nil {
			k.unusable++
			continue
		}
		k.keys = append(k.keys, keys...)
	}
	return nil
}

func separateKeys(block []byte) ([][]byte, error) {
	var keys [][]byte
	count := 0
	for r := packet.NewOpaqueReader(bytes.NewReader(block)); ; count++ {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if err != nil {
			return nil, fmt.Errorf("not OpenPGP keys: %w", err)
		}
		if count == maxKeyPackets {
			return nil, fmt.Errorf("more than %d packets", maxKeyPackets)
		}
		if p.Tag == tagPublicKey {
			keys = append(keys, nil)
		}
		if len(keys) == 0 {
			return nil, fmt.Errorf("packet of type %d before the first public key", p.Tag)
		}
		w := bytes.NewBuffer(keys[len(keys)-1])
		if err := p.Serialize(w); err != nil {
			return nil, err
		}
		keys[len(keys)-1] = w.Bytes()
	}
}

func unarmor(data []byte) ([][]byte, error) {
	var blocks [][]byte
	// The decoder continues on the same bufio.Reader.
	for r := bufio.NewReader(bytes.NewReader(data)); ; {
		block, err := armor.Decode(r)
		if errors.Is(err, io.EOF) && len(blocks) > 0 {
			return blocks, nil
		}
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", len(blocks)+1, err)
		}
		if block.Type != openpgp.PublicKeyType {
			return nil, fmt.Errorf("block %d is a %s, not a public key", len(blocks)+1, block.Type)
		}
		content, err := io.ReadAll(block.Body)
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", len(blocks)+1, err)
		}
		blocks = append(blocks, content)
	}
}

type signer struct {
	name    string
	warning string
	cvo     *bool
}

func (k Keyring) check(m *message, now time.Time) (signer, *refusal.Error) {
	failure := refusal.New(refusal.ReasonUnknownKey, "made by key %016X, which is not in the keyring", m.issuer)
	if k.unusable > 0 {
		failure = refusal.New(refusal.ReasonUnsupportedSignature,
			"made by key %016X, which is not among the supported keys of the keyring; unsupported keys: %d", m.issuer, k.unusable)
	}
	for _, key := range k.keys.KeysById(m.issuer) {
		if key.SelfSignature == nil || key.SelfSignature.FlagsValid && !key.SelfSignature.FlagSign {
			failure = refusal.New(refusal.ReasonUnknownKey, "made by key %016X, which is not a signing key", m.issuer)
			continue
		}
		if failure = m.verify(&key); failure == nil {
			failure = checkValidity(&key, m.signature, now)
		}
		cvo := k.readByCVO(&key, m.signature)
		if failure == nil {
			s := newSigner(&key, now)
			s.cvo = cvo
			return s, nil
		}
		failure.CVOAccepts = both(failure.CVOAccepts, cvo)
	}
	return signer{}, failure
}

func (m *message) verify(key *openpgp.Key) *refusal.Error {
	hash, err := m.signature.PrepareVerify()
	if err != nil {
		return refusal.New(refusal.ReasonUnsupportedSignature, "%w", err)
	}
	_, _ = m.signed(hash).Write(m.body) // never fails
	if err := key.PublicKey.VerifySignature(hash, m.signature); err != nil {
		return refusal.New(refusal.ReasonInvalidSignature, "key %016X did not sign this content; the signature or "+
			"the content was modified: %w",
			m.issuer, err)
	}
	if !bytes.HasPrefix(hash.Sum(nil), m.signature.HashTag[:]) {
		return refusal.New(refusal.ReasonInvalidSignature, "the hash prefix of the signature packet was modified")
	}
	if !isStrong(m.signature.Hash) {
		return refusal.New(refusal.ReasonWeakDigest, "signed with digest algorithm %s, which can be forged", m.signature.Hash)
	}
	// Only the issuer may be outside of the signed attributes.
	id := binary.BigEndian.AppendUint64([]byte{9, subpacketIssuer}, key.PublicKey.KeyId)
	fingerprint := append([]byte{22, subpacketFingerprint, 4}, key.PublicKey.Fingerprint...)
	rest := bytes.Replace(m.unhashed, id, nil, 1)
	if rest = bytes.Replace(rest, fingerprint, nil, 1); len(rest) > 0 {
		return refusal.New(refusal.ReasonUnsignedAttributes, "has %d bytes of unsigned attributes other than the issuer", len(rest))
	}
	return nil
}

// signed is the hash of the body: a signature of text does not cover the form of line
// ends, which the claim, as JSON, has between its tokens only.
func (m *message) signed(of hash.Hash) hash.Hash {
	if m.signature.SigType == packet.SigTypeText {
		return openpgp.NewCanonicalTextHash(of)
	}
	return of
}

func newSigner(key *openpgp.Key, now time.Time) signer {
	s := signer{name: fmt.Sprintf("%016X", key.PublicKey.KeyId)}
	if identity := key.Entity.PrimaryIdentity(); identity != nil {
		s.name += " (" + identity.Name + ")"
	}
	if isExpired(key, now) {
		s.warning = fmt.Sprintf("the key %s has expired; the cluster-version operator accepts expired keys", s.name)
	}
	return s
}

// readByCVO reports whether CVO's library can check a signature by key. Where it
// cannot, CVO may have accepted another signature: nil.
func (k Keyring) readByCVO(key *openpgp.Key, sig *packet.Signature) *bool {
	for i, entity := range k.keys {
		if entity == key.Entity && i >= k.first {
			return nil
		}
	}
	// CVO's library supports no other algorithms.
	keys := []packet.PublicKeyAlgorithm{packet.PubKeyAlgoRSA, packet.PubKeyAlgoRSASignOnly, packet.PubKeyAlgoECDSA}
	hashes := []crypto.Hash{crypto.SHA1, crypto.SHA224, crypto.SHA256, crypto.SHA384, crypto.SHA512}
	if slices.Contains(keys, sig.PubKeyAlgo) && slices.Contains(hashes, sig.Hash) {
		return new(true)
	}
	return nil
}

// claimType is the type of a simple-signing claim that OpenPGP signs.
const claimType = "atomic container signature"

// maxClaimText bounds the text of a claim repeated in a message, in bytes.
const maxClaimText = 512

// claim is the content of a signature (containers/image
// docs/containers-signature.5.md), with the fields that CVO reads (library-go
// pkg/verify/verify.go).
type claim struct {
	Critical struct {
		Type  string `json:"type"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
	} `json:"critical"`
	Optional struct {
		Creator   string `json:"creator"`
		Timestamp int64  `json:"timestamp"`
	} `json:"optional"`
}

// readClaim returns the reference that the signature claim gives to digest. It is
// parsed as CVO parses it, then checked for ambiguity.
func readClaim(body []byte, digest string) (string, *refusal.Error) {
	// CVO decodes with encoding/json, so the same rules apply here.
	decoder := stdjson.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	var c claim
	if err := decoder.Decode(&c); err != nil {
		return "", refusal.New(refusal.ReasonInvalidClaim, "the signed content is not a JSON signature claim: %q", truncate(err.Error()))
	}
	reference := c.Critical.Identity.Reference
	switch {
	case c.Critical.Type != claimType:
		return "", refusal.New(refusal.ReasonInvalidClaim, "the signature claim has type %q, not %q", truncate(c.Critical.Type), claimType)
	case reference == "":
		return "", refusal.New(refusal.ReasonInvalidClaim, "the signature claim names no image")
	case c.Critical.Image.Digest != digest:
		return "", refusal.New(refusal.ReasonWrongDigest, "the signature claim is for digest %q of %q", truncate(c.Critical.Image.Digest),
			truncate(reference))
	}
	if rest := bytes.TrimSpace(body[decoder.InputOffset():]); len(rest) > 0 {
		return "", refusal.New(refusal.ReasonTrailingData, "%d bytes follow the signature claim", len(rest))
	}
	return reference, checkFields(body)
}

// checkFields requires every field of the claim at most once and in its exact letter case.
func checkFields(body []byte) *refusal.Error {
	var c claim
	ambiguous, err := json.UnmarshalStrict(body, &c)
	switch {
	case err != nil:
		return refusal.New(refusal.ReasonInvalidClaim, "the signed content is not a JSON signature claim: %q", truncate(err.Error()))
	case len(ambiguous) == 0:
		return nil
	case strings.HasPrefix(ambiguous[0].Error(), "duplicate field"):
		return refusal.New(refusal.ReasonDuplicateField, "the signature claim has a duplicate field: %q",
			truncate(errors.Join(ambiguous...).Error()))
	}
	return refusal.New(refusal.ReasonFieldCase, "the signature claim has fields in unexpected letter case: %q",
		truncate(errors.Join(ambiguous...).Error()))
}

// truncate cuts text of a claim to maxClaimText bytes.
func truncate(text string) string {
	if len(text) > maxClaimText {
		return text[:maxClaimText] + "..."
	}
	return text
}

// maxClockSkew is how far in the future a signature may be dated.
const maxClockSkew = 10 * time.Minute

// isStrong is true for digest algorithms without known collisions.
func isStrong(hash crypto.Hash) bool {
	return slices.Contains([]crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512, crypto.SHA3_256, crypto.SHA3_512}, hash)
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
		return refusal.New(refusal.ReasonSignatureExpired, "the lifetime of the signature made %s has expired",
			sig.CreationTime.UTC().Format(time.RFC3339))
	case sig.CreationTime.Before(key.Entity.PrimaryKey.CreationTime), sig.CreationTime.Before(key.PublicKey.CreationTime):
		return refusal.New(refusal.ReasonKeyNotYetValid, "made %s by key %016X, which was created later",
			sig.CreationTime.UTC().Format(time.RFC3339), id)
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
