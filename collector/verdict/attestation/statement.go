// Package attestation answers: what was decided about this cluster, so that others can verify it?
//
// [Of] makes the statement of a report, [Sign] its signed envelope, and [Verify] reads an
// envelope back. It is pure: texts, keys and times go in.
//
// The statement is an in-toto Statement v1 in a DSSE envelope, whatever the decision is. [Encode],
// [Open] and [Content] are those of statements with other predicates, too.
package attestation

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
)

const (
	// PredicateType is the type of the predicate that states a verdict.
	PredicateType = "https://preflight.openshift.io/verdict/v1alpha1"
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
)

// Predicate is the verdict on one update of one cluster: the head of its report, without
// the findings. Readers ignore fields that they do not know.
type Predicate struct {
	Run     report.Run      `json:"run"`
	Cluster report.Cluster  `json:"cluster"`
	Target  report.Target   `json:"target"`
	Verdict verdict.Verdict `json:"verdict"`
}

// statement is an in-toto Statement v1 (in-toto/attestation, spec/v1/statement.md).
type statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     any       `json:"predicate"`
}

// Subject is what a statement is about. It is matched by its digest alone.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Encode makes the in-toto statement with a predicate of that type, in JSON.
func Encode(subjects []Subject, predicateType string, predicate any) ([]byte, error) {
	return json.Marshal(statement{Type: statementType, Subject: subjects, PredicateType: predicateType, Predicate: predicate})
}

// Of makes the statement of a report, in JSON. Its subjects are the release, by the digest of its
// pull spec and, if that is an index, by that of the image for the architecture of the cluster, and
// the cluster, by the SHA-256 of its ID. A report without release or cluster is an error.
func Of(decided report.Report) ([]byte, error) {
	subjects, err := subjectsOf(decided.Cluster.ID, decided.Target)
	if err != nil {
		return nil, err
	}
	return Encode(subjects, PredicateType, Predicate{Run: decided.Run, Cluster: decided.Cluster, Target: decided.Target, Verdict: decided.Verdict})
}

// Subjects are a release, by the digest of its pull spec, and a cluster, by the SHA-256 of its ID
// (spec.clusterID of ClusterVersion). A pull spec without digest, or no ID, is an error.
func Subjects(clusterID, image string) ([]Subject, error) {
	if clusterID == "" {
		return nil, errors.New("the report has no cluster ID (spec.clusterID of ClusterVersion), so its statement has no subject")
	}
	release, err := releaseDigest(image)
	if err != nil {
		return nil, err
	}
	cluster := sha256.Sum256([]byte(clusterID))
	return []Subject{
		{Name: "release", Digest: map[string]string{release.Algorithm().String(): release.Encoded()}},
		{Name: "cluster/" + clusterID, Digest: map[string]string{digest.SHA256.String(): hex.EncodeToString(cluster[:])}},
	}, nil
}

func subjectsOf(clusterID string, target report.Target) ([]Subject, error) {
	subjects, err := Subjects(clusterID, target.Image)
	if err != nil {
		return nil, err
	}
	if target.Child == "" {
		return subjects, nil
	}
	child, err := digest.Parse(target.Child)
	if err != nil {
		return nil, fmt.Errorf("the image for the architecture of the cluster has no digest: %w", err)
	}
	return append(subjects, Subject{Name: "release for the architecture of the cluster", Digest: map[string]string{child.Algorithm().String(): child.Encoded()}}), nil
}

func releaseDigest(image string) (digest.Digest, error) {
	_, text, _ := strings.Cut(image, "@")
	found, err := digest.Parse(text)
	if err != nil {
		return "", fmt.Errorf("the target %q has no digest, so its statement has no subject: %w", image, err)
	}
	return found, nil
}

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
