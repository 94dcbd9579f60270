package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/accountcopy"
	"github.com/openshift/update-preflight/runner/jobplan"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/record"
)

// collection is what all checks have found, and how far the run came.
type collection struct {
	collector.Collection
	phase string
	// seen is the cluster as the built-in checks saw it.
	seen view
}

// execute runs all checks and waits for them. An error means that the checks of
// the release could not be started; there may be objects to delete.
func (e execution) execute(ctx context.Context) (collection, error) {
	sources, err := e.start(ctx)
	if err != nil {
		return collection{}, err
	}
	found := e.collect(ctx, sources)
	e.view = found.seen
	if errors.Is(ctx.Err(), context.Canceled) {
		found.phase = report.PhaseInterrupted
		return found, nil
	}
	e.verifyGuard(ctx, found.Findings)
	e.hop.annotate(e.about.Version, found.Findings)
	// Which acceptances are not needed is known only when all checks have reported.
	found.Findings = append(found.Findings, acceptance.Review(acceptance.Target{
		Account: e.accounts(e.target.Version), Findings: found.Findings, NoJobs: !e.contents.readable(),
	})...)
	return found, nil
}

// collect runs the checks of the release, which have started, and those that are built in:
// these as soon as CVO has processed the spec.
func (e execution) collect(ctx context.Context, started []collector.Source) collection {
	var mutex sync.Mutex
	recording := e
	reported := func(source collector.Source, findings []finding.Finding) {
		mutex.Lock()
		defer mutex.Unlock()
		recording.reported(source, findings)
	}
	released := make(chan collector.Collection, 1)
	go func() { released <- collector.Collect(ctx, started, reported) }()
	e.view = e.awaitStatus(ctx)
	present := e.imageCheck(ctx)
	present = append(present, e.builtin(e.target.Version)...)
	present = append(present, e.componentPolicies()...)
	present = append(present, e.sitePolicies()...)
	present = append(present, e.foresee()...)
	own := collector.Collect(ctx, present, reported)
	return collection{Collection: (<-released).And(own), phase: report.PhaseComplete, seen: e.view}
}

// reported records and reports the findings of one source. An interruption is no
// result: the check continues if the run is detached from.
func (e execution) reported(source collector.Source, findings []finding.Finding) {
	if interrupted(findings) {
		return
	}
	_, known := e.results[source.Name]
	recorded := known && e.reused.id == ""
	if e.expected[source.Name] && !recorded {
		e.record.Put(record.Result{Check: source.Name, Findings: findings})
	}
	e.shared.put(source.Name, e.target.Version, findings)
	e.progress.Reported(findings)
}

func interrupted(findings []finding.Finding) bool {
	for _, f := range findings {
		if f.Reason == string(collector.ReasonInterrupted) {
			return true
		}
	}
	return false
}

// foresee are the built-in checks that compare the release with the cluster.
func (e execution) foresee() []collector.Source {
	subject, err := e.subject(e.target.Version)
	if err != nil {
		return nil // builtin reports it
	}
	checks, _ := e.contents.foresee(e.cluster.Dynamic)
	return collector.Bind(subject, checks)
}

// start validates and launches the checks of the release, and returns a source
// for each.
func (e execution) start(ctx context.Context) ([]collector.Source, error) {
	if len(e.planned.Checks) == 0 {
		return e.sources, nil
	}
	if e.reused.id != "" {
		return e.reuse(ctx)
	}
	planned := accountcopy.Make(ctx, e.cluster.Kubernetes, e.planned)
	if e.record.Resumed() {
		if err := e.launcher.Resume(ctx, planned); err != nil {
			return nil, err
		}
	}
	e.readOnly.Begin(ctx)
	defer func() { _ = e.readOnly.Created() }() // before the objects of a run that fails are deleted
	e.progress.step("validating the checks of the release: %d", len(e.planned.Checks))
	rejected, valid := e.launcher.Validate(ctx, planned)
	if err := launch.Ungrantable(rejected); err != nil {
		return nil, err
	}
	sources := append(e.sources, refused(rejected)...)
	if len(valid.Checks) > 0 {
		guarded, allowed := e.guard(ctx, valid)
		sources, valid = append(sources, guarded...), allowed
	}
	if err := e.launcher.Prepare(ctx, valid); err != nil {
		return nil, err
	}
	for _, text := range exceeded(valid.Checks) {
		e.progress.step("%s", text)
	}
	e.progress.step("running the checks of the release: %d", len(valid.Checks))
	running, err := jobs.Sources(ctx, e.cluster.Kubernetes, e.launcher, valid, jobs.Options{
		Parallelism: e.options.Parallelism, Known: e.results, Progress: e.progress.Status,
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
func (e execution) guard(ctx context.Context, valid jobplan.Plan) ([]collector.Source, jobplan.Plan) {
	audits := make(chan audit, 1)
	go func() { audits <- newAudit(ctx, e.cluster.Kubernetes, accountcopy.Of(valid)) }()
	guard := e.readOnly.Await(ctx, valid)
	audited := <-audits
	sources := []collector.Source{collector.Known(guard.Name, finding.SourceJob, guard), audited.source(guard)}

	accepted, causes := e.policy(e.target.Version).Accepted, audited.barred()
	var barred []string
	for _, check := range valid.Checks {
		cause, found := causes[check.Name]
		if _, ok := accepted[cause]; !found || ok {
			continue
		}
		barred = append(barred, check.Name)
		sources = append(sources, collector.Known(check.Name, finding.SourceJob, notRun(check.Name, cause)))
	}
	return sources, valid.Without(barred)
}

// verifyGuard replaces the finding about the guard if it was changed while the checks
// ran.
func (e execution) verifyGuard(ctx context.Context, findings []finding.Finding) {
	if e.launcher == nil {
		return // the run has no Jobs
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	changed, found := e.readOnly.Changed(ctx)
	if !found {
		return
	}
	for i := range findings {
		if findings[i].Name == changed.Name {
			findings[i] = changed
		}
	}
	e.progress.Reported([]finding.Finding{changed})
}

// reuse returns the results of an earlier run, as sources of this run. The objects of each
// check are validated as for a run of it: what a Job needs, such as its namespace, may be
// gone since. A check that could not be run now has no result.
func (e execution) reuse(ctx context.Context) ([]collector.Source, error) {
	rejected, valid := e.launcher.Validate(ctx, e.planned)
	if err := launch.Ungrantable(rejected); err != nil {
		return nil, err
	}
	sources := append(e.sources, refused(rejected)...)
	for _, check := range valid.Checks {
		sources = append(sources, collector.Known(check.Name, finding.SourceJob, e.results[check.Name]...))
	}
	return sources, nil
}
