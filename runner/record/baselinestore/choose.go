package baselinestore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

// Reason is why no baseline counts.
type Reason string

// The reasons. If baselines do not count for several reasons, the first one in this order is reported.
const (
	// NoUpdate means that the history of ClusterVersion has no update whose beginning is known.
	NoUpdate Reason = "NoUpdate"
	// Unreadable means that the baseline is not complete, or has the format of another version of the tool.
	Unreadable Reason = "Unreadable"
	// TakenDuring means that it was taken after the update had begun.
	TakenDuring Reason = "TakenDuring"
	// TakenEarlier means that it was taken before the update to the release that the update started from was complete.
	TakenEarlier Reason = "TakenEarlier"
	// Unverifiable means that it is unknown whether it was edited: the user may not read the key of the records.
	Unverifiable Reason = "Unverifiable"
	// Unauthentic means that it was edited, or that the key of the records was replaced since.
	Unauthentic Reason = "Unauthentic"
	// OtherCluster means that the baseline belongs to a cluster with another ID.
	OtherCluster Reason = "OtherCluster"
	// OtherRelease means that it belongs to a release other than the one that the update started from.
	OtherRelease Reason = "OtherRelease"
	// NotTaken means that no run has stored a baseline.
	NotTaken Reason = "NotTaken"
)

// reasons are all reasons, in the order in which they are reported.
func reasons() []Reason {
	return []Reason{NoUpdate, Unreadable, TakenDuring, TakenEarlier, Unverifiable, Unauthentic, OtherCluster, OtherRelease, NotTaken}
}

// AbsentError means that there is no baseline that counts.
type AbsentError struct {
	Reason Reason
	// Run is the ID of the run with the baseline that the reason is about; empty for none.
	Run string
	// Message is why, as a clause.
	Message string
	// Later is the newest baseline of the release that the cluster was updated to, taken since: it counts for the next
	// update. Its Run is empty for none.
	Later Candidate
}

// Error implements error.
func (e *AbsentError) Error() string { return "no baseline counts: " + e.Message }

// Candidate is a stored baseline, without its content.
type Candidate struct {
	// Run is the ID of the run that took it. Whether that run has a verdict does not matter: a baseline is a fact about
	// the cluster, and is complete even if the run was killed afterwards.
	Run string
	// Taken, ClusterID, Version and Image are copied from its State.
	Taken                     time.Time
	ClusterID, Version, Image string
	// Authentication is the result of its verification. Unless it is Authentic, the other fields do not count.
	Authentication record.Authentication
	// Unreadable is why it cannot be read, as a clause; empty if it can.
	Unreadable string
	// The sample and the decision of the last judgement with this baseline, see [Judgement.Precedes]. Empty if it has
	// not been used to evaluate an update.
	Judged string
}

// Choose returns the baselines of the last update of a history, which has the newest entry first, as status.history of
// ClusterVersion has. The newest baseline is first. The error is an *[AbsentError] if there is none.
//
// settling.ChangeOf determines the update: if it was interrupted and continued to another release, it began with the
// first release, and if it was rolled back, it is still the last update. A baseline counts if it is authentic, belongs
// to this cluster and to the release that the update started from, and was taken between the completion of that release
// and the beginning of the update. All times use the clocks of the cluster.
func Choose(candidates []Candidate, history []configv1.UpdateHistory, clusterID string) ([]Candidate, error) {
	of, err := changeOf(history, clusterID)
	if err != nil {
		return nil, err
	}
	var counting []Candidate
	nearest := &AbsentError{Reason: NotTaken, Message: fmt.Sprintf("no run has stored one of %s", of.from.Version)}
	sorted := slices.SortedFunc(slices.Values(candidates), func(a, b Candidate) int {
		return cmp.Or(b.Taken.Compare(a.Taken), cmp.Compare(a.Run, b.Run))
	})
	for _, each := range sorted {
		refused := each.refused()
		if refused == nil {
			refused = of.refuses(each)
		}
		switch {
		case refused == nil:
			counting = append(counting, each)
		case slices.Index(reasons(), refused.Reason) < slices.Index(reasons(), nearest.Reason):
			nearest = refused
		}
	}
	if len(counting) == 0 {
		if at := slices.IndexFunc(sorted, of.precedes); at >= 0 {
			nearest.Later = sorted[at]
		}
		return nil, nearest
	}
	return counting, nil
}

// refused is why the baseline does not count for any update; nil if it may.
func (c Candidate) refused() *AbsentError {
	switch {
	case c.Authentication.State != record.Authentic:
		return unauthentic(c.Run, c.Authentication)
	case c.Unreadable != "":
		return c.unreadable("%s", c.Unreadable)
	}
	return nil
}

func (c Candidate) unreadable(cause string, args ...any) *AbsentError {
	return &AbsentError{
		Reason: Unreadable, Run: c.Run,
		Message: fmt.Sprintf("the baseline of run %s cannot be read: ", c.Run) + fmt.Sprintf(cause, args...),
	}
}

// unauthentic is for a baseline whose verification has that result.
func unauthentic(run string, verified record.Authentication) *AbsentError {
	if verified.State == record.Unverifiable {
		return &AbsentError{
			Reason: Unverifiable, Run: run,
			Message: fmt.Sprintf("unknown whether the baseline of run %s is authentic: %s", run, verified.Cause),
		}
	}
	return &AbsentError{Reason: Unauthentic, Run: run, Message: fmt.Sprintf("the baseline of run %s is not "+
		"authentic: %s", run, verified.Cause)}
}

// change is an update of a cluster.
type change struct {
	clusterID string
	// from is the entry of the release that the update started from, and begun when that was.
	from  configv1.UpdateHistory
	begun time.Time
	// to is the entry of the release that the cluster runs when the update is complete; zero for one that was undone.
	to configv1.UpdateHistory
}

// precedes reports whether a baseline was taken after the update, of the release that it led to.
func (u change) precedes(c Candidate) bool {
	completed := u.to.CompletionTime
	return c.refused() == nil && c.ClusterID == u.clusterID && c.Version == u.to.Version && sameImage(c.Image, u.to.Image) &&
		completed != nil && !c.Taken.Before(completed.Time)
}

func changeOf(history []configv1.UpdateHistory, clusterID string) (change, error) {
	found, ok := settling.ChangeOf(history)
	switch {
	case !ok:
		return change{}, &AbsentError{Reason: NoUpdate, Message: "the history of ClusterVersion contains no update " +
			"from a completed release"}
	case found.Started.IsZero():
		return change{}, &AbsentError{
			Reason:  NoUpdate,
			Message: fmt.Sprintf("the history of ClusterVersion does not contain when the update to %s began", found.To.Version),
		}
	}
	made := change{clusterID: clusterID, from: found.From, begun: found.Started.UTC()}
	if !found.RolledBack {
		made.to = found.To
	}
	return made, nil
}

// refuses is why the baseline does not count for the update; nil if it does.
func (u change) refuses(c Candidate) *AbsentError {
	because := func(reason Reason, message string, args ...any) *AbsentError {
		return &AbsentError{Reason: reason, Run: c.Run, Message: fmt.Sprintf("the baseline of run %s ", c.Run) + fmt.Sprintf(message, args...)}
	}
	completed := u.from.CompletionTime
	switch {
	case c.ClusterID != u.clusterID:
		return because(OtherCluster, "belongs to cluster %s, and this cluster is %s", c.ClusterID, u.clusterID)
	case c.Version != u.from.Version:
		return because(OtherRelease, "is for %s, but the update started from %s", c.Version, u.from.Version)
	case !sameImage(c.Image, u.from.Image):
		return because(OtherRelease, "is for %s, but the update started from %s", c.Image, u.from.Image)
	case c.Taken.After(u.begun):
		return because(TakenDuring, "was taken at %s, after the update began at %s", words.Time(c.Taken), words.Time(u.begun))
	case completed != nil && c.Taken.Before(completed.Time):
		return because(TakenEarlier, "was taken at %s, before the update to %s completed at %s", words.Time(c.Taken), c.Version,
			words.Time(completed.UTC()))
	}
	return nil
}

// sameImage reports whether two pull specs are of one image, or one is not known. A mirror has another name for it.
func sameImage(a, b string) bool {
	digest := update.Release{Image: a}.Digest()
	return a == "" || b == "" || a == b || digest != "" && digest == update.Release{Image: b}.Digest()
}

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

// PutJudgement stores the judgement about the update after a run, by the ID of the run. If there are several, from any
// process, the judgement with the newest sample stays: a judgement that is older than the stored one, equal to it, or
// Good again, is not written. It returns a *record.NotFoundError for a run without a record, and a
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
		return fmt.Errorf("the judgement has %d bytes, and %d compressed, more than %d or %d", len(text), len(packed), maxJudgement,
			recordformat.MaxWhole)
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
	err = beside.Change(ctx, made.Name, func(found *corev1.ConfigMap) *corev1.ConfigMap {
		if found == nil {
			return made.DeepCopy()
		}
		next, stays := succeeding(made, report, found, by)
		if next == nil {
			report = stays
		}
		return next
	})
	if err == nil {
		err = mark(ctx, beside, report)
	}
	if err != nil {
		return fmt.Errorf("could not store the judgement beside the record of run %s: %w", beside.Run(), err)
	}
	return nil
}

// mark notes beside the baseline that it was used to evaluate an update, so that restoring an earlier judgement has no
// effect. The mark of the newest sample stays.
func mark(ctx context.Context, beside *recordstore.Beside, judged afterupdate.Report) error {
	return beside.Change(ctx, indexName(beside.Run()), func(found *corev1.ConfigMap) *corev1.ConfigMap {
		text := markOf(judged)
		if found == nil || found.Data[recordformat.KeyJudged] == text || sampleOf(found.Data[recordformat.KeyJudged]).After(lastSample(judged)) {
			return nil
		}
		data := maps.Clone(found.Data)
		data[recordformat.KeyJudged] = text
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: found.Name, Labels: found.Labels}, Data: data}
	})
}

// markOf is the time of the last sample of a judgement in RFC 3339 with its decision.
func markOf(judged afterupdate.Report) string {
	return words.Time(lastSample(judged)) + " " + string(judged.Decision)
}

// Precedes reports whether a judgement is earlier than the last one with its baseline: it was restored in place of that
// one, or is about to be replaced.
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

// succeeding returns the replacement of an authentic judgement; nil to keep it. If several judgements call one update
// Good, the first stays, because a soak counts from it; stays is the stored one.
func succeeding(made *corev1.ConfigMap, judged afterupdate.Report, found *corev1.ConfigMap,
	by Candidate,
) (next *corev1.ConfigMap, stays afterupdate.Report) {
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
	return a.Cluster.ID == b.Cluster.ID && a.Update.To == b.Update.To && a.Update.StartTime == b.Update.StartTime &&
		a.Update.CompletionTime == b.Update.CompletionTime
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

// Judgements lists the judgements of all runs, sorted by the ID of the run, with one request for the list and one for
// the key. A judgement that cannot be decoded is listed as not authentic.
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
