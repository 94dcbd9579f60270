package release

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// Signer is a key that signs releases.
type Signer struct {
	entity *openpgp.Entity
}

// NewSigner creates a key (RSA 2048) for name <name@example.com>.
func NewSigner(name string) (*Signer, error) {
	return NewSignerWith(name, nil)
}

// NewSignerWith creates a key with the algorithm, the lifetime and the creation time in
// config.
func NewSignerWith(name string, config *packet.Config) (*Signer, error) {
	entity, err := openpgp.NewEntity(name, "", name+"@example.com", config)
	if err != nil {
		return nil, fmt.Errorf("make a key for %q: %w", name, err)
	}
	return &Signer{entity: entity}, nil
}

// Entity is the key, including its private part, for tests that revoke it or sign other
// messages.
func (s *Signer) Entity() *openpgp.Entity { return s.entity }

// PublicKey returns the armored public key, as in a verifier-public-key-* entry.
func (s *Signer) PublicKey() ([]byte, error) {
	var buffer bytes.Buffer
	w, err := armor.Encode(&buffer, openpgp.PublicKeyType, nil)
	if err != nil {
		return nil, err
	}
	if err := s.entity.Serialize(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// claim is the content of a simple signature (containers/image
// docs/containers-signature.5.md).
type claim struct {
	Critical critical `json:"critical"`
	Optional optional `json:"optional"`
}

type critical struct {
	Type     string            `json:"type"`
	Image    map[string]string `json:"image"`
	Identity map[string]string `json:"identity"`
}

type optional struct {
	Creator   string `json:"creator"`
	Timestamp int64  `json:"timestamp"`
}

// Sign signs the claim that the digest of pullSpec (repository@sha256:…) is the image
// with the reference, e.g. quay.io/openshift-release-dev/ocp-release:4.20.1-x86_64. The
// result is a binary OpenPGP message like that of `gpg --sign`.
func (s *Signer) Sign(pullSpec, reference string) ([]byte, error) {
	_, digest, ok := strings.Cut(pullSpec, "@")
	if !ok {
		return nil, fmt.Errorf("sign %q: no digest", pullSpec)
	}
	message, err := json.Marshal(claim{
		Critical: critical{
			Type:     "atomic container signature",
			Image:    map[string]string{"docker-manifest-digest": digest},
			Identity: map[string]string{"docker-reference": reference},
		},
		Optional: optional{Creator: "update-preflight test/release", Timestamp: time.Now().Unix()},
	})
	if err != nil {
		return nil, fmt.Errorf("sign %q: %w", pullSpec, err)
	}
	return s.SignMessage(message, nil)
}

// SignMessage signs any message; config has digest, time and lifetime.
func (s *Signer) SignMessage(message []byte, config *packet.Config) ([]byte, error) {
	var buffer bytes.Buffer
	w, err := openpgp.Sign(&buffer, s.entity, &openpgp.FileHints{IsBinary: true}, config)
	if err != nil {
		return nil, fmt.Errorf("sign a message: %w", err)
	}
	if _, err := w.Write(message); err != nil {
		return nil, fmt.Errorf("sign a message: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("sign a message: %w", err)
	}
	return buffer.Bytes(), nil
}
