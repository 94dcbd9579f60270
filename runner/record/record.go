// Package record answers: which runs has this cluster had, and which process holds
// the one in progress?
//
// A run is durable. Its record is a ConfigMap, the header, created before its first
// Job: the request, the expected checks, the results as they are reported, and finally
// the report. Data that does not fit is in further ConfigMaps, the parts, which the
// header owns. A Lease has the holder of the run, who renews it. When it is not renewed,
// another process takes the run over, with the same ID and its results.
//
//	oc get configmaps,leases -n openshift-cluster-version -l preflight.openshift.io/record \
//	    -L preflight.openshift.io/phase,preflight.openshift.io/decision
//
// No local clock is trusted: the times of a run are those of the API server, and a
// Lease expires when it was watched for its duration without a new resourceVersion.
//
// # Leader election
//
// The Lease is not held through k8s.io/client-go/tools/leaderelection, which lacks
// these properties: a holder keeps the run through an outage of the API server of any
// length, since only another holder ends it (an elector gives up after RenewDeadline);
// time in which a candidate could not watch the Lease does not count towards its expiry
// (an elector counts it, so that candidates can acquire the Lease at the end of an
// outage, before its holder renews it); the Lease carries the run, a nonce that
// identifies the claim and by which a former holder detects the takeover before it
// repeats a conflicting write, and the request to cancel (a LeaseLock sets labels only);
// Begin makes one attempt and returns the holder (Run blocks until the Lease is
// acquired); and the end of a run deletes the Lease, with UID and resourceVersion as
// preconditions (an elector only clears the holder).
//
// # Authenticity
//
// An editor of ConfigMaps in the namespace could forge a verdict, so the header and the
// parts have a MAC, with a key that such an editor cannot read: the 32 bytes under "key"
// of the Secret preflight-record-key in the same namespace. The first run that needs the
// key creates it, and it never leaves the process. To replace it, delete the Secret:
// the records so far are no longer authentic, a run in progress ends with the new key.
//
// A MAC is HMAC-SHA256 in hex, keyed with the HMAC-SHA256 of its domain under the key.
// record.mac has the domain "preflight.openshift.io/record.mac/v1" and covers the
// namespace and the name of the ConfigMap, the UID of the header, the ID of the run, and
// all data and binaryData but itself; a copy with another name or UID, or in another
// cluster, does not verify. Labels are for selection only and are not covered.
//
// Of a record that is not authentic, only metadata is returned (Record.Authentication).
// Its results are not used: those of a run in progress are read from its Jobs again, and
// those of an ended run are collected by a new one. Records of versions without MACs are
// not authentic. The times of a record are at most those that the API server recorded
// for the header.
//
// MACs do not protect against users who may read or create Secrets in the namespace and
// write ConfigMaps there, such as every user who may run preflights; nor against the
// return to an earlier content of the same header. The deletion of a record does not make
// an older verdict count again: the end of a run ends the earlier verdicts on its target
// (ended, below).
//
// # verdict.json
//
// The header has its verdict as JSON under the key verdict.json, for readers without
// this package; its fields are stable, and fields are only added:
//
//	run               the ID of the run
//	from              the version of the cluster
//	digest, version   the target; version may be empty
//	phase             Running, Complete, Interrupted or Canceled
//	decision          Ready, Blocked, Undecided or, for a later update of a path instead
//	                  of Ready, NothingKnown; empty without a verdict
//	completionTime    RFC 3339 in UTC; empty while Running
//	validUntil        RFC 3339 in UTC, at most 24 h after the completion; empty unless Complete
//	blocking, undecided, accepted
//	                  names of findings, sorted, at most 64 each
//	forced            true if force was given; otherwise absent. The decision is Blocked then,
//	                  and blocking has the names that force bypassed
//	narrowed          what the request left out, such as ignored alerts, at most 64;
//	                  absent if nothing
//	ended             why the verdict ended before its time, such as a newer run of the
//	                  target; validUntil is that time. Otherwise absent
//	blockingOmitted, undecidedOmitted, acceptedOmitted
//	                  how many names each list omits
//	selection         the options by which runs of the same release differ
//	provisional       true for a later update of a path: the run has no verdict on the
//	                  update of this cluster to the target; otherwise absent
//
// verdict.mac has the domain "preflight.openshift.io/verdict.mac/v1" and covers exactly
// the bytes of verdict.json. In Go, where hmacSHA256(key, message) returns the HMAC:
//
//	hex.EncodeToString(hmacSHA256(hmacSHA256(key, domain), verdictJSON)) == verdictMAC
//
// It does not cover the ConfigMap: a reader compares run with the label of the header,
// digest with the target, and the present time with validUntil. A MAC is compared in
// constant time (hmac.Equal).
//
// # Limits
//
// A record has at most 20,000 results, of at most 64 MiB uncompressed. Further results
// are dropped, and so is a result of more than 900 KiB compressed: the next holder reads
// it from its Job again.
package record

import (
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
)

// Namespace is the namespace of records: that of the cluster-version operator.
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

func (p Phase) final() bool { return p == Complete || p == Interrupted || p == Canceled }

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

// known is the requester; empty for a value of another version of the tool.
func (r Requester) known() Requester {
	switch r {
	case ByUser, BySelection, Ahead:
		return r
	}
	return ""
}

// Intent is the part of a record that is known before the first Job exists.
type Intent struct {
	// ID is a UUID.
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
	// Requester is the role that requested the run; empty in records of versions
	// without it.
	Requester Requester
	// Generation is metadata.generation of the ClusterVersion that the run has read; 0 in
	// records of versions without it.
	Generation int64
	// Provisional is true for a later update of a path, which does not start from the
	// present release: its verdict is none on the update of this cluster to the target.
	Provisional bool
	// Narrowed states what the request leaves out of the judgement, such as ignored
	// alerts, for readers of the verdict: at most MaxNarrowed texts, none for a complete
	// preflight.
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
	// Decision is that of the verdict; empty if there is none.
	Decision string
	// Ended is why the verdict ended before its time; empty if it did not.
	Ended string
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
	// minPrefix is the minimum length of a prefix of an ID.
	minPrefix = 4
	// MaxNarrowed bounds the number of texts in Intent.Narrowed.
	MaxNarrowed  = 64
	maxSelection = 64 << 10
	// maxAttachment is what the other data of a header leaves of 1 MiB.
	maxAttachment = 64 << 10
	maxHolder     = 256
)

func (i Intent) validate(holder string) error {
	switch {
	case !isID(i.ID):
		return fmt.Errorf("the ID %q of the run is not a UUID", i.ID)
	case !regexp.MustCompile("^sha256:[0-9a-f]{64}$").MatchString(i.Target.Digest()):
		return fmt.Errorf("the digest %q of the release is not a SHA-256 digest", i.Target.Digest())
	case len(i.Selection) > maxSelection:
		return fmt.Errorf("the selection is longer than %d bytes", maxSelection)
	case len(i.Attachment) > maxAttachment:
		return fmt.Errorf("the attachment has more than %d bytes", maxAttachment)
	case len(i.Narrowed) > MaxNarrowed:
		return fmt.Errorf("what the request left out has more than %d texts", MaxNarrowed)
	case i.Requester != i.Requester.known():
		return fmt.Errorf("unknown requester %.64q", i.Requester)
	case holder == "" || len(holder) > maxHolder:
		return fmt.Errorf("the holder %q of the run must have 1 to %d bytes", holder, maxHolder)
	}
	return nil
}

// isID is true for a UUID in its canonical form; uuid.Parse also accepts others.
func isID(text string) bool {
	parsed, err := uuid.Parse(text)
	return err == nil && parsed.String() == text
}

// same returns an error unless both intents are of the same run, regardless of their
// IDs.
func (i Intent) same(other Intent) error {
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

// Ended reports whether the labels of a header state that its run has ended. Labels are not
// authentic.
func Ended(labels map[string]string) bool { return Phase(labels[LabelPhase]).final() }
