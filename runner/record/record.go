// Package record answers: what became of the runs of this cluster, and who
// holds one now?
//
// A run is durable. Its record is a ConfigMap, the head, made before its first
// Job: what was asked for, which checks are expected, the results as they come
// and at last the report. What does not fit goes on in further ConfigMaps, the
// parts, which go with the head. A Lease says who holds the run; whoever holds
// it renews the Lease, and when it goes unrenewed somebody else takes the run
// over, under the same ID, with the results that are in.
//
//	oc get configmaps,leases -n openshift-cluster-version -l preflight.openshift.io/record \
//	    -L preflight.openshift.io/phase,preflight.openshift.io/decision
//
// Nobody's clock is trusted: the times of a run are those of the API server,
// and whether a Lease is renewed is judged by the time that passes while its
// versions are watched.
//
// # Limits
//
// A record keeps 20,000 results, and 64 MiB of them before they are compressed.
// A result beyond that is not kept, nor is one of more than 900 KiB compressed:
// for whoever takes the run over, it is not in, and its Job is asked again.
package record

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/label"
)

// Namespace is where records are kept: there is one wherever there is a
// cluster-version operator.
const Namespace = "openshift-cluster-version"

// Phase says how far a run is.
type Phase string

// The phases of a run. All but Running are final.
const (
	Running     Phase = "Running"
	Complete    Phase = "Complete"
	Interrupted Phase = "Interrupted"
	Canceled    Phase = "Canceled"
)

// Intent is what is known of a run before its first Job exists.
type Intent struct {
	// ID is a UUID.
	ID string
	// From is the cluster's version, Target the release that is asked about.
	From   string
	Target update.Release
	// ToolVersion is that of the tool which began the run.
	ToolVersion string
	// Selection is what makes this run another than others of the same release, as
	// a text that is the same whenever it is: what is looked at, above all. At most
	// 64 KiB.
	Selection string
	// Checks are those that have a Job and are expected to report. Compressed, they
	// are at most 256 KiB, which is some ten thousand.
	Checks []string
}

// Result is what one check found.
type Result struct {
	Check    string            `json:"check"`
	Findings []finding.Finding `json:"findings"`
}

// Record is what is known of a run.
type Record struct {
	Intent
	Phase Phase
	// StartTime and CompletionTime are by the clock of the cluster, to the second.
	// CompletionTime is zero while the run goes on.
	StartTime, CompletionTime time.Time
	// Decision is that of the verdict; empty when there is none.
	Decision string
	// Results are those that are in, one for each check, sorted by check.
	Results []Result
	// Report is the report as JSON, Fingerprint the state of the cluster that its
	// verdict is about; nil while the run is in progress.
	Report      []byte
	Fingerprint map[string]string
	// Holder holds the run, or has held it and was killed since: that can be told
	// only by Follow. It is empty when nobody does.
	Holder string
}

const (
	// minPrefix is how much of an ID names a run.
	minPrefix    = 4
	maxSelection = 64 << 10
	maxHolder    = 256
)

func (i Intent) validate(holder string) error {
	switch {
	case !isID(i.ID):
		return fmt.Errorf("the ID %q of the run is not a UUID", i.ID)
	case !regexp.MustCompile("^sha256:[0-9a-f]{64}$").MatchString(i.Target.Digest()):
		return fmt.Errorf("the digest %q of the release is not one of SHA-256", i.Target.Digest())
	case len(i.Selection) > maxSelection:
		return fmt.Errorf("the selection is longer than %d bytes", maxSelection)
	case holder == "" || len(holder) > maxHolder:
		return fmt.Errorf("the holder %q of the run is not named by 1 to %d bytes", holder, maxHolder)
	}
	return nil
}

// isID is true for a UUID in its usual form, which uuid.Parse takes besides others.
func isID(text string) bool {
	parsed, err := uuid.Parse(text)
	return err == nil && parsed.String() == text
}

// same is an error unless both are one run, whatever their IDs.
func (i Intent) same(other Intent) error {
	switch {
	case i.Target.Digest() != other.Target.Digest(): // the names have only the first digits of it
		return fmt.Errorf("run %s is in progress, of release %s, whose digest begins alike", i.ID, i.Target.Digest())
	case i.Selection != other.Selection:
		return &SelectionError{ID: i.ID, Selection: i.Selection}
	}
	return nil
}

// headName is the name of the head of a run.
func headName(id string) string { return "preflight-" + label.Suffix(id) }

var (
	// ErrAbandoned means that nobody holds the run: its holder has given it up, or
	// has not renewed its Lease.
	ErrAbandoned = errors.New("nobody holds the run any more")
	// ErrTakenOver means that somebody else holds the run now.
	ErrTakenOver = errors.New("the run was taken over by somebody else")
	// ErrCanceled means that somebody asked for the end of the run.
	ErrCanceled = errors.New("the run was canceled")
)

// BusyError means that somebody else holds the run in progress of the release.
type BusyError struct {
	ID, Holder string
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("run %s of the same release is in progress, held by %q; follow it: oc preflight attach %[1]s", e.ID, e.Holder)
}

// SelectionError means that the run in progress looks at something else.
type SelectionError struct {
	ID, Selection string
}

// Error implements error.
func (e *SelectionError) Error() string {
	return fmt.Sprintf("run %s of the same release is in progress and looks at something else (%q); follow it: oc preflight attach %[1]s; or end it: oc preflight cancel %[1]s", e.ID, e.Selection)
}

// FormatError means that the record was made by another version of the tool,
// in a form that this one does not know.
type FormatError struct {
	ID, Format string
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("run %s is recorded in format %q, which this version does not know: use the one that began it, or a newer one", e.ID, e.Format)
}

// NotFoundError means that an ID, or the beginning of one, does not name a run.
type NotFoundError struct {
	ID string
	// Candidates are the runs whose IDs begin like this, when there are several.
	Candidates []string
}

// Error implements error.
func (e *NotFoundError) Error() string {
	if len(e.Candidates) > 0 {
		return fmt.Sprintf("%q is the beginning of %d runs: %q; name one of them", e.ID, len(e.Candidates), e.Candidates)
	}
	return fmt.Sprintf("there is no run whose ID is %q or begins so, with at least %d digits; see: oc preflight history", e.ID, minPrefix)
}

// NotRunningError means that the run has ended.
type NotRunningError struct {
	ID    string
	Phase Phase
}

// Error implements error.
func (e *NotRunningError) Error() string {
	return fmt.Sprintf("run %s has ended: it is %s; see: oc preflight status %[1]s", e.ID, e.Phase)
}
