// Package execution answers: what do the checks of this run find?
//
// [Execution.Run] runs the Jobs of the release, the checks of its images and the built-in
// checks, side by side.
package execution

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/contents"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/launch/writeguard"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/rehearsal"
)

// Execution runs the checks of one run.
type Execution struct {
	Scene    scene.Scene
	From     departure.Departure
	Target   update.Release
	Contents contents.Contents
	// Pulling is how images are pulled, and Images how closely those of the release are inspected.
	Pulling estate.Pulling
	Images  image.Mode
	// Rehearsal is whether the writes of the release are rehearsed.
	Rehearsal rehearsal.Mode
	// Jobs are the Jobs of the release; nil for a run without Jobs.
	Jobs *Jobs
	// Sources are the findings of the stages before.
	Sources  []collector.Source
	Progress *progress.Serial
	// Reported is called with the findings of each source, one call at a time.
	Reported func(source string, findings []finding.Finding)
}

// Jobs are the Jobs of a run that this process holds.
type Jobs struct {
	// Run is what the objects of the run are named and labelled by.
	Run jobplan.Run
	// Parts are the Jobs of each cluster: first those in the cluster that is judged.
	Parts []Part
	// Parallelism bounds the Jobs that are unfinished at one time in each cluster.
	Parallelism int
	// Known are results that need not be collected again. Those of an earlier run are
	// Reused, those of a run that another process began are Resumed.
	Known           hold.Results
	Reused, Resumed bool
}

// Part is the Jobs of a run in one cluster.
type Part struct {
	place.Place

	Planned jobplan.Plan
	// Guard denies the pods of the checks to write.
	Guard *writeguard.Guard
	// started are the checks that this process has started.
	started jobplan.Plan
}

// PartsOf are the Jobs that a run has of a draft in each place.
func PartsOf(places []place.Place, draft jobplan.Draft, run jobplan.Run) []Part {
	parts := make([]Part, 0, len(places))
	for _, p := range places {
		planned := draft.Bind(p.Run(run))
		parts = append(parts, Part{Place: p, Planned: planned, Guard: writeguard.New(p.Objects, p.Launcher, planned.Run)})
	}
	return parts
}

// Places are the clusters of the Jobs.
func (j *Jobs) Places() []place.Place {
	places := make([]place.Place, len(j.Parts))
	for i, part := range j.Parts {
		places[i] = part.Place
	}
	return places
}

// Checks are the checks of all clusters.
func (j *Jobs) Checks() []jobplan.Check {
	if j == nil {
		return nil
	}
	var all []jobplan.Check
	for _, part := range j.Parts {
		all = append(all, part.Planned.Checks...)
	}
	return all
}

// Found is what all checks have found, and how far the run came.
type Found struct {
	Collection collector.Collection
	// Phase is report.PhaseComplete or report.PhaseInterrupted.
	Phase string
	// Scene is the cluster as the built-in checks saw it.
	Scene scene.Scene
}

// Run runs all checks and waits for them. An error means that the checks of the release
// could not be started; there may be objects to delete.
func (e Execution) Run(ctx context.Context) (Found, error) {
	sources, err := e.start(ctx)
	if err != nil {
		return Found{}, err
	}
	found := e.collect(ctx, append(slices.Clip(e.Sources), sources...))
	if errors.Is(ctx.Err(), context.Canceled) {
		found.Phase = report.PhaseInterrupted
		return found, nil
	}
	findings := found.Collection.Findings
	findings = e.verify(ctx, findings)
	e.From.Annotate(found.Scene, findings)
	// Which acceptances are not needed is known only when all checks have reported.
	found.Collection.Findings = append(findings, acceptance.Review(acceptance.Target{
		Account: found.Scene.Account(e.Target.Version), Findings: findings, NoJobs: !e.Contents.Readable(),
	})...)
	return found, nil
}

// collect runs the checks of the release, which have started, and those that are built in:
// these as soon as CVO has processed the spec.
func (e Execution) collect(ctx context.Context, started []collector.Source) Found {
	var mutex sync.Mutex
	reported := func(source collector.Source, findings []finding.Finding) {
		mutex.Lock()
		defer mutex.Unlock()
		e.reported(source.Name, findings)
	}
	released := make(chan collector.Collection, 1)
	go func() { released <- collector.Collect(ctx, started, reported) }()
	present := e // what has started reads e
	present.Scene = e.Scene.AwaitStatus(ctx)
	own := collector.Collect(ctx, slices.Concat(
		present.images(ctx), departure.Sources(present.Scene, e.From, e.Target.Version), present.componentPolicies(), present.sitePolicies(), present.foresee(), rehearse(present),
	), reported)
	collected := (<-released).And(own).Merged(departure.Policy(present.Scene, e.From, e.Target.Version).Accepted)
	return Found{Collection: collected, Phase: report.PhaseComplete, Scene: present.Scene}
}

// reported reports the findings of one source. An interruption is no result: the check
// continues if the run is detached from.
func (e Execution) reported(source string, findings []finding.Finding) {
	interrupted := func(f finding.Finding) bool { return f.Reason == collector.ReasonInterrupted.String() }
	if slices.ContainsFunc(findings, interrupted) {
		return
	}
	e.Reported(source, findings)
	e.Progress.Reported(findings)
}

// foresee are the built-in checks that compare the release with the cluster; none of a guest that
// cannot be reached.
func (e Execution) foresee() []collector.Source {
	subject, err := departure.Subject(e.Scene, e.From, e.Target.Version)
	if err != nil {
		return nil // departure.Sources reports it
	}
	checks, _ := e.Contents.Foresee(e.Scene.Cluster.Dynamic)
	return collector.Bind(subject, e.Scene.Settings.Estate.Guest(checks))
}
