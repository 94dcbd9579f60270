package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector/fingerprint"
	"github.com/openshift/update-preflight/collector/verdict"
)

const (
	keyVerdict = "verdict.json"
	// maxNames bounds each list of names in verdict.json.
	maxNames = 64
)

// verdictFile is verdict.json, which the package comment documents. Fields are added,
// never changed.
type verdictFile struct {
	Run              string   `json:"run"`
	Digest           string   `json:"digest"`
	Version          string   `json:"version"`
	Phase            Phase    `json:"phase"`
	Decision         string   `json:"decision"`
	CompletionTime   string   `json:"completionTime"`
	ValidUntil       string   `json:"validUntil"`
	Blocking         []string `json:"blocking"`
	BlockingOmitted  int      `json:"blockingOmitted"`
	Undecided        []string `json:"undecided"`
	UndecidedOmitted int      `json:"undecidedOmitted"`
	Accepted         []string `json:"accepted"`
	AcceptedOmitted  int      `json:"acceptedOmitted"`
	Selection        string   `json:"selection"`
	Provisional      bool     `json:"provisional,omitempty"`
}

// verdictJSON encodes the verdict of a record.
func verdictJSON(r Record, decided verdict.Verdict) (string, error) {
	file := verdictFile{
		Run: r.ID, Digest: r.Target.Digest(), Version: r.Target.Version, Phase: r.Phase, Decision: r.Decision, Selection: r.Selection, Provisional: r.Provisional,
		CompletionTime: formatTime(r.CompletionTime), ValidUntil: validUntil(r, decided),
	}
	file.Blocking, file.BlockingOmitted = bounded(decided.Blocking)
	file.Undecided, file.UndecidedOmitted = bounded(decided.Undecided)
	file.Accepted, file.AcceptedOmitted = bounded(decided.Accepted)
	text, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return "", fmt.Errorf("could not encode the verdict: %w", err)
	}
	return string(text) + "\n", nil
}

// bounded returns the first names in order, and how many it omits.
func bounded(names []string) ([]string, int) {
	sorted := append([]string{}, names...)
	slices.Sort(sorted)
	kept := min(len(sorted), maxNames)
	return sorted[:kept], len(sorted) - kept
}

// validUntil is the end of the validity of a complete run; empty for other runs.
func validUntil(r Record, decided verdict.Verdict) string {
	if r.Phase != Complete {
		return ""
	}
	return formatTime(ValidUntil(decided, r.CompletionTime))
}

// ValidUntil is the end of the validity of a verdict of that time: what the verdict
// states, at most fingerprint.MaxAge later.
func ValidUntil(decided verdict.Verdict, completed time.Time) time.Time {
	latest := completed.Add(fingerprint.MaxAge)
	if stated, err := time.Parse(time.RFC3339, decided.ValidUntil); err == nil && stated.Before(latest) {
		return stated.UTC()
	}
	return latest
}
