// Package record answers: what is recorded about a run?
//
// A [Record] begins with the [Intent] of the run, contains the [Result] of each check, and ends with an [Ending].
// Package recordstore reads and writes records, package lease decides which process holds a run in progress, and
// package recordformat documents the format, of which verdict.json and its MAC are intended for other readers too.
package record

import (
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	"github.com/openshift/update-preflight/collector/words"
)

// Namespace is the namespace of records, which is also the cluster-version operator's.
const Namespace = "openshift-cluster-version"

// Phase is the progress of a run.
type Phase string

// The phases of a run. All but Running are final.
const (
	Running     Phase = "Running"
	Complete    Phase = "Complete"
	Interrupted Phase = "Interrupted"
	Canceled    Phase = "Canceled"
)

// Final reports whether a run in this phase has ended.
func (p Phase) Final() bool { return p == Complete || p == Interrupted || p == Canceled }

// Requester is the role that requested a run.
type Requester string

const (
	// ByUser is a user of the command line.
	ByUser Requester = "user"
	// BySelection is the controller, for the update that is selected in ClusterVersion.
	BySelection Requester = "selected"
	// Ahead is the controller, for an update that is offered and not selected.
	Ahead Requester = "ahead"
)

// Known is the requester; empty for a value of another version of the tool.
func (r Requester) Known() Requester {
	switch r {
	case ByUser, BySelection, Ahead:
		return r
	}
	return ""
}

// Intent is the part of a record that is known before the first Job exists.
type Intent struct {
	ID string
	// From is the cluster's version, Target the release to update to.
	From   string
	Target update.Release
	// ToolVersion is the version of the tool that began the run.
	ToolVersion string
	// Selection is a canonical text of the options by which runs of the same release
	// differ, such as the selected checks. At most 64 KiB.
	Selection string
	// Attachment is content that the selection names by digest, with which another process
	// continues the run, such as the manifests of a directory. At most 64 KiB.
	Attachment []byte
	// Requester is the role that requested the run; empty in records of versions without it.
	Requester Requester
	// Generation is metadata.generation of the ClusterVersion that the run has read; 0 in
	// records of versions without it.
	Generation int64
	// Provisional is true for a later update of a path, which does not start from the
	// present release: its verdict is none on the update of this cluster to the target.
	Provisional bool
	// Narrowed contains the exclusions of the request, such as ignored alerts, for readers of the verdict: at most
	// MaxNarrowed texts, none for a complete preflight.
	Narrowed []string
	// Checks are the names of the checks that have a Job. At most 256 KiB compressed,
	// which is about ten thousand names.
	Checks []string
}

// Result is the findings of one check.
type Result struct {
	Check    string            `json:"check"`
	Findings []finding.Finding `json:"findings"`
}

// Record is the record of a run.
type Record struct {
	Intent
	Phase Phase
	// StartTime and CompletionTime are by the clock of the API server, to the second.
	// CompletionTime is zero while the run is in progress.
	StartTime, CompletionTime time.Time
	// Authentication is the result of the verification of the record. Unless it is
	// Authentic, Decision, Results, Report and Fingerprint are empty, and the other
	// fields may have been edited.
	Authentication Authentication
	// Decision is the decision of the verdict; empty if there is none.
	Decision string
	// Ended is why the verdict ended before its time; empty if it did not.
	Ended string
	// Baseline is when the baseline was taken that the run has stored; zero for none, and in records of versions without it.
	Baseline time.Time
	// VerdictFile is verdict.json, of List only; empty unless the record is authentic.
	VerdictFile string
	// Results are the recorded results, one per check, sorted by check.
	Results []Result
	// Report is the report as JSON, Fingerprint the state of the cluster to which its
	// verdict applies; nil while the run is in progress.
	Report      []byte
	Fingerprint map[string]string
	// Holder is the holder of the run by its Lease; empty if there is none.
	// HolderExpiry is when the Lease expires unless it is renewed, by the clock of the
	// cluster: a holder that was killed is past it. Zero if it is not known.
	Holder       string
	HolderExpiry time.Time
}

// Abandoned reports whether no process holds a run in progress at that time, by the
// clock of the cluster. It is for display: only Begin after Follow takes a run over.
func (r Record) Abandoned(now time.Time) bool {
	return r.Phase == Running && (r.Holder == "" || (!r.HolderExpiry.IsZero() && now.After(r.HolderExpiry)))
}

// Verified returns a *UnauthenticError unless the record is authentic.
func (r Record) Verified() error {
	if r.Authentication.State == Authentic {
		return nil
	}
	return &UnauthenticError{ID: r.ID, Authentication: r.Authentication}
}

const (
	// MinPrefix is the minimum length of a prefix of an ID.
	MinPrefix = 4
	// MaxNarrowed bounds the number of texts in Intent.Narrowed.
	MaxNarrowed = 64
	// MaxSelection bounds Intent.Selection, in bytes.
	MaxSelection = 64 << 10
	// MaxAttachment bounds an attachment: the other data of a header takes the rest of 1 MiB.
	MaxAttachment = 64 << 10
	maxHolder     = 256
)

// Validate returns an error for an intent, or an identity of its holder, that cannot be recorded.
func (i Intent) Validate(holder string) error {
	switch {
	case !IsID(i.ID):
		return fmt.Errorf("the ID %q of the run is not a UUID", i.ID)
	case !regexp.MustCompile("^sha256:[0-9a-f]{64}$").MatchString(i.Target.Digest()):
		return fmt.Errorf("the digest %q of the release is not a SHA-256 digest", i.Target.Digest())
	case len(i.Selection) > MaxSelection:
		return fmt.Errorf("the selection is longer than %d bytes", MaxSelection)
	case len(i.Attachment) > MaxAttachment:
		return fmt.Errorf("the attachment has more than %d bytes", MaxAttachment)
	case len(i.Narrowed) > MaxNarrowed:
		return fmt.Errorf("the excluded parts of the request have more than %d texts", MaxNarrowed)
	case i.Requester != i.Requester.Known():
		return fmt.Errorf("unknown requester %.64q", i.Requester)
	case holder == "" || len(holder) > maxHolder:
		return fmt.Errorf("the holder %q of the run must have 1 to %d bytes", holder, maxHolder)
	}
	return nil
}

// IsID is true for a UUID in its canonical form; uuid.Parse also accepts others.
func IsID(text string) bool {
	parsed, err := uuid.Parse(text)
	return err == nil && parsed.String() == text
}

// Same returns an error unless both intents describe the same run, regardless of their IDs.
func (i Intent) Same(other Intent) error {
	switch {
	case i.Target.Digest() != other.Target.Digest(): // names have only the first digits of a digest
		return fmt.Errorf("run %s is in progress, of release %s, whose digest has the same first digits", i.ID, i.Target.Digest())
	case i.Selection != other.Selection:
		return &SelectionError{ID: i.ID, Selection: i.Selection}
	}
	return nil
}

const (
	// Label is the ID of the run, on its header and its Lease. It is not
	// label.Run, the label of the objects that a clean-up deletes.
	Label = "preflight.openshift.io/record"
	// LabelPhase is the phase of the run, on its header.
	LabelPhase = "preflight.openshift.io/phase"
)

// Ended reports whether the labels of a header say that its run has ended. Labels are not authentic.
func Ended(labels map[string]string) bool { return Phase(labels[LabelPhase]).Final() }

// SelectionError means that the run in progress has another selection.
type SelectionError struct {
	ID, Selection string
}

// Error implements error.
func (e *SelectionError) Error() string {
	return fmt.Sprintf("run %s of the same release is in progress with another selection (%q)", e.ID, e.Selection)
}

// FormatError means that the record has a format of another version of the tool, which
// this version does not support.
type FormatError struct {
	ID, Format string
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("run %s is recorded in format %q, which this version does not support: use the version that began the run, or "+
		"a later one", e.ID, e.Format)
}

// NotFoundError means that an ID or prefix matches no run, or several.
type NotFoundError struct {
	ID string
	// Candidates are the IDs of the matching runs, if there are several.
	Candidates []string
}

// Error implements error.
func (e *NotFoundError) Error() string {
	if len(e.Candidates) > 0 {
		return fmt.Sprintf("%q matches %s: %q; use the ID of one", e.ID, words.Count(len(e.Candidates), "run"), e.Candidates)
	}
	return fmt.Sprintf("no run has the ID %q, or an ID that starts with it (at least %d digits)", e.ID, MinPrefix)
}

// CommandExitCode is the exit code for bad input: no run has this ID.
func (e *NotFoundError) CommandExitCode() int { return 2 }

// Remedy returns the next step, with its commands.
func (e *NotFoundError) Remedy() (sentence string, commands []finding.Action) {
	return "List the runs", []finding.Action{finding.Read("oc preflight history")}
}

// Remedy returns the next step, with its commands.
func (e *SelectionError) Remedy() (sentence string, commands []finding.Action) {
	return "Follow the run, or end it.", []finding.Action{
		finding.Read("oc preflight attach %s", e.ID),
		finding.Delete("oc preflight cancel %s", e.ID),
	}
}

// Remedy returns the next step, with its commands.
func (e *UnauthenticError) Remedy() (sentence string, commands []finding.Action) {
	if e.State == Unverifiable {
		return "Print a role with the permission", []finding.Action{finding.Read("oc preflight auth status")}
	}
	return "Run the preflight again, and end a run that is in progress.",
		[]finding.Action{finding.Read("oc preflight run"), finding.Delete("oc preflight cancel %s", e.ID)}
}

// Ending is the final part of a record.
type Ending struct {
	// Phase is one of the final phases.
	Phase Phase
	// Verdict is the verdict of the report; its decision is empty if there is none.
	Verdict verdict.Verdict
	// Report is JSON of at most 64 MiB; nil if there is none.
	Report []byte
	// Fingerprint is the state of the cluster to which the verdict applies.
	Fingerprint map[string]string
	// Baseline is when the baseline was taken that is stored beside the record; zero for none.
	Baseline time.Time
}

// ValidUntil returns when a verdict of that time expires: its own limit, at most fingerprint.MaxAge later.
func ValidUntil(decided verdict.Verdict, completed time.Time) time.Time {
	latest := completed.Add(fingerprint.MaxAge)
	if stated, err := time.Parse(time.RFC3339, decided.ValidUntil); err == nil && stated.Before(latest) {
		return stated.UTC()
	}
	return latest
}

// Authenticity is whether the content of a record was written by a process that has the key of the records.
type Authenticity string

// The values of Authenticity.
const (
	// Authentic means that the MACs match the content.
	Authentic Authenticity = "Authentic"
	// Unauthentic means that a MAC is missing or does not match, or that the key does not exist.
	Unauthentic Authenticity = "Unauthentic"
	// Unverifiable means that the permission to read the key is missing.
	Unverifiable Authenticity = "Unverifiable"
)

// Authentication is the result of the verification of a record.
type Authentication struct {
	State Authenticity
	// Cause is why the state is not Authentic, as a clause.
	Cause string
}

// UnauthenticError means that the content of a record is not known to be authentic.
type UnauthenticError struct {
	ID string
	Authentication
}

// Error implements error.
func (e *UnauthenticError) Error() string {
	if e.State == Unverifiable {
		return fmt.Sprintf("unknown whether the record of run %s is authentic: %s", e.ID, e.Cause)
	}
	return fmt.Sprintf("the record of run %s is not authentic: %s", e.ID, e.Cause)
}

type comparison struct {
	// of names the field in a sentence, and value returns the value to compare; nil for a field that changes no answer.
	of    string
	value func(Intent) string
}

func comparisons() map[string]comparison {
	return map[string]comparison{
		"From":        {"from release", func(i Intent) string { return i.From }},
		"Target":      {"to release", func(i Intent) string { return i.Target.Version + " " + i.Target.Digest() }},
		"ToolVersion": {"by version", func(i Intent) string { return i.ToolVersion }},
		"Selection":   {"with selection", func(i Intent) string { return i.Selection }},
		"Provisional": {"as a later update of a path", func(i Intent) string { return fmt.Sprint(i.Provisional) }},
		"ID":          {},
		"Attachment":  {}, // the selection has its digest
		"Requester":   {},
		"Generation":  {}, // acceptances in the spec of ClusterVersion are evaluated again
		"Narrowed":    {}, // the selection has it
		"Checks":      {}, // the selection and the release decide which there are
	}
}

// Compared are the fields of an Intent, with whether runs that differ in one may have other results.
func Compared() map[string]bool {
	compared := map[string]bool{}
	for name, each := range comparisons() {
		compared[name] = each.value != nil
	}
	return compared
}

// Difference describes how a run differs from another one, so that its results cannot be used for it; empty if they
// can.
func (i Intent) Difference(other Intent) string {
	for _, name := range []string{"From", "Target", "ToolVersion", "Provisional", "Selection"} {
		each := comparisons()[name]
		if made, wanted := each.value(i), each.value(other); made != wanted {
			return fmt.Sprintf("it was made %s %s, not %s", each.of, words.External(made), words.External(wanted))
		}
	}
	return ""
}
