// Package plannedrun answers: how does a planned run proceed, and what is its result?
//
// [Start] begins the run of a target; [Options] returns the options with which package runner runs it.
package plannedrun

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// ErrNotNeeded is why a run is ended early: its target was withdrawn, or another one comes first.
var ErrNotNeeded = errors.New("the result of the run is not needed")

// Run is a run of this process that is in progress.
type Run struct {
	Target runplan.Target
	// Planned is the run as a plan has it.
	Planned runplan.Run
	cancel  context.CancelCauseFunc
	ended   chan Result
}

// Result is the result of a run.
type Result struct {
	// Report is empty for a run that failed with Err.
	Report report.Report
	Err    error
	// Cause is why the run was ended early; nil if it was not.
	Cause error
}

// Start begins a run, which preflight executes, and calls announce when it has ended. It ends early when ctx is done.
func Start(ctx context.Context, target runplan.Target, run runplan.Run,
	preflight func(context.Context, runplan.Target) (report.Report, error), announce func(),
) *Run {
	running, cancel := context.WithCancelCause(ctx)
	r := &Run{Target: target, Planned: run, cancel: cancel, ended: make(chan Result, 1)}
	go func() {
		defer cancel(nil)
		decided, err := preflight(running, target)
		r.ended <- Result{Report: decided, Err: err, Cause: context.Cause(running)}
		announce()
	}()
	return r
}

// Cancel ends the run early, for that cause.
func (r *Run) Cancel(cause error) { r.cancel(cause) }

// Ended has the result when the run has ended.
func (r *Run) Ended() <-chan Result { return r.ended }

// Options returns the options for the run of a target, in addition to the options of all runs. A run that is ended
// early for another cause than ErrNotNeeded is left for the next leader.
func Options(ctx context.Context, options runner.Options, target runplan.Target) runner.Options {
	options.Hooks.Requester = target.Requester
	if object := target.Object; object.Name != "" {
		options.Selection.Images = cmp.Or(object.Images, options.Selection.Images)
		options.Judgement.Accept = slices.Concat(options.Judgement.Accept, acceptance.Named("UpdatePreflight "+object.Name, object.Accepted...))
	}
	options.Hooks.OnInterrupt = func(string) runner.Interruption {
		if errors.Is(context.Cause(ctx), ErrNotNeeded) {
			return runner.CleanUp
		}
		return runner.Detach
	}
	return options
}

// Selection returns the coverage of the runs with these options and a mode of the images, as in a runplan.Target.
func Selection(options runner.Options) func(image.Mode) string {
	all := options.Coverage()
	return func(images image.Mode) string {
		other := options
		other.Selection.Images = images
		if covered := other.Coverage(); covered != all {
			return covered
		}
		return ""
	}
}
