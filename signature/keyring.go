package signature

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// maxKeyringBytes bounds a keyring. Those of OpenShift are below 10 KiB.
const maxKeyringBytes = 1 << 20

// maxKeyPackets bounds the packets of a block, each of which costs the library
// a kilobyte. A key with its names, subkeys and signatures has about ten.
const maxKeyPackets = 10_000

// Keyring is a set of public keys any of which may sign.
type Keyring struct {
	name string
	keys openpgp.EntityList
	// first counts the keys of the first block, the only one that CVO reads.
	first int
	// unusable counts keys that the OpenPGP library does not know or refuses.
	unusable int
}

// ReadKeyring reads public keys, armored (all blocks) or binary, at most 1 MiB.
// The name is how errors call the keyring. A keyring without any usable key, or
// with a block that is not a public key, is an *Error.
func ReadKeyring(name string, r io.Reader) (Keyring, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxKeyringBytes+1))
	if err != nil {
		return Keyring{}, newError(reasonInvalidKeyring, "read keyring %q: %v", name, err)
	}
	if len(data) > maxKeyringBytes {
		return Keyring{}, newError(reasonInvalidKeyring, "keyring %q is larger than %d bytes", name, maxKeyringBytes)
	}
	blocks := [][]byte{data}
	if bytes.Contains(data, []byte("-----BEGIN ")) {
		if blocks, err = unarmor(data); err != nil {
			return Keyring{}, newError(reasonInvalidKeyring, "keyring %q: %v", name, err)
		}
	}
	keyring := Keyring{name: name}
	for i, block := range blocks {
		if err = keyring.add(block); err != nil {
			return Keyring{}, newError(reasonInvalidKeyring, "keyring %q: %v", name, err)
		}
		if i == 0 {
			keyring.first = len(keyring.keys)
		}
	}
	switch {
	case len(keyring.keys) == 0 && keyring.unusable > 0:
		return Keyring{}, newError(reasonUnsupportedKeyring, "keyring %q has no key that can be used, and %d that cannot", name, keyring.unusable)
	case len(keyring.keys) == 0:
		return Keyring{}, newError(reasonInvalidKeyring, "keyring %q has no public key", name)
	}
	return keyring, nil
}

// add reads the keys of a block one by one: given them all at once, the library
// takes the parts of a key that it does not know for parts of the one before.
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

// separateKeys cuts a block where its keys start.
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
			return nil, fmt.Errorf("a packet of type %d where a public key should start", p.Tag)
		}
		w := bytes.NewBuffer(keys[len(keys)-1])
		if err := p.Serialize(w); err != nil {
			return nil, err
		}
		keys[len(keys)-1] = w.Bytes()
	}
}

// unarmor returns the contents of all armored blocks.
func unarmor(data []byte) ([][]byte, error) {
	var blocks [][]byte
	// The decoder goes on with a bufio.Reader where it stopped.
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

// signer is the key that signed.
type signer struct {
	name    string
	warning string
	cvo     *bool
}

// check proves that a key of the keyring signed the message.
func (k Keyring) check(m *message, now time.Time) (signer, *Error) {
	failure := newError(reasonUnknownKey, "made by key %016X, which is not in the keyring", m.issuer)
	if k.unusable > 0 {
		failure = newError(reasonUnsupportedSignature, "made by key %016X, which may be one of the keys of the keyring (%d) that cannot be used", m.issuer, k.unusable)
	}
	for _, key := range k.keys.KeysById(m.issuer) {
		if key.SelfSignature == nil || key.SelfSignature.FlagsValid && !key.SelfSignature.FlagSign {
			failure = newError(reasonUnknownKey, "made by key %016X, which is not a key for signing", m.issuer)
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
		failure.cvo = both(failure.cvo, cvo)
	}
	return signer{}, failure
}

// verify proves that key signed the message.
func (m *message) verify(key *openpgp.Key) *Error {
	hash, err := m.signature.PrepareVerify()
	if err != nil {
		return newError(reasonUnsupportedSignature, "%v", err)
	}
	_, _ = hash.Write(m.body) // never fails
	if err := key.PublicKey.VerifySignature(hash, m.signature); err != nil {
		return newError(reasonInvalidSignature, "not made by key %016X over this content, one of them was changed: %v", m.issuer, err)
	}
	if !bytes.HasPrefix(hash.Sum(nil), m.signature.HashTag[:]) {
		return newError(reasonInvalidSignature, "its first bytes of the digest were changed")
	}
	if !isStrong(m.signature.Hash) {
		return newError(reasonWeakDigest, "signed over a %s digest, which can be forged", m.signature.Hash)
	}
	// What may stand outside of what is signed is who signed it.
	id := binary.BigEndian.AppendUint64([]byte{9, subpacketIssuer}, key.PublicKey.KeyId)
	fingerprint := append([]byte{22, subpacketFingerprint, 4}, key.PublicKey.Fingerprint...)
	rest := bytes.Replace(m.unhashed, id, nil, 1)
	if rest = bytes.Replace(rest, fingerprint, nil, 1); len(rest) > 0 {
		return newError(reasonUnsignedAttributes, "has %d bytes of attributes that nobody signed, beside who signed it", len(rest))
	}
	return nil
}

func newSigner(key *openpgp.Key, now time.Time) signer {
	s := signer{name: fmt.Sprintf("%016X", key.PublicKey.KeyId)}
	if identity := key.Entity.PrimaryIdentity(); identity != nil {
		s.name += " (" + identity.Name + ")"
	}
	if isExpired(key, now) {
		s.warning = fmt.Sprintf("the key %s has expired, which the cluster-version operator does not mind", s.name)
	}
	return s
}
