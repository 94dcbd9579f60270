// Package attestation answers: what was decided about this cluster, so that others can verify it?
//
// [Of] makes the statement of a report, [Sign] its signed envelope, and [Verify] reads an
// envelope back. It is pure: texts, keys and times go in.
//
// The statement is an in-toto Statement v1 in a DSSE envelope, whatever the decision is. [Encode],
// [Open] and [Content] are those of statements with other predicates, too.
package attestation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"

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
