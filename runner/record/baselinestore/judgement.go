package baselinestore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

const (
	// labelJudgement is the ID of the run, on the judgement after its update.
	labelJudgement = "preflight.openshift.io/afterupdate"

	keyJudgement = "judgement.gz"
	// maxJudgement bounds the text of a judgement, in bytes.
	maxJudgement = 16 << 20
)

// Judgement is the stored judgement about the update after a run.
type Judgement struct {
	// Run is the ID of the run.
	Run    string
	Report afterupdate.Report
	// Authentication is the result of its verification. Unless it is Authentic, Report is empty.
	Authentication record.Authentication
}

// PutJudgement stores the judgement about the update after a run, by the ID of the run. Of several, that of the newest sample stays, of whichever process: one that is older than the stored
// one, equal to it, or Good again, is not written. The error is a *record.NotFoundError for a run without a record, and an
// *record.UnauthenticError without the key of the records.
func (s *Store) PutJudgement(ctx context.Context, id string, report afterupdate.Report) error {
	text, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("could not encode the judgement: %w", err)
	}
	packed, err := recordformat.Pack(text)
	if err != nil {
		return err
	}
	if len(text) > maxJudgement || len(packed) > recordformat.MaxWhole {
		return fmt.Errorf("the judgement has %d bytes, and %d compressed, more than %d or %d", len(text), len(packed), maxJudgement, recordformat.MaxWhole)
	}
	beside, err := s.records.Beside(ctx, id)
	if err != nil {
		return fmt.Errorf("could not store the judgement: %w", err)
	}
	made := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: judgementName(beside.Run()), Labels: map[string]string{labelJudgement: beside.Run()}},
		BinaryData: map[string][]byte{keyJudgement: packed},
	}
	by := Candidate{}
	if object, err := s.records.Object(ctx, indexName(beside.Run())); err != nil {
		return fmt.Errorf("could not store the judgement: %w", err)
	} else if object != nil {
		by.Judged = object.Data[recordformat.KeyJudged]
	}
	err = beside.Change(ctx, made.Name, func(found *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		if found == nil {
			return made.DeepCopy(), nil
		}
		next, stays := succeeding(made, report, found, by)
		if next == nil {
			report = stays
		}
		return next, nil
	})
	if err == nil {
		err = mark(ctx, beside, report)
	}
	if err != nil {
		return fmt.Errorf("could not store the judgement beside the record of run %s: %w", beside.Run(), err)
	}
	return nil
}

// mark notes beside the baseline that it has judged an update, so that an earlier judgement which is put back does not
// count. The mark of the newest sample stays.
func mark(ctx context.Context, beside *recordstore.Beside, judged afterupdate.Report) error {
	return beside.Change(ctx, indexName(beside.Run()), func(found *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		text := markOf(judged)
		if found == nil || found.Data[recordformat.KeyJudged] == text || sampleOf(found.Data[recordformat.KeyJudged]).After(lastSample(judged)) {
			return nil, nil //nolint:nilnil // nothing is written
		}
		data := maps.Clone(found.Data)
		data[recordformat.KeyJudged] = text
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: found.Name, Labels: found.Labels}, Data: data}, nil
	})
}

// markOf is the time of the last sample of a judgement in RFC 3339 with its decision.
func markOf(judged afterupdate.Report) string {
	return words.Time(lastSample(judged)) + " " + string(judged.Decision)
}

// Precedes reports whether a judgement is earlier than the last one by its baseline: it was put back in place of that one,
// or is about to be replaced.
func (j Judgement) Precedes(by Candidate) bool {
	is, at := lastSample(j.Report), sampleOf(by.Judged)
	return by.Judged != "" && (is.Before(at) || is.Equal(at) && markOf(j.Report) != by.Judged)
}

// sampleOf is the time of a mark; zero where it states none.
func sampleOf(mark string) time.Time {
	sample, _, _ := strings.Cut(mark, " ")
	at, _ := time.Parse(time.RFC3339, sample)
	return at
}

// succeeding is what is stored in place of an authentic judgement; nil to leave that as it is. The first of several by which
// one update is Good stays, since a soak counts from it; stays is what is stored.
func succeeding(made *corev1.ConfigMap, judged afterupdate.Report, found *corev1.ConfigMap, by Candidate) (next *corev1.ConfigMap, stays afterupdate.Report) {
	stored, err := reportOf(found)
	if err != nil || (Judgement{Report: stored}).Precedes(by) && !lastSample(judged).Before(sampleOf(by.Judged)) {
		return made.DeepCopy(), stored // of another version of the tool, or put back
	}
	again := sameUpdate(stored, judged) && stored.Decision == afterupdate.Good && judged.Decision == afterupdate.Good
	if again || lastSample(stored).After(lastSample(judged)) || bytes.Equal(made.BinaryData[keyJudgement], found.BinaryData[keyJudgement]) {
		return nil, stored
	}
	return made.DeepCopy(), stored
}

func sameUpdate(a, b afterupdate.Report) bool {
	return a.Cluster.ID == b.Cluster.ID && a.Update.To == b.Update.To && a.Update.StartTime == b.Update.StartTime && a.Update.CompletionTime == b.Update.CompletionTime
}

// lastSample is the time of the last sample of a judgement; zero where it states none.
func lastSample(of afterupdate.Report) time.Time {
	last, err := time.Parse(time.RFC3339, of.Samples.Last)
	if err != nil {
		return time.Time{}
	}
	return last
}

// Judgement reads the judgement about the update after a run, by the ID of the run; false if there is none. The error is
// an *record.UnauthenticError if it is not authentic.
func (s *Store) Judgement(ctx context.Context, id string) (Judgement, bool, error) {
	object, err := s.records.Object(ctx, judgementName(id))
	if err != nil {
		return Judgement{}, false, fmt.Errorf("could not read the judgement of run %s: %w", id, err)
	}
	if object == nil || object.Labels[labelJudgement] != id { // names have only the first digits of an ID
		return Judgement{}, false, nil
	}
	loaded, err := s.records.Key(ctx)
	if err != nil {
		return Judgement{}, false, err
	}
	found, err := judgementOf(object, loaded)
	if err == nil && found.Authentication.State != record.Authentic {
		err = &record.UnauthenticError{ID: id, Authentication: found.Authentication}
	}
	return found, err == nil, err
}

// Judgements lists the judgements of all runs, sorted by the ID of the run, with one request for the list and one for the
// key. One that cannot be decoded is listed as one that is not authentic.
func (s *Store) Judgements(ctx context.Context) ([]Judgement, error) {
	objects, err := s.records.Headers(ctx, labelJudgement)
	if err != nil {
		return nil, fmt.Errorf("could not list the judgements: %w", err)
	}
	if len(objects) == 0 {
		return nil, nil
	}
	loaded, err := s.records.Key(ctx)
	if err != nil {
		return nil, err
	}
	judgements := make([]Judgement, 0, len(objects))
	for i := range objects {
		found, err := judgementOf(&objects[i], loaded)
		if err != nil {
			found = Judgement{Run: found.Run, Authentication: recordformat.Unauthentic(objects[i].Name, recordformat.CauseUnreadable)}
		}
		judgements = append(judgements, found)
	}
	slices.SortFunc(judgements, func(a, b Judgement) int { return strings.Compare(a.Run, b.Run) })
	return judgements, nil
}

// judgementOf verifies and decodes a stored judgement.
func judgementOf(object *corev1.ConfigMap, loaded recordformat.LoadedKey) (Judgement, error) {
	found := Judgement{Run: object.Labels[labelJudgement]}
	found.Authentication = recordstore.VerifyBeside(object, found.Run, loaded)
	if found.Authentication.State != record.Authentic {
		return found, nil
	}
	var err error
	found.Report, err = reportOf(object)
	return found, err
}

func reportOf(object *corev1.ConfigMap) (afterupdate.Report, error) {
	text, err := recordformat.Unpack(object.BinaryData[keyJudgement], maxJudgement)
	if err != nil {
		return afterupdate.Report{}, fmt.Errorf("%s of configmap %q: %w", keyJudgement, object.Name, err)
	}
	var found afterupdate.Report
	if err := json.Unmarshal(text, &found); err != nil {
		return afterupdate.Report{}, fmt.Errorf("could not decode the judgement in configmap %q: %w", object.Name, err)
	}
	return found, nil
}

func judgementName(id string) string { return recordformat.HeaderName(id) + "-afterupdate" }
