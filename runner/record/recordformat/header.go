// Package recordformat answers: in which ConfigMaps is a record written, and are they authentic?
//
// [Header.ConfigMap] encodes the header of a record, and [Parse] decodes it. The header contains the request, the
// expected checks, the results as they are reported, and finally the report. Data that does not fit is stored in
// further ConfigMaps, the parts, which the header owns. [Key.Seal] sets the MACs, and [LoadedKey.Verify] verifies them.
//
//	oc get configmaps,leases -n openshift-cluster-version -l preflight.openshift.io/record \
//	    -L preflight.openshift.io/phase,preflight.openshift.io/decision
//
// # Authenticity
//
// An editor of ConfigMaps in the namespace could forge a verdict, so the header and the parts have a MAC, with a key
// that such an editor cannot read: the 32 bytes under "key" of the Secret preflight-record-key in the same namespace.
// The first run that needs the key creates it, and it never leaves the process. To replace it, delete the Secret: the
// records so far are no longer authentic, a run in progress ends with the new key.
//
// A MAC is HMAC-SHA256 in hex, keyed with the HMAC-SHA256 of its domain under the key. record.mac has the domain
// "preflight.openshift.io/record.mac/v1" and covers the namespace and the name of the ConfigMap, the UID of the header,
// the ID of the run, and all data and binaryData but itself; a copy with another name or UID, or in another cluster,
// does not verify. Labels are for selection only and are not covered.
//
// Of a record that is not authentic, only metadata is returned (Record.Authentication). Its results are not used: for a
// run in progress, they are read from its Jobs again; for an ended run, a new run collects them. Records of versions
// without MACs are not authentic. The times of a record are not later than the times that the API server recorded for
// the header.
//
// MACs do not protect against users who may read or create Secrets in the namespace and write ConfigMaps there, such as
// every user who may run preflights; nor against restoring an earlier content of the same header. The deletion of a
// record does not make an older verdict count again: the end of a run ends the earlier verdicts on its target (ended,
// below).
//
// # verdict.json
//
// The header has its verdict as JSON under the key verdict.json, for readers without this package; its fields are
// stable, and fields are only added:
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
//	forced            true if force was given; otherwise absent. The decision is the one
//	                  without force
//	forceReason, forcedBy
//	                  why, in the words of who requested it, and the user; absent without
//	                  force, and where they are not known
//	narrowed          the parts that the request excluded, such as ignored alerts, at most 64;
//	                  absent if nothing
//	ended             why the verdict ended before its time, such as a newer run of the
//	                  target; validUntil is that time. Otherwise absent
//	blockingOmitted, undecidedOmitted, acceptedOmitted
//	                  how many names each list omits
//	selection         the options by which runs of the same release differ
//	provisional       true for a later update of a path: the run has no verdict on the
//	                  update of this cluster to the target; otherwise absent
//
// verdict.mac has the domain "preflight.openshift.io/verdict.mac/v1" and covers exactly the bytes of verdict.json. In
// Go, where hmacSHA256(key, message) returns the HMAC:
//
//	hex.EncodeToString(hmacSHA256(hmacSHA256(key, domain), verdictJSON)) == verdictMAC
//
// It does not cover the ConfigMap: a reader compares run with the label of the header, digest with the target, and the
// present time with validUntil. A MAC is compared in constant time (hmac.Equal).
//
// # Beside a record
//
// The header owns further ConfigMaps that are not part of the record, so that they are deleted with it (package
// baselinestore). Each has a MAC as a part has. XXXXXXXXXX are the ten digits of the name of the header:
//
//	preflight-XXXXXXXXXX-baseline     the subject of the baseline of the run, as JSON under the
//	                                  key baseline.json, with the number, the size and the
//	                                  SHA-256 digest of its parts; it is written after them,
//	                                  and has the label preflight.openshift.io/baseline. The
//	                                  key [KeyJudged] has the time and decision of the last one
//	preflight-XXXXXXXXXX-baseline-N   part N, without a label
//	preflight-XXXXXXXXXX-afterupdate  the judgement after the update, as compressed JSON under
//	                                  the key judgement.gz; the label is
//	                                  preflight.openshift.io/afterupdate
//	preflight-XXXXXXXXXX-aftercourse  the observations of the samples after the update, as compressed
//	                                  JSON under the key course.gz, without a label
//
// Where a baseline is redacted, a name is the first 16 hex digits of its HMAC-SHA256, keyed with the HMAC-SHA256 of the
// domain "preflight.openshift.io/baseline.digests/v1" under the key of the records ([Key.Digest]).
//
// # Limits
//
// A record has at most 20,000 results, of at most 64 MiB uncompressed. Further results are dropped, and so is a result
// of more than 900 KiB compressed: the next holder reads it from its Job again.
package recordformat

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/record"
)

const (
	labelDecision = "preflight.openshift.io/decision"
	// labelRequester is the role that requested the run; none on records of versions without it.
	labelRequester = "preflight.openshift.io/requester"
	// AnnotationClaim identifies the process that holds the run. On the header it makes
	// every takeover a change of the resourceVersion, so that writes of a former holder
	// conflict.
	AnnotationClaim = "preflight.openshift.io/claim"

	keyFormat  = "format"
	keySummary = "run.yaml"
	keyChecks  = "checks.gz"
	keyResults = "results.gz"
	keyReport  = "report.gz"
	// LabelBaseline is the ID of the run, on what its baseline is of.
	LabelBaseline = "preflight.openshift.io/baseline"
	// KeyBaseline is the key of what a baseline is of, as JSON.
	KeyBaseline = "baseline.json"
	// KeyJudged is the key for when an update was evaluated with the baseline; absent before.
	KeyJudged = "judged"
	// KeyPart is the key of the content of a part.
	KeyPart = "part.gz"
	// keyAttachment is absent from records without one.
	keyAttachment = "attachment"

	maxSummary = record.MaxSelection + 64<<10
)

// format is the version of the format that this program writes, and the only one that it reads.
// Nothing assigns it: it is a variable so that a build can set another one with the linker
// (go build -ldflags "-X PACKAGE.format=2"), as a newer program would have.
var format = "1" //nolint:gochecknoglobals // a constant but for the linker

// Header is the decoded header of a record.
type Header struct {
	// Record is without Results, Report and Fingerprint.
	Record record.Record
	// Verdict is the verdict of an ended run; it is written, and not read again.
	Verdict verdict.Verdict
	// Reported counts the recorded results.
	Reported int
	// checks, results and report are compressed: the results of the open chunk, and a
	// Report that fits into the header.
	checks, Results, Report []byte
	// ResultParts are the parts with full chunks, reportParts those after them.
	ResultParts, ReportParts int
}

// PartName is the name of a part of the record of a run; parts count from 1.
func PartName(id string, number int) string { return fmt.Sprintf("%s-%d", HeaderName(id), number) }

// summary is the part of a header in plain text.
type summary struct {
	ID             string       `json:"id"`
	Phase          record.Phase `json:"phase"`
	Decision       string       `json:"decision,omitempty"`
	StartTime      string       `json:"startTime,omitempty"`
	CompletionTime string       `json:"completionTime,omitempty"`
	From           string       `json:"from"`
	To             string       `json:"to"`
	Image          string       `json:"image"`
	Digest         string       `json:"digest"`
	ToolVersion    string       `json:"toolVersion,omitempty"`
	Selection      string       `json:"selection,omitempty"`
	Requester      string       `json:"requester,omitempty"`
	Generation     int64        `json:"generation,omitempty"`
	Provisional    bool         `json:"provisional,omitempty"`
	Narrowed       []string     `json:"narrowed,omitempty"`
	Ended          string       `json:"ended,omitempty"`
	Baseline       string       `json:"baseline,omitempty"`
	Expected       int          `json:"expected"`
	Reported       int          `json:"reported"`
	ResultParts    int          `json:"resultParts,omitempty"`
	ReportParts    int          `json:"reportParts,omitempty"`
}

// NewHeader is the header of a new run.
func NewHeader(intent record.Intent) (Header, error) {
	checks, err := Pack([]byte(strings.Join(intent.Checks, "\n")))
	if err != nil {
		return Header{}, err
	}
	if len(checks) > MaxChunk {
		return Header{}, fmt.Errorf("the names of %s do not fit into a record", words.Count(len(intent.Checks), "check"))
	}
	return Header{Record: record.Record{Intent: intent, Phase: record.Running}, checks: checks}, nil
}

// ConfigMap encodes the header; base is the metadata of an existing object to update.
func (h Header) ConfigMap(base metav1.ObjectMeta, claim string) (*corev1.ConfigMap, error) {
	r := h.Record
	text, err := yaml.Marshal(summary{
		ID: r.ID, Phase: r.Phase, Decision: r.Decision, StartTime: words.Time(r.StartTime), CompletionTime: words.Time(r.CompletionTime),
		From: r.From, To: r.Target.Version, Image: r.Target.Image, Digest: r.Target.Digest(), ToolVersion: r.ToolVersion, Selection: r.Selection,
		Requester: string(r.Requester), Generation: r.Generation, Provisional: r.Provisional, Narrowed: r.Narrowed, Ended: r.Ended,
		Baseline: words.Time(r.Baseline),
		Expected: len(r.Checks), Reported: h.Reported, ResultParts: h.ResultParts, ReportParts: h.ReportParts,
	})
	if err != nil {
		return nil, fmt.Errorf("could not encode the record: %w", err)
	}
	decided, err := verdictJSON(r, h.Verdict)
	if err != nil {
		return nil, err
	}
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: record.Namespace, Name: HeaderName(r.ID), UID: base.UID, ResourceVersion: base.ResourceVersion,
			Labels: map[string]string{
				record.Label: r.ID, label.Release: label.ReleaseValue(r.Target.Digest()),
				record.LabelPhase: string(r.Phase),
			},
			Annotations: map[string]string{AnnotationClaim: claim},
		},
		Data:       map[string]string{keyFormat: format, keySummary: string(text), KeyVerdict: decided},
		BinaryData: map[string][]byte{},
	}
	for key, value := range map[string]string{labelDecision: r.Decision, labelRequester: string(r.Requester)} {
		if value != "" {
			object.Labels[key] = value
		}
	}
	for key, data := range map[string][]byte{keyChecks: h.checks, keyResults: h.Results, keyReport: h.Report, keyAttachment: r.Attachment} {
		if len(data) > 0 {
			object.BinaryData[key] = data
		}
	}
	return object, nil
}

// Parse decodes a header. The error is a *FormatError for the format of another version of the tool.
func Parse(object *corev1.ConfigMap) (Header, error) {
	if stated := object.Data[keyFormat]; stated != format {
		if _, err := strconv.Atoi(stated); err != nil {
			return Header{}, fmt.Errorf("invalid %s %.64q", keyFormat, stated)
		}
		return Header{}, &record.FormatError{ID: object.Labels[record.Label], Format: stated}
	}
	var decoded summary
	if text := object.Data[keySummary]; len(text) > maxSummary {
		return Header{}, fmt.Errorf("%s is longer than %d bytes", keySummary, maxSummary)
	} else if err := yaml.Unmarshal([]byte(text), &decoded); err != nil {
		return Header{}, fmt.Errorf("could not decode %s: %w", keySummary, err)
	}
	if err := decoded.validate(object); err != nil {
		return Header{}, err
	}
	found, err := decoded.record(object)
	if err != nil {
		return Header{}, err
	}
	if found.Attachment = object.BinaryData[keyAttachment]; len(found.Attachment) > record.MaxAttachment {
		return Header{}, fmt.Errorf("%s is longer than %d bytes", keyAttachment, record.MaxAttachment)
	}
	checks, err := Unpack(object.BinaryData[keyChecks], maxChunkText)
	if err != nil {
		return Header{}, fmt.Errorf("%s: %w", keyChecks, err)
	}
	if len(checks) > 0 {
		found.Checks = strings.Split(string(checks), "\n")
	}
	return Header{
		Record: found, Reported: decoded.Reported, ResultParts: decoded.ResultParts, ReportParts: decoded.ReportParts,
		checks: object.BinaryData[keyChecks], Results: object.BinaryData[keyResults], Report: object.BinaryData[keyReport],
	}, nil
}

func (s summary) validate(of *corev1.ConfigMap) error {
	labeled := of.Labels[record.Label]
	switch {
	case !record.IsID(s.ID) || HeaderName(s.ID) != of.Name || labeled != "" && labeled != s.ID:
		return fmt.Errorf("the ID %.64q does not belong to %s", s.ID, of.Name)
	case !s.Phase.Final() && s.Phase != record.Running:
		return fmt.Errorf("unknown phase %.64q", s.Phase)
	case s.ResultParts < 0 || s.ResultParts > maxParts || s.ReportParts < 0 || s.ReportParts > maxParts || s.Reported < 0:
		return errors.New("a count is out of bounds")
	}
	return nil
}

// record converts the summary of a header. Its times are bounded by those that the API
// server has recorded for the object.
func (s summary) record(of *corev1.ConfigMap) (record.Record, error) {
	start, err := parseTime(s.StartTime)
	if err != nil {
		return record.Record{}, err
	}
	if created := of.CreationTimestamp.UTC(); start.IsZero() || start.After(created) {
		start = created
	}
	end, err := parseTime(s.CompletionTime)
	if err != nil {
		return record.Record{}, err
	}
	if written := cluster.LastWrite(of).UTC(); end.After(written) {
		end = written
	}
	taken, err := parseTime(s.Baseline)
	if err != nil {
		return record.Record{}, err
	}
	return record.Record{
		Intent: record.Intent{
			ID: s.ID, From: s.From, Target: update.Release{Version: s.To, Image: s.Image}, ToolVersion: s.ToolVersion, Selection: s.Selection,
			Requester: record.Requester(s.Requester).Known(), Generation: s.Generation, Provisional: s.Provisional, Narrowed: s.Narrowed,
		},
		Phase: s.Phase, StartTime: start, CompletionTime: end, Decision: s.Decision, Ended: s.Ended, Baseline: taken,
	}, nil
}

// FromLabels is the record of an unreadable header, from its labels.
func FromLabels(object *corev1.ConfigMap) record.Record {
	return record.Record{
		Intent: record.Intent{ID: object.Labels[record.Label]}, Phase: record.Phase(object.Labels[record.LabelPhase]),
		StartTime: object.CreationTimestamp.UTC(), Authentication: Unauthentic(object.Name, CauseUnreadable),
	}
}

// CauseUnreadable is why a header that cannot be decoded is not authentic.
const CauseUnreadable = "is unreadable"

func parseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("could not decode a time: %w", err)
	}
	return t.UTC(), nil
}

// HeaderName is the name of the header of a run.
func HeaderName(id string) string { return "preflight-" + label.Suffix(id) }

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
		Run: r.ID, From: r.From, Digest: r.Target.Digest(), Version: r.Target.Version, Phase: r.Phase, Selection: r.Selection,
		Provisional: r.Provisional,
		Decision:    r.Decision, Forced: decided.Forced, ForceReason: decided.ForceReason, ForcedBy: decided.ForcedBy, Narrowed: r.Narrowed,
		CompletionTime: words.Time(r.CompletionTime), ValidUntil: validUntil(r, decided), Ended: r.Ended,
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
