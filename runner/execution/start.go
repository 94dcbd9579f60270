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
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
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
	for i := range e.Jobs.Parts {
		part := &e.Jobs.Parts[i]
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
func (e Execution) startPart(ctx context.Context, part *Part) ([]collector.Source, error) {
	if e.Jobs.Reused {
		return e.reuse(ctx, *part)
	}
	planned := accountcopy.Make(ctx, part.Cluster.Kubernetes, part.Planned)
	if e.Jobs.Resumed {
		if err := part.Launcher.Resume(ctx, planned); err != nil {
			return nil, err
		}
	}
	part.Guard.Begin(ctx, planned)
	defer func() { _ = part.Guard.Created() }() // before the objects of a run that fails are deleted
	e.Progress.Stepf("validating the checks of the release: %d", len(planned.Checks))
	rejected, valid := part.Launcher.Validate(ctx, planned)
	if err := launch.Ungrantable(rejected); err != nil {
		return nil, err
	}
	sources := selection.Refused(rejected)
	if len(valid.Checks) > 0 {
		guarded, allowed := e.guard(ctx, *part, valid)
		sources, valid = append(sources, guarded...), allowed
	}
	part.started = valid
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
// deny, and those with a Secret of unknown type, unless the administrator accepts that by name.
func (e Execution) guard(ctx context.Context, part Part, valid jobplan.Plan) ([]collector.Source, jobplan.Plan) {
	audits := make(chan audit.Audit, 1)
	go func() { audits <- audit.New(ctx, part.Cluster.Kubernetes, accountcopy.Of(valid)) }()
	guard := part.Distinct(part.Guard.Await(ctx, valid))
	audited := (<-audits).Under(guard)
	sources := []collector.Source{collector.Known(guard.Name, finding.SourceJob, guard), audited.Source()}

	accepted, causes := departure.Policy(e.Scene, e.From, e.Target.Version).Accepted, audited.Barred()
	var barred []string
	for _, check := range valid.Checks {
		open := slices.DeleteFunc(causes[check.Name], func(cause string) bool { _, ok := accepted[cause]; return ok })
		if len(open) == 0 {
			continue
		}
		barred = append(barred, check.Name)
		sources = append(sources, collector.Known(check.Name, finding.SourceJob, audit.NotRun(check.Name, open)))
	}
	return sources, valid.Without(barred)
}

// verify replaces the findings about a guard that was changed, and about the accounts whose checks read a Secret that was,
// while the checks ran, and those in favor of the update beside a pod that admission changed.
func (e Execution) verify(ctx context.Context, findings []finding.Finding) []finding.Finding {
	if e.Jobs == nil {
		return findings
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hold.Timeout)
	defer cancel()
	for _, part := range e.Jobs.Parts {
		changes := audit.Changed(part.started, part.Launcher.ChangedSecrets(ctx, part.started))
		if changed, found := part.Guard.Changed(ctx); found {
			changes = append(changes, part.Distinct(changed))
		}
		for _, changed := range changes {
			findings = replace(findings, changed)
		}
		if len(changes) > 0 {
			e.Progress.Reported(changes)
		}
	}
	return diagnosis.Withdraw(findings)
}

// replace replaces the finding of the same name, or adds one.
func replace(findings []finding.Finding, by finding.Finding) []finding.Finding {
	at := slices.IndexFunc(findings, func(f finding.Finding) bool { return f.Name == by.Name })
	if at < 0 {
		return append(findings, by)
	}
	findings[at] = by
	return findings
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
