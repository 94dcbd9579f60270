package recordformat

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
)

const (
	// KeyVerdict is the key of the verdict for other readers.
	KeyVerdict = "verdict.json"
	// maxNames bounds each list of names in verdict.json.
	maxNames = 64
)

// verdictFile is verdict.json, which the package comment documents. Fields are added, never changed.
type verdictFile struct {
	Run              string       `json:"run"`
	From             string       `json:"from"`
	Digest           string       `json:"digest"`
	Version          string       `json:"version"`
	Phase            record.Phase `json:"phase"`
	Decision         string       `json:"decision"`
	CompletionTime   string       `json:"completionTime"`
	ValidUntil       string       `json:"validUntil"`
	Blocking         []string     `json:"blocking"`
	BlockingOmitted  int          `json:"blockingOmitted"`
	Undecided        []string     `json:"undecided"`
	UndecidedOmitted int          `json:"undecidedOmitted"`
	Accepted         []string     `json:"accepted"`
	AcceptedOmitted  int          `json:"acceptedOmitted"`
	Selection        string       `json:"selection"`
	Provisional      bool         `json:"provisional,omitempty"`
	Forced           bool         `json:"forced,omitempty"`
	ForceReason      string       `json:"forceReason,omitempty"`
	ForcedBy         string       `json:"forcedBy,omitempty"`
	Narrowed         []string     `json:"narrowed,omitempty"`
	Ended            string       `json:"ended,omitempty"`
}

func verdictJSON(r record.Record, decided verdict.Verdict) (string, error) {
	file := verdictFile{
		Run: r.ID, From: r.From, Digest: r.Target.Digest(), Version: r.Target.Version, Phase: r.Phase, Selection: r.Selection, Provisional: r.Provisional,
		Decision: r.Decision, Forced: decided.Forced, ForceReason: decided.ForceReason, ForcedBy: decided.ForcedBy, Narrowed: r.Narrowed, CompletionTime: words.Time(r.CompletionTime), ValidUntil: validUntil(r, decided), Ended: r.Ended,
	}
	file.Blocking, file.BlockingOmitted = bounded(decided.Blocking)
	file.Undecided, file.UndecidedOmitted = bounded(decided.Undecided)
	file.Accepted, file.AcceptedOmitted = bounded(decided.Accepted)
	return file.encode()
}

func (f verdictFile) encode() (string, error) {
	text, err := json.MarshalIndent(f, "", "  ")
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
func validUntil(r record.Record, decided verdict.Verdict) string {
	if r.Phase != record.Complete {
		return ""
	}
	return words.Time(record.ValidUntil(decided, r.CompletionTime))
}

// maxCause bounds the cause of the end of a verdict, in bytes.
const maxCause = 512

// EndVerdict changes and seals an authentic header; false if its verdict has ended.
func EndVerdict(object *corev1.ConfigMap, loaded LoadedKey, cause string, now time.Time) (bool, error) {
	id := object.Labels[record.Label]
	if verified := loaded.Verify(object, id, object.UID); verified.State != record.Authentic {
		return false, &record.UnauthenticError{ID: id, Authentication: verified}
	}
	changed, err := endVerdict(object, words.Line(cause, maxCause), words.Time(now))
	if err != nil || !changed {
		return false, err
	}
	loaded.Key.Seal(object, id)
	return true, nil
}

// endVerdict changes the header of a complete run; false if its verdict has ended already.
func endVerdict(object *corev1.ConfigMap, cause, now string) (bool, error) {
	var text summary
	if err := yaml.Unmarshal([]byte(object.Data[keySummary]), &text); err != nil {
		return false, fmt.Errorf("could not decode %s of %s: %w", keySummary, object.Name, err)
	}
	if text.Phase != record.Complete || text.Ended != "" {
		return false, nil
	}
	var file verdictFile
	if err := json.Unmarshal([]byte(object.Data[KeyVerdict]), &file); err != nil {
		return false, fmt.Errorf("could not decode %s of %s: %w", KeyVerdict, object.Name, err)
	}
	text.Ended, file.Ended, file.ValidUntil = cause, cause, min(file.ValidUntil, now)
	summarized, err := yaml.Marshal(text)
	if err != nil {
		return false, err
	}
	object.Data[keySummary] = string(summarized)
	object.Data[KeyVerdict], err = file.encode()
	return err == nil, err
}
