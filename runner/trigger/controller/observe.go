package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/selection"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// observed is the cluster as a plan and the UpdatePreflights depend on it.
type observed struct {
	state   runplan.State
	targets []runplan.Target
	decided runplan.Verdicts
	// records are those to publish, newest first. Ended is also why a verdict does not count that its record does not
	// state to have ended.
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
	question := standing.Question{Present: standing.Present{Cluster: snapshot.Of(c.cluster), Now: c.cluster.Now()}, Asked: c.asked, Runs: listed}
	unjudged := false
	read, err := question.Read(ctx, c.records.Get, func(run string, err error) {
		c.options.Logger.Warn("a verdict could not be read", "run", run, "error", err)
		unjudged = true
	})
	if err != nil {
		return observed{}, err
	}
	for _, recorded := range listed {
		if stored, found := read.Report(recorded.ID); found {
			c.outdate(ctx, recorded, stored.Standing.Ended, question.Now)
			unjudged = unjudged || recorded.Ended == "" && isUnknown(stored, question.Now)
		}
	}
	decided := runplan.Verdicts{}
	for _, target := range all {
		if stored, found := read.On(target.Digest(), c.askedOf(target)); found {
			decided[target.Covered()] = stored
		}
	}
	state := runplan.State{
		Now: question.Now, ClusterVersion: version, Draining: draining, Ahead: c.options.Ahead,
		Runs: c.runs(listed, all, decided), Requests: runplan.RequestsOf(subjects, decided),
	}
	return observed{state: state, targets: all, decided: decided, records: read.Published(), unjudged: unjudged}, nil
}

// anyDraining reports whether a node is being drained.
func (c *controller) anyDraining(ctx context.Context) (bool, error) {
	var all corev1.NodeList
	if err := c.reader.List(ctx, &all); err != nil {
		return false, err
	}
	return slices.ContainsFunc(all.Items, draining), nil
}

// isUnknown reports whether it is unknown if a verdict holds: nothing has certainly changed, and its time has not ended.
func isUnknown(stored report.Report, now time.Time) bool {
	until, _ := standing.ValidUntil(stored)
	return !stored.Holds() && !slices.ContainsFunc(stored.Standing.Ended, fingerprint.IsChange) && until.After(now)
}

// askedOf is what a target asks of a verdict: the controller's, with the images of the target.
func (c *controller) askedOf(target runplan.Target) selection.Asked {
	asked := c.asked
	if images := target.Object.Images; images != "" {
		asked.Covers.Images = string(images)
	}
	return asked
}

// runs are the recorded runs that cover what the controller or a request runs. The newest one of a target has what the
// verdict that counts is worth, also where that is of a run which does not take its place, such as one of another version.
func (c *controller) runs(listed []record.Record, targets []runplan.Target, decided runplan.Verdicts) []runplan.Run {
	selections := map[string]bool{"": true}
	for _, target := range targets {
		selections[target.Selection] = true
	}
	var runs []runplan.Run
	newest := map[runplan.Covered]int{}
	for _, recorded := range listed {
		run := c.runOf(recorded)
		if !selections[run.Selection] || recorded.Verified() != nil {
			continue
		}
		at, known := newest[run.Covered()]
		if recorded.Phase == record.Complete && (!known || run.Ended.After(runs[at].Ended)) {
			newest[run.Covered()] = len(runs)
		}
		runs = append(runs, run)
	}
	for of, at := range newest {
		if stored, found := decided[of]; found {
			runs[at] = worth(runs[at], stored)
		}
	}
	return runs
}

// worth is a run with what a verdict is worth.
func worth(run runplan.Run, stored report.Report) runplan.Run {
	run.Decision, run.Accepts = runplan.DecisionOf(stored), len(stored.Verdict.Accepted) > 0
	run.ValidUntil, _ = standing.ValidUntil(stored)
	again := func(cause string) bool { return strings.HasPrefix(cause, judgedAgain) }
	run.Differs = slices.ContainsFunc(stored.Standing.Ended, again)
	run.Changed = slices.ContainsFunc(stored.Standing.Ended, func(cause string) bool { return !again(cause) })
	return run
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
