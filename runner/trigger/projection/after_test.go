package projection_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/projection"
)

func judged(decision afterupdate.Decision, regressions int) *afterupdate.Report {
	made := &afterupdate.Report{Update: afterupdate.Update{Run: "a-run"}, Decision: decision, Message: "as it is"}
	for i := range regressions {
		made.Regressions = append(made.Regressions, afterupdate.Regression{Name: fmt.Sprintf("Problem-%02d", i/2)}) // each of two objects
	}
	return made
}

func TestAfterUpdate(t *testing.T) {
	if status := projection.Status(object(), projection.Observation{Now: noon}); status.AfterUpdate != nil ||
		meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAfterUpdate) != nil {
		t.Errorf("an update that was not judged has %+v", status.AfterUpdate)
	}
	for name, tc := range map[string]struct {
		reason string
		judged *afterupdate.Report
		status metav1.ConditionStatus
		// names and omitted are what the status has.
		names   int
		omitted int32
	}{
		"Good":      {reason: "nothing is worse", judged: judged(afterupdate.Good, 0), status: metav1.ConditionTrue},
		"Regressed": {reason: "a name is stated once", judged: judged(afterupdate.Regressed, 4), status: metav1.ConditionFalse, names: 2},
		"Most": {
			reason: "the list of names is full", judged: judged(afterupdate.Regressed, 2*v1alpha1.MaxNames),
			status: metav1.ConditionFalse, names: v1alpha1.MaxNames,
		},
		"Many": {
			reason: "more are counted", judged: judged(afterupdate.Regressed, 2*v1alpha1.MaxNames+5), status: metav1.ConditionFalse,
			names: v1alpha1.MaxNames, omitted: 3,
		},
		"RolledBack": {reason: "the update did not stay", judged: judged(afterupdate.RolledBack, 0), status: metav1.ConditionFalse},
		"Settling":   {reason: "it is too early", judged: judged(afterupdate.Settling, 0), status: metav1.ConditionUnknown},
		"Undecided":  {reason: "there is no baseline", judged: judged(afterupdate.Undecided, 0), status: metav1.ConditionUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			status := projection.Status(object(), projection.Observation{
				Now: noon, Target: update.Release{Version: version, Image: image("1")},
				After: tc.judged,
			})
			condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAfterUpdate)
			if condition == nil || condition.Status != tc.status || condition.Reason != string(tc.judged.Decision) ||
				condition.Message != tc.judged.Message {
				t.Errorf("%s: the condition is %+v, want %s", tc.reason, condition, tc.status)
			}
			got := status.AfterUpdate
			if got == nil || got.Run != "a-run" || got.Decision != string(tc.judged.Decision) || len(got.Regressions) != tc.names ||
				got.RegressionsOmitted != tc.omitted {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
		})
	}
}

// A soak on a hub counts from the stored sample, as in a table, also where the judgement was not known for a while.
func TestAfterUpdateSince(t *testing.T) {
	mine := object()
	for i, step := range []struct {
		reason   string
		decision afterupdate.Decision
		sample   time.Duration
		want     time.Duration
	}{
		{"it was judged before the controller began", afterupdate.Good, -time.Hour, -time.Hour},
		{"the store could not be read", afterupdate.Undecided, 0, time.Minute},
		{"it is the same judgement", afterupdate.Good, -time.Hour, -time.Hour},
		{"it became worse", afterupdate.Regressed, 2 * time.Minute, 2 * time.Minute},
		{"it is good again", afterupdate.Good, 3 * time.Minute, 3 * time.Minute},
	} {
		made := judged(step.decision, 0)
		if step.sample != 0 {
			made.Samples.Last = noon.Add(step.sample).Format(time.RFC3339)
		}
		mine.Status = projection.Status(mine, projection.Observation{
			Now:    noon.Add(time.Duration(i) * time.Minute),
			Target: update.Release{Version: version, Image: image("1")}, After: made,
		})
		if got := meta.FindStatusCondition(mine.Status.Conditions,
			v1alpha1.ConditionAfterUpdate).LastTransitionTime.Time; !got.Equal(noon.Add(step.want)) {
			t.Errorf("%s: since %s, want %s", step.reason, got, noon.Add(step.want))
		}
	}
}

// The condition has the time at which its status changed.
func TestAfterUpdateTransition(t *testing.T) {
	mine := object()
	since := func(after time.Duration, decision afterupdate.Decision) time.Time {
		mine.Status = projection.Status(mine, projection.Observation{
			Now:    noon.Add(after),
			Target: update.Release{Version: version, Image: image("1")}, After: judged(decision, 0),
		})
		return meta.FindStatusCondition(mine.Status.Conditions, v1alpha1.ConditionAfterUpdate).LastTransitionTime.Time
	}
	for _, step := range []struct {
		after    time.Duration
		decision afterupdate.Decision
		want     time.Duration
	}{
		{0, afterupdate.Unfinished, 0},
		{time.Minute, afterupdate.Settling, 0},
		{time.Hour, afterupdate.Good, time.Hour},
		{2 * time.Hour, afterupdate.Good, time.Hour},
	} {
		if got := since(step.after, step.decision); !got.Equal(noon.Add(step.want)) {
			t.Errorf("%s after %s: since %s, want %s", step.decision, step.after, got, noon.Add(step.want))
		}
	}
}
