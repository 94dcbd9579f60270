package controller

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/acceptance"
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
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

const (
	// cancelTimeout bounds the end of one run of another process.
	cancelTimeout = 2 * time.Minute
	// maxAttempts is how many runs without a record double the pause.
	maxAttempts = 7
)

// errNotNeeded is why a run is ended early: its target was withdrawn, or another one
// comes first.
var errNotNeeded = errors.New("the result of the run is not needed")

// errPostponed is why a run that an administrator requested gives way: it is continued
// later.
var errPostponed = errors.New("another run comes first")

// preflights are the functions of runner that a conductor calls.
type preflights interface {
	// run makes the preflight of a target. A run that is ended for another cause than
	// errNotNeeded is left for the next leader. The report of a run that failed is empty.
	run(ctx context.Context, target runplan.Target) (report.Report, error)
	// cancel ends the recorded run with that ID.
	cancel(ctx context.Context, id string) error
}

// conductor runs one preflight at a time. Its methods may be called concurrently.
type conductor struct {
	preflights preflights
	now        func() time.Time
	logger     *slog.Logger
	// changed has room for one value: there is another plan.
	changed chan struct{}
	// ended has room for one value: a run has ended.
	ended chan struct{}

	mutex sync.Mutex
	// round counts the runs that have ended.
	round  int
	plan   order
	flight *flight
	// attempts are the last runs of this process, at most maxAttempts of each target.
	attempts map[runplan.Covered][]runplan.Run
}

// order is a plan, and the generation of the ClusterVersion that it is for.
type order struct {
	runplan.Plan
	generation int64
}

// flight is the run of this process that is in progress.
type flight struct {
	run    runplan.Run
	object types.UID
	cancel context.CancelCauseFunc
}

// ending is why the run is ended for a plan with another one.
func (f flight) ending(plan runplan.Plan) error {
	if slices.Contains(plan.Requests, f.object) {
		return errPostponed
	}
	return errNotNeeded
}

func newConductor(preflights preflights, now func() time.Time, logger *slog.Logger) *conductor {
	return &conductor{
		preflights: preflights, now: now, logger: logger,
		changed: make(chan struct{}, 1), ended: make(chan struct{}, 1), attempts: map[runplan.Covered][]runplan.Run{},
	}
}

// present returns the run of this process that is in progress, if any, and its last
// runs. The round is for follow.
func (c *conductor) present() (round int, runs []runplan.Run) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, attempts := range c.attempts {
		runs = append(runs, attempts...)
	}
	if c.flight != nil {
		runs = append(runs, c.flight.run)
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
	if c.flight != nil && (plan.Run == nil || plan.Run.Digest() != c.flight.run.Target.Digest()) {
		cause := c.flight.ending(plan.Plan)
		c.logger.Info("ending the run", "version", c.flight.run.Target.Version, "cause", cause)
		c.flight.cancel(cause)
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
		c.logger.Info("canceled a run", "run", id, "cause", errNotNeeded, "error", err)
	}
}

// runPlanned makes the run of the plan, if it has one.
func (c *conductor) runPlanned(ctx context.Context) {
	flying, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	target, begun := c.begin(cancel)
	if !begun {
		return
	}
	c.logger.Info("running the preflight", "version", target.Version, "image", target.Image, "requester", target.Requester, "object", target.Object.Name)
	decided, err := c.preflights.run(flying, target)
	c.logger.Info("the preflight has ended", "version", target.Version, "run", decided.Run.ID, "phase", decided.Run.Phase,
		"decision", decided.Verdict.Decision, "error", err)
	c.end(decided.Run.ID, err)
}

func (c *conductor) begin(cancel context.CancelCauseFunc) (runplan.Target, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.plan.Run == nil {
		return runplan.Target{}, false
	}
	target := *c.plan.Run
	run := runplan.Run{Target: target.Release, Requester: target.Requester, Selection: target.Selection, Generation: c.plan.generation}
	c.flight = &flight{cancel: cancel, run: run, object: target.Object.UID}
	return target, true
}

// end remembers the run: a run that failed before it was recorded is not repeated at
// once. The cause is why it has no report; nil for none.
func (c *conductor) end(id string, cause error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	ended := c.flight.run
	ended.ID, ended.Ended = id, c.now()
	if id == "" && cause != nil {
		ended.Failure = cause.Error()
	}
	attempts := append(c.attempts[ended.Covered()], ended)
	c.attempts[ended.Covered()] = attempts[max(0, len(attempts)-maxAttempts):]
	c.round++
	if c.plan.Run != nil && c.plan.Run.Digest() == ended.Target.Digest() {
		c.plan.Run = nil // whether it runs again is for the next plan
	}
	c.flight = nil
	announcement.Signal(c.ended)
}

// forget forgets the last runs of other targets than these.
func (c *conductor) forget(targets []runplan.Target) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	maps.DeleteFunc(c.attempts, func(of runplan.Covered, _ []runplan.Run) bool {
		return !slices.ContainsFunc(targets, func(target runplan.Target) bool { return target.Covered() == of })
	})
}

// onCluster runs preflights on a cluster.
type onCluster struct {
	cluster    *cluster.Cluster
	options    runner.Options
	monitoring monitoring.Finder
}

func (p onCluster) run(ctx context.Context, target runplan.Target) (report.Report, error) {
	options := p.options
	options.Hooks.Requester = target.Requester
	options.Judgement.Monitoring = monitoring.New(p.monitoring, monitoring.DefaultTimeout) // it reads everything once
	if object := target.Object; object.Name != "" {
		options.Selection.Images = cmp.Or(object.Images, options.Selection.Images)
		options.Judgement.Accept = slices.Concat(options.Judgement.Accept, acceptance.Named("UpdatePreflight "+object.Name, object.Accepted...))
	}
	options.Hooks.OnInterrupt = func(string) runner.Interruption {
		if errors.Is(context.Cause(ctx), errNotNeeded) {
			return runner.CleanUp
		}
		return runner.Detach // the next leader continues
	}
	return runner.Run(ctx, p.cluster, runner.Target{Image: target.Image}, options)
}

func (p onCluster) cancel(ctx context.Context, id string) error {
	_, err := hold.Cancel(ctx, place.Of(p.cluster, hosted.Estate{}), id, progress.New(p.options.Hooks.Observer, p.options.Hooks.Logger))
	if _, ended := errors.AsType[*lease.NotRunningError](err); ended {
		return nil
	}
	return err
}
