package controller

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/trigger/announcement"
	"github.com/openshift/update-preflight/runner/trigger/plannedrun"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// cancelTimeout bounds the end of one run of another process.
const cancelTimeout = 2 * time.Minute

// errPostponed is why a run that an administrator requested gives way: it is continued
// later.
var errPostponed = errors.New("another run comes first")

// conductor runs one preflight at a time. Its methods may be called concurrently.
type conductor struct {
	preflights onCluster
	now        func() time.Time
	logger     *slog.Logger
	// changed has room for one value: there is another plan.
	changed chan struct{}
	// ended has room for one value: a run has ended.
	ended chan struct{}

	mutex sync.Mutex
	// round counts the runs that have ended.
	round   int
	plan    order
	current *plannedrun.Run
	// attempts are the last runs of this process.
	attempts []runplan.Run
}

// order is a plan, and the generation of the ClusterVersion that it is for.
type order struct {
	runplan.Plan
	generation int64
}

// endingOf is why a run is ended for a plan with another one.
func endingOf(f *plannedrun.Run, plan runplan.Plan) error {
	if slices.Contains(plan.Requests, f.Target.Object.UID) {
		return errPostponed
	}
	return plannedrun.ErrNotNeeded
}

func newConductor(preflights onCluster, now func() time.Time, logger *slog.Logger) *conductor {
	return &conductor{
		preflights: preflights, now: now, logger: logger,
		changed: make(chan struct{}, 1), ended: make(chan struct{}, 1),
	}
}

// present returns the run of this process that is in progress, if any, and its last
// runs. The round is for follow.
func (c *conductor) present() (round int, runs []runplan.Run) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	runs = slices.Clone(c.attempts)
	if c.current != nil {
		runs = append(runs, c.current.Planned)
	}
	return c.round, runs
}

// follow brings a plan about, and ends the run in progress if the plan has another one.
// A plan that was made before a run has ended is ignored: ended has announced the end.
func (c *conductor) follow(round int, plan order) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if round != c.round {
		return
	}
	c.plan = plan
	if c.current != nil && (plan.Run == nil || plan.Run.Digest() != c.current.Target.Digest()) {
		cause := endingOf(c.current, plan.Plan)
		c.logger.Info("ending the run", "version", c.current.Target.Version, "cause", cause)
		c.current.Cancel(cause)
	}
	announcement.Signal(c.changed)
}

// Start implements manager.Runnable: it runs the plans until ctx is done, and returns
// when the run in progress has ended.
func (c *conductor) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.changed:
			c.cancelOthers(ctx)
			c.runPlanned(ctx)
		}
	}
}

// cancelOthers ends the runs of other processes, such as a leader that was
// killed, that are not needed.
func (c *conductor) cancelOthers(ctx context.Context) {
	c.mutex.Lock()
	ids := c.plan.Cancel
	c.plan.Cancel = nil
	c.mutex.Unlock()
	for _, id := range ids {
		bound, release := context.WithTimeout(ctx, cancelTimeout)
		err := c.preflights.cancel(bound, id)
		release()
		c.logger.Info("canceled a run", "run", id, "cause", plannedrun.ErrNotNeeded, "error", err)
	}
}

// runPlanned makes the run of the plan, if it has one.
func (c *conductor) runPlanned(ctx context.Context) {
	begun := c.begin(ctx)
	if begun == nil {
		return
	}
	target := begun.Target
	c.logger.Info("running the preflight", "version", target.Version, "image", target.Image, "requester", target.Requester, "object", target.Object.Name)
	result := <-begun.Ended()
	decided := result.Report
	c.logger.Info("the preflight has ended", "version", target.Version, "run", decided.Run.ID, "phase", decided.Run.Phase,
		"decision", decided.Verdict.Decision, "error", result.Err)
	c.end(begun.Planned, decided.Run.ID, result.Err)
}

// begin begins the run of the plan; nil where it has none.
func (c *conductor) begin(ctx context.Context) *plannedrun.Run {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.plan.Run != nil {
		c.current = plannedrun.Start(ctx, *c.plan.Run, runplan.Begun(*c.plan.Run, c.plan.generation), c.preflights.run, func() {})
	}
	return c.current
}

// end remembers the run: a run that failed before it was recorded is not repeated at
// once. The cause is why it has no report; nil for none.
func (c *conductor) end(ended runplan.Run, id string, cause error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	ended.ID, ended.Ended = id, c.now()
	if id == "" && cause != nil {
		ended.Failure = cause.Error()
	}
	c.attempts = runplan.Remember(c.attempts, ended)
	c.round++
	if c.plan.Run != nil && c.plan.Run.Digest() == ended.Target.Digest() {
		c.plan.Run = nil // whether it runs again is for the next plan
	}
	c.current = nil
	announcement.Signal(c.ended)
}

// forget forgets the last runs of other targets than these.
func (c *conductor) forget(targets []runplan.Target) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.attempts = slices.DeleteFunc(c.attempts, func(run runplan.Run) bool {
		return !slices.ContainsFunc(targets, func(target runplan.Target) bool { return target.Covered() == run.Covered() })
	})
}

// onCluster runs preflights on a cluster.
type onCluster struct {
	cluster    *cluster.Cluster
	options    runner.Options
	monitoring monitoring.Finder
}

// run makes the preflight of a target.
func (p onCluster) run(ctx context.Context, target runplan.Target) (report.Report, error) {
	options := plannedrun.Options(ctx, p.options, target)
	options.Judgement.Monitoring = monitoring.New(p.monitoring, monitoring.DefaultTimeout) // it reads everything once
	return runner.Run(ctx, p.cluster, runner.Target{Image: target.Image}, options)
}

// cancel ends the recorded run with that ID.
func (p onCluster) cancel(ctx context.Context, id string) error {
	_, err := hold.Cancel(ctx, place.Of(p.cluster, hosted.Estate{}), id, progress.New(p.options.Hooks.Observer, p.options.Hooks.Logger))
	if _, ended := errors.AsType[*lease.NotRunningError](err); ended {
		return nil
	}
	return err
}
