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

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/label"
)

const (
	// labelRecord has the ID of the run, on its head and its Lease. It is not
	// label.Run, which is on what a clean-up deletes.
	labelRecord   = "preflight.openshift.io/record"
	labelPhase    = "preflight.openshift.io/phase"
	labelDecision = "preflight.openshift.io/decision"
	// annotationClaim changes with each process that holds the run. On the head it
	// makes every takeover a change, which a former holder cannot overlook.
	annotationClaim = "preflight.openshift.io/claim"

	format     = "1"
	keyFormat  = "format"
	keyHeader  = "run.yaml"
	keyChecks  = "checks.gz"
	keyResults = "results.gz"
	keyReport  = "report.gz"
	keyPart    = "part.gz"

	maxHeader = maxSelection + 64<<10
)

// head is what the head of a record says.
type head struct {
	// record is without Results, Report and Fingerprint.
	record Record
	// reported counts the results that are in.
	reported int
	// checks, results and report are compressed: the results of the open chunk, and
	// a report that is short enough to be here.
	checks, results, report []byte
	// resultParts are the parts with full chunks, reportParts those after them.
	resultParts, reportParts int
}

// header is the part of a head for people.
type header struct {
	ID             string `json:"id"`
	Phase          Phase  `json:"phase"`
	Decision       string `json:"decision,omitempty"`
	StartTime      string `json:"startTime,omitempty"`
	CompletionTime string `json:"completionTime,omitempty"`
	From           string `json:"from"`
	To             string `json:"to"`
	Image          string `json:"image"`
	Digest         string `json:"digest"`
	ToolVersion    string `json:"toolVersion,omitempty"`
	Selection      string `json:"selection,omitempty"`
	Expected       int    `json:"expected"`
	Reported       int    `json:"reported"`
	ResultParts    int    `json:"resultParts,omitempty"`
	ReportParts    int    `json:"reportParts,omitempty"`
}

// newHead is the head of a run that begins.
func newHead(intent Intent) (head, error) {
	checks, err := pack([]byte(strings.Join(intent.Checks, "\n")))
	if err != nil {
		return head{}, err
	}
	if len(checks) > maxChunk {
		return head{}, fmt.Errorf("the names of %d checks do not fit into a record", len(intent.Checks))
	}
	return head{record: Record{Intent: intent, Phase: Running}, checks: checks}, nil
}

// configMap is the object of the head. Where it is a newer state of one that is
// in the cluster, that is its base.
func (h head) configMap(base metav1.ObjectMeta, claim string) (*corev1.ConfigMap, error) {
	r := h.record
	text, err := yaml.Marshal(header{
		ID: r.ID, Phase: r.Phase, Decision: r.Decision, StartTime: stamp(r.StartTime), CompletionTime: stamp(r.CompletionTime),
		From: r.From, To: r.Target.Version, Image: r.Target.Image, Digest: r.Target.Digest(), ToolVersion: r.ToolVersion, Selection: r.Selection,
		Expected: len(r.Checks), Reported: h.reported, ResultParts: h.resultParts, ReportParts: h.reportParts,
	})
	if err != nil {
		return nil, fmt.Errorf("could not encode the record: %w", err)
	}
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: headName(r.ID), UID: base.UID, ResourceVersion: base.ResourceVersion,
			Labels:      map[string]string{labelRecord: r.ID, label.Release: label.ReleaseValue(r.Target.Digest()), labelPhase: string(r.Phase)},
			Annotations: map[string]string{annotationClaim: claim},
		},
		Data:       map[string]string{keyFormat: format, keyHeader: string(text)},
		BinaryData: map[string][]byte{},
	}
	if r.Decision != "" {
		object.Labels[labelDecision] = r.Decision
	}
	for key, data := range map[string][]byte{keyChecks: h.checks, keyResults: h.results, keyReport: h.report} {
		if len(data) > 0 {
			object.BinaryData[key] = data
		}
	}
	return object, nil
}

// parse reads a head. The error is a *FormatError where another version of the
// tool has to.
func parse(object *corev1.ConfigMap) (head, error) {
	if found := object.Data[keyFormat]; found != format {
		if _, err := strconv.Atoi(found); err != nil {
			return head{}, fmt.Errorf("the %s %.64q is none", keyFormat, found)
		}
		return head{}, &FormatError{ID: object.Labels[labelRecord], Format: found}
	}
	var said header
	if text := object.Data[keyHeader]; len(text) > maxHeader {
		return head{}, fmt.Errorf("%s is longer than %d bytes", keyHeader, maxHeader)
	} else if err := yaml.Unmarshal([]byte(text), &said); err != nil {
		return head{}, fmt.Errorf("could not decode %s: %w", keyHeader, err)
	}
	if err := said.validate(object); err != nil {
		return head{}, err
	}
	record, err := said.record(object.CreationTimestamp.Time)
	if err != nil {
		return head{}, err
	}
	checks, err := unpack(object.BinaryData[keyChecks], maxChunkText)
	if err != nil {
		return head{}, fmt.Errorf("%s: %w", keyChecks, err)
	}
	if len(checks) > 0 {
		record.Checks = strings.Split(string(checks), "\n")
	}
	return head{
		record: record, reported: said.Reported, resultParts: said.ResultParts, reportParts: said.ReportParts,
		checks: object.BinaryData[keyChecks], results: object.BinaryData[keyResults], report: object.BinaryData[keyReport],
	}, nil
}

func (h header) validate(of *corev1.ConfigMap) error {
	labeled := of.Labels[labelRecord]
	switch {
	case !isID(h.ID) || headName(h.ID) != of.Name || labeled != "" && labeled != h.ID:
		return fmt.Errorf("the ID %.64q is not that of %s", h.ID, of.Name)
	case !h.Phase.final() && h.Phase != Running:
		return fmt.Errorf("there is no phase %.64q", h.Phase)
	case h.ResultParts < 0 || h.ResultParts > maxParts || h.ReportParts < 0 || h.ReportParts > maxParts || h.Reported < 0:
		return errors.New("a count is out of bounds")
	}
	return nil
}

// record is what is said, of a run that was created then.
func (h header) record(created time.Time) (Record, error) {
	start, err := unstamp(h.StartTime)
	if err != nil {
		return Record{}, err
	}
	if start.IsZero() {
		start = created.UTC()
	}
	end, err := unstamp(h.CompletionTime)
	if err != nil {
		return Record{}, err
	}
	return Record{
		Intent: Intent{
			ID: h.ID, From: h.From, Target: update.Release{Version: h.To, Image: h.Image}, ToolVersion: h.ToolVersion, Selection: h.Selection,
		},
		Phase: h.Phase, StartTime: start, CompletionTime: end, Decision: h.Decision,
	}, nil
}

// outline is what the labels say, of a head that cannot be read otherwise.
func outline(object *corev1.ConfigMap) Record {
	return Record{
		Intent: Intent{ID: object.Labels[labelRecord]}, Phase: Phase(object.Labels[labelPhase]),
		StartTime: object.CreationTimestamp.UTC(), Decision: object.Labels[labelDecision],
	}
}

func (p Phase) final() bool { return p == Complete || p == Interrupted || p == Canceled }

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func unstamp(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("could not decode a time: %w", err)
	}
	return t.UTC(), nil
}
