// Package attestation answers: what was decided about this cluster, so that others can verify it?
//
// [Of] returns the statement of a report, [Sign] its signed envelope, and [Verify] reads an envelope back. It is
// pure: its input is texts, keys and times.
//
// The statement is an in-toto Statement v1 in a DSSE envelope, whatever the decision is. [Encode], [Open] and
// [Content] also handle statements with other predicates.
package attestation

import (
	"bytes"
	"cmp"
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
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	kjson "sigs.k8s.io/json"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// PredicateType is the type of a predicate that contains a verdict.
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

// Subject is the subject of a statement. It is matched by its digest alone.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Encode makes the in-toto statement with a predicate of that type, in JSON.
func Encode(subjects []Subject, predicateType string, predicate any) ([]byte, error) {
	return json.Marshal(statement{Type: statementType, Subject: subjects, PredicateType: predicateType, Predicate: predicate})
}

// Of returns the statement of a report, in JSON. Its subjects are the release, by the digest of its pull spec and,
// if that is an index, by the digest of the image for the architecture of the cluster, and the cluster, by the
// SHA-256 of its ID. A report without release or cluster is an error.
func Of(decided report.Report) ([]byte, error) {
	subjects, err := subjectsOf(decided.Cluster.ID, decided.Target)
	if err != nil {
		return nil, err
	}
	return Encode(subjects, PredicateType, Predicate{
		Run: decided.Run, Cluster: decided.Cluster, Target: decided.Target,
		Verdict: decided.Verdict,
	})
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
	return append(subjects, Subject{
		Name:   "release for the architecture of the cluster",
		Digest: map[string]string{child.Algorithm().String(): child.Encoded()},
	}), nil
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
var ErrPassword = errors.New("the private key is encrypted, and no password was given")

// PrivateKey reads a private key in PEM: PKCS #8 or SEC 1, or encrypted as cosign writes it. A nil password means
// none.
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
		return nil, fmt.Errorf("this is not a readable private key: %w", err)
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
		return nil, errors.New("this is a private key, but verification needs the public key")
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	if err != nil {
		return nil, fmt.Errorf("this is not a readable public key: %w", err)
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
		return nil, fmt.Errorf("this is not a key: it is larger than %d KiB", MaxKey>>10)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("this is not a key: it contains no PEM block")
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
		return nil, fmt.Errorf("the signed statement is %d bytes long, but %d are the limit", len(envelope), MaxEnvelope)
	}
	return envelope, nil
}

// envelope is a DSSE envelope (secure-systems-lab/dsse, envelope.md).
type envelope struct {
	PayloadType string              `json:"payloadType"`
	Payload     string              `json:"payload"`
	Signatures  []envelopeSignature `json:"signatures"`
}

type envelopeSignature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"`
}

// content is an in-toto statement whose predicate is a verdict.
type content struct {
	subjects  []Subject
	predicate json.RawMessage
}

// missing is the name of the first of these subjects that the statement does not have; empty for none.
func (c content) missing(expected []Subject) string {
	for _, each := range expected {
		if !slices.ContainsFunc(c.subjects, func(other Subject) bool { return maps.Equal(other.Digest, each.Digest) }) {
			return each.Name
		}
	}
	return ""
}

// open returns the verdict that the key signed.
func open(text []byte, key signature.Verifier) (Predicate, *problem) {
	payload, problem := verified(text, key)
	if problem != nil {
		return Predicate{}, problem
	}
	stated, problem := contentOf(payload)
	if problem != nil {
		return Predicate{}, problem
	}
	var decided Predicate
	if err := unmarshal(stated.predicate, &decided); err != nil {
		return Predicate{}, forged(reasonStatement, "the predicate of the statement is not a verdict: %s", words.External(err.Error()))
	}
	return decided, decided.check(stated)
}

// enveloped decodes an envelope.
func enveloped(text []byte) (envelope, *problem) {
	if len(text) > MaxEnvelope {
		return envelope{}, forged(reasonTooLarge, "this is not a signed statement: it is larger than %d MiB", MaxEnvelope>>20)
	}
	var found envelope
	if err := unmarshal(text, &found); err != nil {
		return envelope{}, forged(reasonEnvelope, "this is not a DSSE envelope: %s", words.External(err.Error()))
	}
	switch {
	case found.PayloadType != payloadType:
		return envelope{}, forged(reasonPayloadType, "the payload type of the envelope is %q, not %q", words.External(found.PayloadType),
			payloadType)
	case len(found.Signatures) != 1:
		return envelope{}, forged(reasonSignatures, "the envelope has %s, not one", words.Count(len(found.Signatures), "signature"))
	}
	return found, nil
}

// verified is the payload that the key signed.
func verified(text []byte, key signature.Verifier) ([]byte, *problem) {
	found, problem := enveloped(text)
	if problem != nil {
		return nil, problem
	}
	// The library ignores the case of names: it gets what was decoded here.
	again, err := json.Marshal(found)
	if err != nil {
		return nil, forged(reasonEnvelope, "this is not a DSSE envelope: %s", words.External(err.Error()))
	}
	var payload []byte
	wrapped := dsse.WrapVerifier(key, dsse.WithExpectedPayloadType(payloadType), dsse.WithDecodedPayload(&payload))
	if err := wrapped.VerifySignature(bytes.NewReader(again), nil); err != nil {
		return nil, forged(reasonSignature,
			"this key did not make the signature for this content: "+
				"another key signed it, or it was changed (%s)", words.External(err.Error()))
	}
	return payload, nil
}

func contentOf(payload []byte) (content, *problem) {
	var stated struct {
		Type          string          `json:"_type"`
		Subject       []Subject       `json:"subject"`
		PredicateType string          `json:"predicateType"`
		Predicate     json.RawMessage `json:"predicate"`
	}
	if err := unmarshal(payload, &stated); err != nil {
		return content{}, forged(reasonStatement, "the content is not an in-toto statement: %s", words.External(err.Error()))
	}
	if stated.Type != statementType {
		return content{}, forged(reasonStatement, "the content is a "+
			"statement of type %q, not %q", words.External(stated.Type), statementType)
	}
	if stated.PredicateType != PredicateType {
		return content{}, forged(reasonPredicateType, "the predicate of the statement has type %q, not %q",
			words.External(stated.PredicateType), PredicateType)
	}
	return content{stated.Subject, stated.Predicate}, nil
}

// unmarshal decodes JSON in which no name is repeated.
func unmarshal(text []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(text, into, kjson.DisallowDuplicateFields)
	return errors.Join(append(strict, err)...)
}

// check returns a problem for a predicate that its subjects or its own fields contradict.
func (p Predicate) check(stated content) *problem {
	expected, err := subjectsOf(p.Cluster.ID, p.Target)
	if err != nil {
		return forged(reasonSubjects, "the verdict names no cluster or no release: %s", words.External(err.Error()))
	}
	if missing := stated.missing(expected); missing != "" {
		return forged(reasonSubjects, "%s, which the verdict is about, is not a subject of the statement", words.External(missing))
	}
	if text := p.contradiction(); text != "" {
		return forged(reasonContradiction, "the statement contradicts itself: %s", text)
	}
	return nil
}

// contradiction states which fields of the verdict contradict each other; empty where none do.
func (p Predicate) contradiction() string {
	stated := p.Verdict
	switch stated.Decision {
	case verdict.Blocked, verdict.Undecided:
	case verdict.Ready, verdict.NothingKnown:
		if text := p.againstPermission(); text != "" {
			return fmt.Sprintf("the decision is %s, and %s", stated.Decision, text)
		}
	default:
		return fmt.Sprintf("%q is not a decision", words.External(string(stated.Decision)))
	}
	if text := p.stretched(); text != "" {
		return text
	}
	if (stated.ForceReason != "" || stated.ForcedBy != "") && !stated.Forced {
		return "it gives a reason for force, but was not forced"
	}
	return ""
}

// stretched states that a verdict holds for longer than one may: who signs one bounds it as who verifies it does.
func (p Predicate) stretched() string {
	from, err := time.Parse(time.RFC3339, p.Run.CompletionTime)
	until, unparsed := time.Parse(time.RFC3339, p.Verdict.ValidUntil)
	if err != nil || unparsed != nil || !until.After(from.Add(fingerprint.MaxAge)) {
		return ""
	}
	return fmt.Sprintf("it holds until %s, but may hold at "+
		"most %s after its run of %s", words.Time(until), fingerprint.MaxAge, words.Time(from))
}

// againstPermission states what contradicts a decision that permits the update; empty for nothing.
func (p Predicate) againstPermission() string {
	stated := p.Verdict
	names := slices.Concat(stated.Blocking, stated.Undecided)
	switch {
	case len(names) > 0:
		return "findings block or are inconclusive: " + words.External(words.List(names, maxNames))
	case p.Run.Phase != report.PhaseComplete:
		return fmt.Sprintf("the run is %s", words.External(cmp.Or(p.Run.Phase, "in no phase")))
	case stated.Decision == verdict.Ready && stated.Provisional:
		return "the verdict is provisional: the verdict on a later update of a path is never Ready"
	case stated.Decision == verdict.Ready && !stated.Forced && !p.Target.Verified:
		return "the signature of the release was not verified"
	}
	return ""
}
