package survey

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

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

// judged is an update whose judgement is looked for.
type judged struct {
	settling.Change

	clusterID string
}

// judgementOf is what "after" or the controller has stored in the cluster about its update to a version, in the words of
// the condition AfterUpdate of an UpdatePreflight; Since is the time of the last sample. It is nil where nothing is stored
// about that update, so that a fleet in which no update is judged has none.
//
// A judgement counts if its MAC matches and it states this cluster and the start and end of this update. Of several, that
// by the newest baseline counts, and of the newest sample. Status is Unknown where judgements cannot be read, where one that
// is not authentic may be about this update: it could be newer, and could state that the update was not good, and where a run
// has stored a baseline of this update and there is no judgement by it: who may write ConfigMaps can delete one.
func judgementOf(ctx context.Context, reached *cluster.Cluster, version *configv1.ClusterVersion, to string) *fleet.Judgement {
	change, found := settling.ChangeOf(version.Status.History)
	if !found || change.To.Version != to {
		return nil
	}
	of := judged{Change: change, clusterID: string(version.Spec.ClusterID)}
	ctx, gaps := gap.Track(ctx)
	stored, err := baselinestore.New(reached.Kubernetes).Judgements(ctx)
	if err != nil {
		return undecided(unreadable(err))
	}
	newest := of.newest(stored)
	if newest != nil && newest.Status == string(metav1.ConditionFalse) {
		return newest
	}
	if doubt := of.doubt(ctx, reached, stored); doubt != "" {
		return undecided(doubt)
	}
	if newest == nil && gaps.Lacks("configmaps") {
		return undecided("the archive lacks ConfigMaps of the namespace " + record.Namespace + ", in which judgements are stored")
	}
	if lost := of.lost(ctx, reached, version.Status.History, stored); lost != "" {
		return undecided(lost)
	}
	return newest
}

// lost states that the judgement by the newest baseline of the update is missing, as a clause; empty where it is not, or
// where no run has stored a baseline. A baseline that is not authentic may be of the update.
func (j judged) lost(ctx context.Context, reached *cluster.Cluster, history []configv1.UpdateHistory, stored []baselinestore.Judgement) string {
	taken, err := baselinestore.New(reached.Kubernetes).Taken(ctx)
	if err != nil {
		return unreadable(err)
	}
	candidates, err := baselinestore.Choose(taken, history, j.clusterID)
	if absent, is := errors.AsType[*baselinestore.AbsentError](err); is {
		switch absent.Reason {
		case baselinestore.Unreadable, baselinestore.Unauthentic, baselinestore.Unverifiable:
			if of, err := recordstore.New(reached.Kubernetes).Get(ctx, absent.Run); err != nil || j.mayBeAfter(of) {
				return "unknown whether the update was judged: " + words.External(absent.Message)
			}
		case baselinestore.NoUpdate, baselinestore.TakenDuring, baselinestore.TakenEarlier, baselinestore.OtherCluster, baselinestore.OtherRelease, baselinestore.NotTaken:
		}
		return ""
	}
	newest := candidates[0].Run
	if slices.ContainsFunc(stored, func(each baselinestore.Judgement) bool { return each.Run == newest && j.isOf(each.Report) }) {
		return ""
	}
	return fmt.Sprintf("run %s has stored a baseline of this update, and there is no judgement by it: judge the update with \"after\"", words.External(newest))
}

func undecided(message string) *fleet.Judgement {
	return &fleet.Judgement{Status: string(metav1.ConditionUnknown), Message: message}
}

func unreadable(err error) string {
	message := "the stored judgements could not be read: " + words.External(err.Error())
	if apierrors.IsForbidden(err) {
		message += `; have an administrator of the cluster apply the roles that "oc preflight auth history" prints`
	}
	return message
}

// newest is the judgement of the newest sample of the update; nil for none.
func (j judged) newest(stored []baselinestore.Judgement) *fleet.Judgement {
	var newest *afterupdate.Report
	for i := range stored {
		if made := &stored[i].Report; stored[i].Authentication.State == record.Authentic && j.isOf(*made) && (newest == nil || later(*made, *newest)) {
			newest = made
		}
	}
	if newest == nil {
		return nil
	}
	return &fleet.Judgement{Status: string(statusOf(newest.Decision)), Since: newest.Samples.Last, Message: words.External(newest.Message)}
}

// isOf reports whether a judgement is of the update: the same version may be updated to again.
func (j judged) isOf(made afterupdate.Report) bool {
	return made.Cluster.ID == j.clusterID && made.Update.To == j.To.Version &&
		made.Update.StartTime == words.Time(j.Started) && made.Update.CompletionTime == words.Time(j.Completed)
}

// later reports whether the baseline of a is later than that of b, by which the controller judges as well, or of equal ones the
// last sample, or whether of equal ones a is not in favor of the update.
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
	return slices.Index([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionUnknown, metav1.ConditionFalse}, statusOf(decision))
}

// statusOf is the status of the condition AfterUpdate, as the controller states it (package projection).
func statusOf(decision afterupdate.Decision) metav1.ConditionStatus {
	switch decision {
	case afterupdate.Good:
		return metav1.ConditionTrue
	case afterupdate.Regressed, afterupdate.RolledBack:
		return metav1.ConditionFalse
	case afterupdate.Settling, afterupdate.Unfinished, afterupdate.Undecided:
	}
	return metav1.ConditionUnknown
}

// doubt is about a judgement that is not authentic and may be of the update, as a clause; empty for none.
func (j judged) doubt(ctx context.Context, reached *cluster.Cluster, stored []baselinestore.Judgement) string {
	unverified := slices.DeleteFunc(slices.Clone(stored), func(each baselinestore.Judgement) bool { return each.Authentication.State == record.Authentic })
	if len(unverified) == 0 {
		return ""
	}
	runs := map[string]record.Record{}
	if listed, err := recordstore.New(reached.Kubernetes).List(ctx); err == nil { // without the records, each may be of the update
		for _, each := range listed {
			runs[each.ID] = each
		}
	}
	for _, each := range unverified {
		if of, known := runs[each.Run]; known && !j.mayBeAfter(of) {
			continue
		}
		lead := fmt.Sprintf("the stored judgement of run %s is not authentic: ", words.External(each.Run))
		if each.Authentication.State == record.Unverifiable {
			lead = fmt.Sprintf("unknown whether the stored judgement of run %s is authentic: ", words.External(each.Run))
		}
		return lead + words.External(each.Authentication.Cause)
	}
	return ""
}

// mayBeAfter reports whether a run may have stored the baseline of the update: not one that began after the update did,
// or ended before the release was complete from which the update started. A record that is not authentic may state other
// times, but who can write it can delete the judgement as well.
func (j judged) mayBeAfter(run record.Record) bool {
	from := j.From.CompletionTime
	return !run.StartTime.After(j.Started) && (from == nil || run.CompletionTime.IsZero() || !run.CompletionTime.Before(from.Time))
}
