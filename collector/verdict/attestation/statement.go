// Package attestation answers: what was decided about this cluster, so that others can verify it?
//
// [Of] makes the statements of a report, [Sign] the signed envelope of one, and [Verify] reads
// an envelope back. It is pure: texts, keys and times go in.
//
// A statement is an in-toto Statement v1 in a DSSE envelope. The one with [PredicateType] states
// every decision. A Simple Verification Result (SVR v0.2) is made besides for a Ready alone: it
// lists what passed, and has no form for a decision that is not Ready.
package attestation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
)

const (
	// PredicateType is the type of the predicate that states a verdict.
	PredicateType = "https://preflight.openshift.io/verdict/v1alpha1"
	// SummaryType is the type of a Simple Verification Result.
	SummaryType = "https://in-toto.io/attestation/svr/v0.2"
	// payloadType is that of an in-toto Statement in JSON.
	payloadType = "application/vnd.in-toto+json"
	// statementType is that of in-toto Statement v1.
	statementType = "https://in-toto.io/Statement/v1"
	// verifierID names this program in a Simple Verification Result.
	verifierID = "https://preflight.openshift.io"
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
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     any       `json:"predicate"`
}

// subject is matched by its digest alone.
type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// summary is the predicate of SVR v0.2 (in-toto/attestation, spec/predicates/svr.md).
type summary struct {
	Verifier    verifier `json:"verifier"`
	TimeCreated string   `json:"timeCreated"`
	Properties  []string `json:"properties"`
}

type verifier struct {
	ID       string     `json:"id"`
	Policies []struct{} `json:"policies"`
}

// Statements are what is signed of a report, in JSON.
type Statements struct {
	// Verdict states the decision.
	Verdict []byte
	// Summary is a Simple Verification Result; nil unless the decision is Ready, without
	// force, of a request that left nothing out, current, and valid for an hour or more.
	Summary []byte
}

// Of makes the statements of a report. Their subjects are the release, by the digest of its pull
// spec and, if that is an index, by that of the image for the architecture of the cluster, and the
// cluster, by the SHA-256 of its ID. A report without release or cluster is an error.
func Of(decided report.Report) (Statements, error) {
	subjects, err := subjectsOf(decided.Cluster.ID, decided.Target)
	if err != nil {
		return Statements{}, err
	}
	stated := statement{Type: statementType, Subject: subjects, PredicateType: PredicateType, Predicate: Predicate{
		Run: decided.Run, Cluster: decided.Cluster, Target: decided.Target, Verdict: decided.Verdict,
	}}
	text, err := json.Marshal(stated)
	if err != nil {
		return Statements{}, err
	}
	hours := readyHours(decided)
	if hours < 1 {
		return Statements{Verdict: text}, nil
	}
	stated.PredicateType, stated.Predicate = SummaryType, summary{
		Verifier: verifier{ID: verifierID, Policies: []struct{}{}}, TimeCreated: decided.Run.CompletionTime,
		Properties: []string{fmt.Sprintf("OCP_PREFLIGHT_READY_%d", hours)},
	}
	passed, err := json.Marshal(stated)
	return Statements{Verdict: text, Summary: passed}, err
}

// readyHours is for how many whole hours after its time a report permits the update; 0 for any
// other report.
func readyHours(decided report.Report) int {
	if !decided.Permits() {
		return 0
	}
	from, until, err := validity(decided.Run, decided.Verdict)
	if err != nil || until.Before(from) {
		return 0
	}
	return int(until.Sub(from) / time.Hour)
}

func subjectsOf(clusterID string, target report.Target) ([]subject, error) {
	if clusterID == "" {
		return nil, fmt.Errorf("the report has no cluster ID (spec.clusterID of ClusterVersion), so its verdict has no subject")
	}
	release, err := releaseDigest(target.Image)
	if err != nil {
		return nil, err
	}
	cluster := sha256.Sum256([]byte(clusterID))
	subjects := []subject{
		{Name: "release", Digest: map[string]string{release.Algorithm().String(): release.Encoded()}},
		{Name: "cluster/" + clusterID, Digest: map[string]string{digest.SHA256.String(): hex.EncodeToString(cluster[:])}},
	}
	if target.Child == "" {
		return subjects, nil
	}
	child, err := digest.Parse(target.Child)
	if err != nil {
		return nil, fmt.Errorf("the image for the architecture of the cluster has no digest: %w", err)
	}
	return append(subjects, subject{Name: "release for the architecture of the cluster", Digest: map[string]string{child.Algorithm().String(): child.Encoded()}}), nil
}

// releaseDigest is the digest of a pull spec.
func releaseDigest(image string) (digest.Digest, error) {
	_, text, _ := strings.Cut(image, "@")
	found, err := digest.Parse(text)
	if err != nil {
		return "", fmt.Errorf("the target %q has no digest, so its verdict has no subject: %w", image, err)
	}
	return found, nil
}
