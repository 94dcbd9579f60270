// Package judgement answers: was the last update of this cluster good, according to the stored judgements?
//
// [Last] returns the stored judgement of the last update, and [Runs] the judgements after all recorded runs. The
// controller, fleets, gates, "status" and "history" show these and no others.
//
// It cannot detect that the record of a run was deleted with everything beside it, or that its judgement and its
// baseline were both replaced by earlier contents of the same objects.
package judgement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

// Window is how long an update is evaluated after its end: later changes have other causes.
const Window = 24 * time.Hour

// last is the last update of a cluster, whose judgement is looked for.
type last struct {
	settling.Change

	cluster   *cluster.Cluster
	clusterID string
	history   []configv1.UpdateHistory
	baselines *baselinestore.Store
	records   *recordstore.Store
}

// Last returns the judgement of the last update in the history of ClusterVersion, as stored by "after" or the
// controller. It returns false if nothing is stored about that update, so a fleet that does not evaluate updates has
// none.
//
// A judgement counts if its MAC matches and it names this cluster and the start and end of this update. If there are
// several, the one with the newest baseline counts, and among these the newest sample. The decision is Undecided, with
// the cause in the message, if judgements cannot be read; if a judgement that is not authentic may be about this
// update, since it could be newer and not good; if a run has stored a baseline of this update that has no judgement,
// since an editor of ConfigMaps can delete it; and if an earlier judgement was restored. It is Settling if an update
// that ended within the Window has not been evaluated yet.
func Last(ctx context.Context, reached *cluster.Cluster, version *configv1.ClusterVersion) (afterupdate.Report, bool) {
	change, found := settling.ChangeOf(version.Status.History)
	if !found {
		return afterupdate.Report{}, false
	}
	of := last{
		Change: change, cluster: reached, clusterID: string(version.Spec.ClusterID), history: version.Status.History,
		baselines: baselinestore.New(reached.Kubernetes), records: recordstore.New(reached.Kubernetes),
	}
	ctx, gaps := gap.Track(ctx)
	stored, err := of.baselines.Judgements(ctx)
	if err != nil {
		return of.unknown(unreadable(err)), true
	}
	newest := of.newest(stored)
	if newest != nil && Status(newest.Report.Decision) == metav1.ConditionFalse {
		return newest.Report, true
	}
	doubt := of.unauthentic(ctx, stored)
	if doubt == "" && newest == nil && gaps.Lacks("configmaps") {
		doubt = "the archive lacks ConfigMaps of the namespace " + record.Namespace + ", in which judgements are stored"
	}
	if doubt != "" {
		return of.unknown(doubt), true
	}
	return of.backed(ctx, stored, newest)
}

// Status is the status of the condition AfterUpdate of an UpdatePreflight.
func Status(decision afterupdate.Decision) metav1.ConditionStatus {
	switch decision {
	case afterupdate.Good:
		return metav1.ConditionTrue
	case afterupdate.Regressed, afterupdate.RolledBack:
		return metav1.ConditionFalse
	case afterupdate.Settling, afterupdate.Unfinished, afterupdate.Undecided:
	}
	return metav1.ConditionUnknown
}

// backed is the newest judgement where the baselines of the update agree with it.
func (l last) backed(ctx context.Context, stored []baselinestore.Judgement, newest *baselinestore.Judgement) (afterupdate.Report, bool) {
	taken, err := l.baselines.Taken(ctx)
	if err != nil {
		return l.unknown(unreadable(err)), true
	}
	candidates, err := baselinestore.Choose(taken, l.history, l.clusterID)
	if absent, is := errors.AsType[*baselinestore.AbsentError](err); is {
		return l.without(ctx, absent, newest)
	}
	by := candidates[0]
	if !slices.ContainsFunc(stored, func(each baselinestore.Judgement) bool { return each.Run == by.Run && l.isOf(each.Report) }) {
		made := l.unknown(fmt.Sprintf("run %s has stored a baseline of this update, but the update has not been "+
			"evaluated with it: run \"after\"", words.External(by.Run)))
		if by.Judged == "" && (l.Completed.IsZero() || l.cluster.Now().Sub(l.Completed) < Window) {
			made.Decision = afterupdate.Settling
		}
		return made, true
	}
	for _, each := range stored {
		at := slices.IndexFunc(candidates, func(c baselinestore.Candidate) bool { return c.Run == each.Run })
		if at >= 0 && l.isOf(each.Report) && each.Precedes(candidates[at]) {
			return l.unknown(putBack(each)), true
		}
	}
	return newest.Report, true
}

// putBack states that a judgement replaces a later one, as a clause.
func putBack(judged baselinestore.Judgement) string {
	return fmt.Sprintf("the stored judgement of run %s is older than the last one by its baseline: an earlier "+
		"judgement was restored",
		words.External(judged.Run))
}

// without is the judgement of an update of which there is no baseline that counts. A baseline that is not authentic may be
// of the update.
func (l last) without(ctx context.Context, absent *baselinestore.AbsentError, newest *baselinestore.Judgement) (afterupdate.Report, bool) {
	switch absent.Reason {
	case baselinestore.Unreadable, baselinestore.Unauthentic, baselinestore.Unverifiable:
		if of, err := l.records.Get(ctx, absent.Run); err != nil || l.mayBeAfter(of) {
			return l.unknown("unknown whether the update was evaluated: " + words.External(absent.Message)), true
		}
	case baselinestore.NoUpdate:
		if newest != nil {
			return newest.Report, true
		}
	case baselinestore.TakenDuring, baselinestore.TakenEarlier, baselinestore.OtherCluster, baselinestore.OtherRelease, baselinestore.NotTaken:
	}
	if newest != nil {
		return l.unknown(fmt.Sprintf("the baseline of run %s, with which the update was evaluated, no longer exists: "+
			"an earlier judgement may have been restored", words.External(newest.Run))), true
	}
	listed, err := l.records.List(ctx)
	if err != nil {
		return l.unknown(unreadable(err)), true
	}
	for _, each := range listed {
		if l.isBefore(each) {
			return l.unknown(fmt.Sprintf("run %s has stored a baseline of this update, but the baseline and its "+
				"judgement no longer exist",
				words.External(each.ID))), true
		}
	}
	return afterupdate.Report{}, false
}

// isBefore reports whether a run has recorded that it stored a baseline of the update.
func (l last) isBefore(run record.Record) bool {
	from := l.From.CompletionTime
	return !run.Baseline.IsZero() && run.From == l.From.Version && !run.Baseline.After(l.Started) &&
		(from == nil || !run.Baseline.Before(from.Time))
}

func (l last) unknown(message string) afterupdate.Report {
	return afterupdate.Report{Decision: afterupdate.Undecided, Message: message, Update: l.update()}
}

// update is the update as judgements state it.
func (l last) update() afterupdate.Update {
	return afterupdate.Update{
		From: l.From.Version, To: l.To.Version, Image: l.To.Image, StartTime: words.Time(l.Started),
		CompletionTime: words.Time(l.Completed),
	}
}

func unreadable(err error) string {
	message := "the stored judgements could not be read: " + words.External(err.Error())
	if apierrors.IsForbidden(err) {
		message += `; ask an administrator of the cluster to apply the roles that "oc preflight auth history" prints`
	}
	return message
}

// newest is the judgement of the newest sample of the update; nil for none.
func (l last) newest(stored []baselinestore.Judgement) *baselinestore.Judgement {
	var newest *baselinestore.Judgement
	for i, each := range stored {
		if each.Authentication.State == record.Authentic && l.isOf(each.Report) && (newest == nil || later(each.Report, newest.Report)) {
			newest = &stored[i]
		}
	}
	return newest
}

// isOf reports whether a judgement belongs to the update: a cluster may update to the same version again.
func (l last) isOf(made afterupdate.Report) bool {
	is := l.update()
	return made.Cluster.ID == l.clusterID && made.Update.To == is.To && made.Update.StartTime == is.StartTime &&
		made.Update.CompletionTime == is.CompletionTime
}

// later reports whether the baseline of a, which the controller also uses, is later than b's; or, for equal baselines,
// the last sample; or, for equal samples, whether a is not in favor of the update.
func later(a, b afterupdate.Report) bool {
	if by := baselineOf(a).Compare(baselineOf(b)); by != 0 {
		return by > 0
	}
	is, _ := time.Parse(time.RFC3339, a.Samples.Last) // a time that cannot be parsed is the earliest
	was, _ := time.Parse(time.RFC3339, b.Samples.Last)
	return cmp.Or(is.Compare(was), cmp.Compare(rank(a.Decision), rank(b.Decision))) > 0
}

// baselineOf is when the baseline of a judgement was taken; zero for none.
func baselineOf(judged afterupdate.Report) time.Time {
	if judged.Baseline == nil {
		return time.Time{}
	}
	taken, _ := time.Parse(time.RFC3339, judged.Baseline.Time) // a time that cannot be parsed is the earliest
	return taken
}

func rank(decision afterupdate.Decision) int {
	return slices.Index([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionUnknown, metav1.ConditionFalse}, Status(decision))
}

// unauthentic is about a judgement that is not authentic and may be of the update, as a clause; empty for none.
func (l last) unauthentic(ctx context.Context, stored []baselinestore.Judgement) string {
	unverified := slices.DeleteFunc(slices.Clone(stored),
		func(each baselinestore.Judgement) bool { return each.Authentication.State == record.Authentic })
	if len(unverified) == 0 {
		return ""
	}
	runs := map[string]record.Record{}
	if listed, err := l.records.List(ctx); err == nil { // without the records, each may be of the update
		for _, each := range listed {
			runs[each.ID] = each
		}
	}
	for _, each := range unverified {
		if of, known := runs[each.Run]; known && !l.mayBeAfter(of) {
			continue
		}
		return unverifiedOf(fmt.Sprintf("the stored judgement of run %s", words.External(each.Run)), each)
	}
	return ""
}

// unverifiedOf states why a judgement does not count, as a clause.
func unverifiedOf(judgement string, of baselinestore.Judgement) string {
	if of.Authentication.State == record.Unverifiable {
		return fmt.Sprintf("unknown whether %s is authentic: %s", judgement, words.External(of.Authentication.Cause))
	}
	return fmt.Sprintf("%s is not authentic: %s", judgement, words.External(of.Authentication.Cause))
}

// mayBeAfter reports whether a run may have stored the baseline of the update: not one that began after the update did,
// or ended before the release was complete from which the update started. A record that is not authentic may state other
// times, but who can write it can delete the judgement as well.
func (l last) mayBeAfter(run record.Record) bool {
	from := l.From.CompletionTime
	return !run.StartTime.After(l.Started) && (from == nil || run.CompletionTime.IsZero() || !run.CompletionTime.Before(from.Time))
}

// The words beside the decisions of package afterupdate.
const (
	// Unverified stands for a record, or a judgement, that is not authentic or was replaced.
	Unverified = "Unverified"
	// NotJudged stands for an update that was made and whose judgement is not stored.
	NotJudged = "NotJudged"
)

// Runs are the judgements of the updates after the recorded runs.
type Runs struct {
	judged  map[string]baselinestore.Judgement
	taken   map[string]baselinestore.Candidate
	version *configv1.ClusterVersion
}

// OfRuns reads the judgements after all runs. version is the ClusterVersion of the cluster; nil if it could not be
// read.
func OfRuns(ctx context.Context, client kubernetes.Interface, version *configv1.ClusterVersion) (Runs, error) {
	store := baselinestore.New(client)
	stored, err := store.Judgements(ctx)
	if err != nil || len(stored) == 0 {
		return RunsOf(nil, nil, version), err
	}
	taken, err := store.Taken(ctx)
	return RunsOf(stored, taken, version), err
}

// RunsOf returns the stored judgements, with the baselines that they used.
func RunsOf(stored []baselinestore.Judgement, taken []baselinestore.Candidate, version *configv1.ClusterVersion) Runs {
	made := Runs{judged: map[string]baselinestore.Judgement{}, taken: map[string]baselinestore.Candidate{}, version: version}
	for _, each := range stored {
		made.judged[each.Run] = each
	}
	for _, each := range taken {
		made.taken[each.Run] = each
	}
	return made
}

// After returns how the update after a run went: Unverified if the stored data does not count, NotJudged if the cluster
// runs the release and nothing is stored, and nil if the update was not made.
func (r Runs) After(run record.Record) *report.AfterUpdate {
	judged, exists := r.judged[run.ID]
	switch {
	case exists && judged.Authentication.State != record.Authentic:
		return &report.AfterUpdate{Decision: Unverified, Message: unverifiedOf("the stored judgement", judged)}
	case exists && judged.Precedes(r.taken[run.ID]):
		return &report.AfterUpdate{Decision: Unverified, Message: putBack(judged)}
	case exists:
		return &report.AfterUpdate{
			Decision: string(judged.Report.Decision), Message: words.External(judged.Report.Message),
			Time: judged.Report.Samples.Last,
		}
	case r.version != nil && scene.Installed(r.version, run.Target) != nil:
		return &report.AfterUpdate{Decision: NotJudged, Message: "the cluster runs the release"}
	}
	return nil
}
