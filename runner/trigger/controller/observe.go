package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// observed is the cluster as a plan and the UpdatePreflights depend on it.
type observed struct {
	state   runplan.State
	targets []runplan.Target
	decided runplan.Verdicts
	// records are all, newest first, as they were listed. Ended is also why a published
	// verdict does not hold that its record does not state to have ended.
	records []record.Record
	// unjudged is true where it is unknown whether a published verdict holds.
	unjudged bool
}

// sealing is how long after its creation a record may have no MAC yet, which covers the UID
// that the API server has assigned.
const sealing = 10 * time.Second

// unjudgedPause is the time until a published verdict is judged again of which it is unknown
// whether it holds. No event has to follow when that can be read again.
const unjudgedPause = time.Minute

// retry is when to observe again what could not be read; zero for nothing.
func (o observed) retry() time.Time {
	switch {
	case o.unsealed():
		return o.state.Now.Add(time.Second)
	case o.unjudged:
		return o.state.Now.Add(unjudgedPause)
	}
	return time.Time{}
}

// unsealed reports whether a run has just begun and its record has no MAC yet. No event
// follows when it has one.
func (o observed) unsealed() bool {
	return slices.ContainsFunc(o.records, func(recorded record.Record) bool {
		return recorded.Phase == record.Running && recorded.Verified() != nil && o.state.Now.Sub(recorded.StartTime) < sealing
	})
}

// observe reads what a plan depends on. The targets are the objects of the controller, and the
// subjects' own.
func (c *controller) observe(ctx context.Context, version *configv1.ClusterVersion, wanted []runplan.Target, subjects []runplan.Subject) (observed, error) {
	draining, err := c.anyDraining(ctx)
	if err != nil {
		return observed{}, fmt.Errorf("could not list the nodes: %w", err)
	}
	all := slices.Clone(wanted)
	for _, subject := range subjects {
		if subject.Unknown == "" {
			all = append(all, subject.Target)
		}
	}
	listed, err := c.records.List(ctx)
	if err != nil {
		return observed{}, err
	}
	present := standing.Present{Cluster: snapshot.Of(c.cluster), Now: c.cluster.Now()}
	runs, decided, err := c.runs(ctx, listed, all, present)
	if err != nil {
		return observed{}, err
	}
	unjudged := c.judgeOthers(ctx, listed, decided, present)
	state := runplan.State{
		Now: present.Now, ClusterVersion: version, Draining: draining, Ahead: c.options.Ahead,
		Runs: runs, Requests: runplan.RequestsOf(subjects, decided),
	}
	return observed{state: state, targets: all, decided: decided, records: listed, unjudged: unjudged}, nil
}

// anyDraining reports whether a node is being drained.
func (c *controller) anyDraining(ctx context.Context) (bool, error) {
	var all corev1.NodeList
	if err := c.reader.List(ctx, &all); err != nil {
		return false, err
	}
	return slices.ContainsFunc(all.Items, draining), nil
}

// runs are the recorded runs that cover what the controller or a request runs, and the
// verdicts of the targets, which it reads. Records that are not authentic do not count. Those
// whose verdict does not hold have the cause in Ended afterwards.
func (c *controller) runs(ctx context.Context, listed []record.Record, targets []runplan.Target, present standing.Present) ([]runplan.Run, runplan.Verdicts, error) {
	wanted, selections := map[runplan.Covered]bool{}, map[string]bool{"": true}
	for _, target := range targets {
		wanted[target.Covered()], selections[target.Selection] = true, true
	}
	var runs []runplan.Run
	decided := runplan.Verdicts{}
	for i, recorded := range listed {
		run := c.runOf(recorded)
		if !selections[run.Selection] || recorded.Verified() != nil {
			continue
		}
		if newest(recorded, listed) && wanted[run.Covered()] {
			stored, err := c.judge(ctx, &run, present)
			listed[i].Ended = cmp.Or(recorded.Ended, doesNotHold(stored, err))
			if errors.As(err, new(*record.UnauthenticError)) {
				continue // it was edited after the list
			}
			if err != nil {
				return nil, nil, err
			}
			decided.Add(run.Covered(), stored)
		}
		runs = append(runs, run)
	}
	return runs, decided, nil
}

// judgeOthers judges the verdicts that are published and that no target has, such as that of a
// user's run with another selection: their records have the cause in Ended afterwards where they
// do not hold. It reports whether one could not be judged, which does not hold until it can be.
func (c *controller) judgeOthers(ctx context.Context, listed []record.Record, decided runplan.Verdicts, present standing.Present) (unjudged bool) {
	for i, recorded := range listed {
		run := c.runOf(recorded)
		_, judged := decided[run.Covered()]
		if judged || recorded.Phase != record.Complete || recorded.Provisional || recorded.Ended != "" || recorded.Verified() != nil {
			continue
		}
		stored, err := c.judge(ctx, &run, present)
		cause := doesNotHold(stored, err)
		listed[i].Ended = cause
		if err != nil {
			c.options.Logger.Warn("a published verdict could not be judged", "run", recorded.ID, "error", err)
		}
		isUnknown := cause != "" && !fingerprint.IsChange(cause) && run.ValidUntil.After(present.Now)
		unjudged = unjudged || isUnknown || err != nil && !errors.As(err, new(*record.UnauthenticError))
	}
	return unjudged
}

// doesNotHold is why a verdict that was judged, or could not be, does not hold; empty while it
// does.
func doesNotHold(judged report.Report, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case judged.Standing == nil:
		return "its report cannot be used"
	case len(judged.Standing.Ended) > 0:
		return judged.Standing.Ended[0]
	}
	return ""
}

// runOf is a run without what only its report has.
func (c *controller) runOf(recorded record.Record) runplan.Run {
	run := runplan.Run{
		ID: recorded.ID, Target: recorded.Target, Requester: recorded.Requester, Generation: recorded.Generation, Began: recorded.StartTime,
		Selection: recorded.Selection, Ended: recorded.CompletionTime,
	}
	switch {
	case recorded.Phase.Final() && recorded.ToolVersion != c.options.Run.Hooks.ToolVersion:
		run.Selection += " by version " + recorded.ToolVersion // another version may find something else
	case run.Selection == c.selection:
		run.Selection = ""
	}
	return run
}

// newest reports whether no other complete run of the same target, selection and version of the tool ended
// later.
func newest(recorded record.Record, listed []record.Record) bool {
	return recorded.Phase == record.Complete && !slices.ContainsFunc(listed, func(other record.Record) bool {
		return other.Phase == record.Complete && other.Verified() == nil && other.Selection == recorded.Selection && other.ToolVersion == recorded.ToolVersion &&
			other.Target.Digest() == recorded.Target.Digest() && other.CompletionTime.After(recorded.CompletionTime)
	})
}

// judge reads the verdict of a complete run, and whether it is still valid. A report that
// cannot be decoded, such as one of a later version, counts as Undecided. A
// record that is not authentic is a *record.UnauthenticError.
func (c *controller) judge(ctx context.Context, run *runplan.Run, present standing.Present) (report.Report, error) {
	recorded, err := c.records.Get(ctx, run.ID)
	if err != nil {
		return report.Report{}, fmt.Errorf("could not read the verdict of run %s: %w", run.ID, err)
	}
	if err := recorded.Verified(); err != nil {
		return report.Report{}, err
	}
	stored, err := standing.Stored(recorded)
	if err != nil {
		c.options.Logger.Warn("a recorded report cannot be used", "run", run.ID, "error", err)
		return report.Report{Verdict: verdict.Verdict{Decision: verdict.Undecided}}, nil
	}
	causes := standing.Ended(ctx, recorded, stored, present)
	c.outdate(ctx, recorded, causes, present.Now)
	run.Decision, run.Accepts = runplan.DecisionOf(stored), len(stored.Verdict.Accepted) > 0
	for _, cause := range causes {
		if strings.HasPrefix(cause, judgedAgain) {
			run.Differs = true
		} else {
			run.Changed = true
		}
	}
	run.ValidUntil, _ = standing.ValidUntil(stored)
	stored.Standing = &report.Standing{Ended: causes}
	return stored, nil
}

// outdate states in the record that its verdict has ended because the cluster has changed,
// for the readers that only compare times, such as the cluster-version operator. What could
// not be read may be unchanged, and does not end a verdict for good.
func (c *controller) outdate(ctx context.Context, recorded record.Record, causes []string, now time.Time) {
	i := slices.IndexFunc(causes, func(cause string) bool { return fingerprint.IsChange(cause) })
	if i < 0 || recorded.Ended != "" {
		return
	}
	if err := c.records.Outdate(ctx, recorded.ID, causes[i], now); err != nil {
		c.options.Logger.Warn("the end of a verdict could not be recorded", "run", recorded.ID, "cause", causes[i], "error", err)
	}
}

// withAttempts adds the runs of this process that the records do not have.
func withAttempts(recorded, own []runplan.Run) []runplan.Run {
	all := slices.Clone(recorded)
	for _, run := range own {
		known := slices.ContainsFunc(recorded, func(r runplan.Run) bool {
			same := r.Covered() == run.Covered()
			return same && (run.InProgress() && r.InProgress() && r.Ours() || run.ID != "" && r.ID == run.ID)
		})
		if !known {
			all = append(all, run)
		}
	}
	return all
}
