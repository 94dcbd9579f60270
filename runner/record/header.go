package record

import (
	"errors"
	"fmt"
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
)

const (
	labelDecision = "preflight.openshift.io/decision"
	// labelRequester is the role that requested the run; none on records of versions
	// without it.
	labelRequester = "preflight.openshift.io/requester"
	// annotationClaim identifies the process that holds the run. On the header it makes
	// every takeover a change of the resourceVersion, so that writes of a former holder
	// conflict.
	annotationClaim = "preflight.openshift.io/claim"

	format     = "1"
	keyFormat  = "format"
	keySummary = "run.yaml"
	keyChecks  = "checks.gz"
	keyResults = "results.gz"
	keyReport  = "report.gz"
	keyPart    = "part.gz"
	// keyAttachment is absent from records without one.
	keyAttachment = "attachment"

	maxSummary = maxSelection + 64<<10
)

// header is the decoded header of a record.
type header struct {
	// record is without Results, Report and Fingerprint.
	record Record
	// verdict is that of an ended run; it is written, and not read again.
	verdict verdict.Verdict
	// reported counts the recorded results.
	reported int
	// checks, results and report are compressed: the results of the open chunk, and a
	// report that fits into the header.
	checks, results, report []byte
	// resultParts are the parts with full chunks, reportParts those after them.
	resultParts, reportParts int
}

func partName(id string, number int) string { return fmt.Sprintf("%s-%d", headerName(id), number) }

// summary is the part of a header in plain text.
type summary struct {
	ID             string   `json:"id"`
	Phase          Phase    `json:"phase"`
	Decision       string   `json:"decision,omitempty"`
	StartTime      string   `json:"startTime,omitempty"`
	CompletionTime string   `json:"completionTime,omitempty"`
	From           string   `json:"from"`
	To             string   `json:"to"`
	Image          string   `json:"image"`
	Digest         string   `json:"digest"`
	ToolVersion    string   `json:"toolVersion,omitempty"`
	Selection      string   `json:"selection,omitempty"`
	Requester      string   `json:"requester,omitempty"`
	Generation     int64    `json:"generation,omitempty"`
	Provisional    bool     `json:"provisional,omitempty"`
	Narrowed       []string `json:"narrowed,omitempty"`
	Ended          string   `json:"ended,omitempty"`
	Expected       int      `json:"expected"`
	Reported       int      `json:"reported"`
	ResultParts    int      `json:"resultParts,omitempty"`
	ReportParts    int      `json:"reportParts,omitempty"`
}

// newHeader is the header of a new run.
func newHeader(intent Intent) (header, error) {
	checks, err := pack([]byte(strings.Join(intent.Checks, "\n")))
	if err != nil {
		return header{}, err
	}
	if len(checks) > maxChunk {
		return header{}, fmt.Errorf("the names of %s do not fit into a record", words.Count(len(intent.Checks), "check"))
	}
	return header{record: Record{Intent: intent, Phase: Running}, checks: checks}, nil
}

// configMap encodes the header; base is the metadata of an existing object to
// update.
func (h header) configMap(base metav1.ObjectMeta, claim string) (*corev1.ConfigMap, error) {
	r := h.record
	text, err := yaml.Marshal(summary{
		ID: r.ID, Phase: r.Phase, Decision: r.Decision, StartTime: words.Time(r.StartTime), CompletionTime: words.Time(r.CompletionTime),
		From: r.From, To: r.Target.Version, Image: r.Target.Image, Digest: r.Target.Digest(), ToolVersion: r.ToolVersion, Selection: r.Selection,
		Requester: string(r.Requester), Generation: r.Generation, Provisional: r.Provisional, Narrowed: r.Narrowed, Ended: r.Ended,
		Expected: len(r.Checks), Reported: h.reported, ResultParts: h.resultParts, ReportParts: h.reportParts,
	})
	if err != nil {
		return nil, fmt.Errorf("could not encode the record: %w", err)
	}
	decided, err := verdictJSON(r, h.verdict)
	if err != nil {
		return nil, err
	}
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: headerName(r.ID), UID: base.UID, ResourceVersion: base.ResourceVersion,
			Labels:      map[string]string{Label: r.ID, label.Release: label.ReleaseValue(r.Target.Digest()), LabelPhase: string(r.Phase)},
			Annotations: map[string]string{annotationClaim: claim},
		},
		Data:       map[string]string{keyFormat: format, keySummary: string(text), keyVerdict: decided},
		BinaryData: map[string][]byte{},
	}
	for key, value := range map[string]string{labelDecision: statedDecision(r, h.verdict), labelRequester: string(r.Requester)} {
		if value != "" {
			object.Labels[key] = value
		}
	}
	for key, data := range map[string][]byte{keyChecks: h.checks, keyResults: h.results, keyReport: h.report, keyAttachment: r.Attachment} {
		if len(data) > 0 {
			object.BinaryData[key] = data
		}
	}
	return object, nil
}

// parse decodes a header. The error is a *FormatError for the format of another
// version of the tool.
func parse(object *corev1.ConfigMap) (header, error) {
	if found := object.Data[keyFormat]; found != format {
		if _, err := strconv.Atoi(found); err != nil {
			return header{}, fmt.Errorf("invalid %s %.64q", keyFormat, found)
		}
		return header{}, &FormatError{ID: object.Labels[Label], Format: found}
	}
	var decoded summary
	if text := object.Data[keySummary]; len(text) > maxSummary {
		return header{}, fmt.Errorf("%s is longer than %d bytes", keySummary, maxSummary)
	} else if err := yaml.Unmarshal([]byte(text), &decoded); err != nil {
		return header{}, fmt.Errorf("could not decode %s: %w", keySummary, err)
	}
	if err := decoded.validate(object); err != nil {
		return header{}, err
	}
	record, err := decoded.record(object)
	if err != nil {
		return header{}, err
	}
	if record.Attachment = object.BinaryData[keyAttachment]; len(record.Attachment) > maxAttachment {
		return header{}, fmt.Errorf("%s is longer than %d bytes", keyAttachment, maxAttachment)
	}
	checks, err := unpack(object.BinaryData[keyChecks], maxChunkText)
	if err != nil {
		return header{}, fmt.Errorf("%s: %w", keyChecks, err)
	}
	if len(checks) > 0 {
		record.Checks = strings.Split(string(checks), "\n")
	}
	return header{
		record: record, reported: decoded.Reported, resultParts: decoded.ResultParts, reportParts: decoded.ReportParts,
		checks: object.BinaryData[keyChecks], results: object.BinaryData[keyResults], report: object.BinaryData[keyReport],
	}, nil
}

func (s summary) validate(of *corev1.ConfigMap) error {
	labeled := of.Labels[Label]
	switch {
	case !isID(s.ID) || headerName(s.ID) != of.Name || labeled != "" && labeled != s.ID:
		return fmt.Errorf("the ID %.64q does not belong to %s", s.ID, of.Name)
	case !s.Phase.final() && s.Phase != Running:
		return fmt.Errorf("unknown phase %.64q", s.Phase)
	case s.ResultParts < 0 || s.ResultParts > maxParts || s.ReportParts < 0 || s.ReportParts > maxParts || s.Reported < 0:
		return errors.New("a count is out of bounds")
	}
	return nil
}

// record converts the summary of a header. Its times are bounded by those that the API
// server has recorded for the object.
func (s summary) record(of *corev1.ConfigMap) (Record, error) {
	start, err := parseTime(s.StartTime)
	if err != nil {
		return Record{}, err
	}
	if created := of.CreationTimestamp.UTC(); start.IsZero() || start.After(created) {
		start = created
	}
	end, err := parseTime(s.CompletionTime)
	if err != nil {
		return Record{}, err
	}
	if written := cluster.LastWrite(of).UTC(); end.After(written) {
		end = written
	}
	return Record{
		Intent: Intent{
			ID: s.ID, From: s.From, Target: update.Release{Version: s.To, Image: s.Image}, ToolVersion: s.ToolVersion, Selection: s.Selection,
			Requester: Requester(s.Requester).known(), Generation: s.Generation, Provisional: s.Provisional, Narrowed: s.Narrowed,
		},
		Phase: s.Phase, StartTime: start, CompletionTime: end, Decision: s.Decision, Ended: s.Ended,
	}, nil
}

// fromLabels is the record of an unreadable header, from its labels.
func fromLabels(object *corev1.ConfigMap) Record {
	return Record{
		Intent: Intent{ID: object.Labels[Label]}, Phase: Phase(object.Labels[LabelPhase]),
		StartTime: object.CreationTimestamp.UTC(), Authentication: unauthentic(object.Name, causeUnreadable),
	}
}

const causeUnreadable = "is unreadable"

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

// headerName is the name of the header of a run.
func headerName(id string) string { return "preflight-" + label.Suffix(id) }
