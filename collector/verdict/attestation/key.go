package attestation

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
)

// MaxKey bounds the text of a key, in bytes.
const MaxKey = 64 << 10

// MaxEnvelope bounds a signed statement, in bytes: a verdict with thousands of names that block fits in.
const MaxEnvelope = 4 << 20

var errKeyType = errors.New("it is neither an ECDSA P-256 nor an Ed25519 key")

// ErrPassword means that a private key is encrypted and no password was given.
var ErrPassword = errors.New("the private key is encrypted, and there is no password for it")

// PrivateKey reads a private key in PEM: PKCS #8 or SEC 1, or encrypted as cosign writes it.
// A nil password is none.
func PrivateKey(text, password []byte) (signature.Signer, error) {
	block, err := decode(text)
	if err != nil {
		return nil, err
	}
	encrypted := strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != ""
	if encrypted && password == nil {
		return nil, ErrPassword
	}
	key, err := cryptoutils.UnmarshalPEMToPrivateKey(text, func(bool) ([]byte, error) { return password, nil })
	if err != nil {
		return nil, fmt.Errorf("this is no private key that can be read: %w", err)
	}
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		if key.Curve == elliptic.P256() {
			return signature.LoadECDSASigner(key, crypto.SHA256)
		}
	case ed25519.PrivateKey:
		return signature.LoadED25519Signer(key)
	}
	return nil, errKeyType
}

// PublicKey reads a public key in PEM.
func PublicKey(text []byte) (signature.Verifier, error) {
	block, err := decode(text)
	if err != nil {
		return nil, err
	}
	if strings.Contains(block.Type, "PRIVATE KEY") {
		return nil, errors.New("this is a private key, but the public one verifies")
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	if err != nil {
		return nil, fmt.Errorf("this is no public key that can be read: %w", err)
	}
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() {
			return signature.LoadECDSAVerifier(key, crypto.SHA256)
		}
	case ed25519.PublicKey:
		return signature.LoadED25519Verifier(key)
	}
	return nil, errKeyType
}

func decode(text []byte) (*pem.Block, error) {
	if len(text) > MaxKey {
		return nil, fmt.Errorf("this is no key: it is larger than %d KiB", MaxKey>>10)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("this is no key: it has no PEM block")
	}
	return block, nil
}

// Sign makes the DSSE envelope of a statement, in JSON, with one signature. It is an error if
// the envelope is larger than MaxEnvelope.
func Sign(stated []byte, key signature.Signer) ([]byte, error) {
	envelope, err := dsse.WrapSigner(key, payloadType).SignMessage(bytes.NewReader(stated))
	if err != nil {
		return nil, fmt.Errorf("could not sign the statement: %w", err)
	}
	if len(envelope) > MaxEnvelope {
		return nil, fmt.Errorf("the signed statement has %d bytes, but %d are the limit", len(envelope), MaxEnvelope)
	}
	return envelope, nil
}
