package execution

import (
	"context"
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/runner/audit"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/selection"
)

// start validates and launches the checks of the release, and returns a source for each.
func (e Execution) start(ctx context.Context) ([]collector.Source, error) {
	if e.Jobs == nil {
		return nil, nil
	}
	var sources []collector.Source
	for _, part := range e.Jobs.Parts {
		if len(part.Planned.Checks) == 0 {
			continue
		}
		started, err := e.startPart(ctx, part)
		if err != nil {
			return nil, err
		}
		sources = append(sources, part.Sources(started)...)
	}
	return sources, nil
}

// startPart starts the checks of one cluster.
func (e Execution) startPart(ctx context.Context, part Part) ([]collector.Source, error) {
	if e.Jobs.Reused {
		return e.reuse(ctx, part)
	}
	planned := accountcopy.Make(ctx, part.Cluster.Kubernetes, part.Planned)
	if e.Jobs.Resumed {
		if err := part.Launcher.Resume(ctx, planned); err != nil {
			return nil, err
		}
	}
	part.Guard.Begin(ctx)
	defer func() { _ = part.Guard.Created() }() // before the objects of a run that fails are deleted
	e.Progress.Stepf("validating the checks of the release: %d", len(planned.Checks))
	rejected, valid := part.Launcher.Validate(ctx, planned)
	if err := launch.Ungrantable(rejected); err != nil {
		return nil, err
	}
	sources := selection.Refused(rejected)
	if len(valid.Checks) > 0 {
		guarded, allowed := e.guard(ctx, part, valid)
		sources, valid = append(sources, guarded...), allowed
	}
	if err := part.Launcher.Prepare(ctx, valid); err != nil {
		return nil, err
	}
	for _, text := range exceeded(valid.Checks) {
		e.Progress.Step(text)
	}
	e.Progress.Stepf("running the checks of the release: %d", len(valid.Checks))
	running, err := jobs.Sources(ctx, part.Cluster.Kubernetes, part.Launcher, valid, jobs.Options{
		Parallelism: e.Jobs.Parallelism, Known: e.Jobs.Known, Progress: e.Progress.Status,
	})
	return append(sources, running...), err
}

// exceeded describes the quotas that checks wait for, each once.
func exceeded(checks []jobplan.Check) []string {
	var texts []string
	for _, check := range checks {
		text := fmt.Sprintf("checks wait for the quota of namespace %s: %s", check.Job.Namespace, check.Exceeded)
		if check.Exceeded != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// guard puts the read-only guard into force, and audits the accounts of the checks
// meanwhile. The returned plan lacks the checks whose write access the guard cannot
// deny, unless the administrator accepts that by name.
func (e Execution) guard(ctx context.Context, part Part, valid jobplan.Plan) ([]collector.Source, jobplan.Plan) {
	audits := make(chan audit.Audit, 1)
	go func() { audits <- audit.New(ctx, part.Cluster.Kubernetes, accountcopy.Of(valid)) }()
	guard := part.Distinct(part.Guard.Await(ctx, valid))
	audited := <-audits
	sources := []collector.Source{collector.Known(guard.Name, finding.SourceJob, guard), audited.Source(guard)}

	accepted, causes := departure.Policy(e.Scene, e.From, e.Target.Version).Accepted, audited.Barred()
	var barred []string
	for _, check := range valid.Checks {
		cause, found := causes[check.Name]
		if _, ok := accepted[cause]; !found || ok {
			continue
		}
		barred = append(barred, check.Name)
		sources = append(sources, collector.Known(check.Name, finding.SourceJob, audit.NotRun(check.Name, cause)))
	}
	return sources, valid.Without(barred)
}

// verifyGuards replaces the finding about a guard that was changed while the checks ran.
func (e Execution) verifyGuards(ctx context.Context, findings []finding.Finding) {
	if e.Jobs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hold.Timeout)
	defer cancel()
	for _, part := range e.Jobs.Parts {
		changed, found := part.Guard.Changed(ctx)
		if !found {
			continue
		}
		changed = part.Distinct(changed)
		for i := range findings {
			if findings[i].Name == changed.Name {
				findings[i] = changed
			}
		}
		e.Progress.Reported([]finding.Finding{changed})
	}
}

// reuse returns the results of an earlier run, as sources of this run. The objects of each
// check are validated as for a run of it: what a Job needs, such as its namespace, may be
// gone since. A check that could not be run now has no result.
func (e Execution) reuse(ctx context.Context, part Part) ([]collector.Source, error) {
	rejected, valid := part.Launcher.Validate(ctx, part.Planned)
	if err := launch.Ungrantable(rejected); err != nil {
		return nil, err
	}
	sources := selection.Refused(rejected)
	for _, check := range valid.Checks {
		sources = append(sources, collector.Known(check.Name, finding.SourceJob, e.Jobs.Known[check.Name]...))
	}
	return sources, nil
}
