// Package execution answers: what do the checks of this run find?
//
// [Execution.Run] runs the Jobs of the release, the checks of its images and the built-in checks in parallel.
package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/audit"
	"github.com/openshift/update-preflight/runner/contents"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/image/pull"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/launch/writeguard"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/rehearsal"
	"github.com/openshift/update-preflight/runner/selection"
)

// Execution runs the checks of one run.
type Execution struct {
	Scene    scene.Scene
	From     departure.Departure
	Target   update.Release
	Contents contents.Contents
	// Pulling selects how images are pulled, and Images how closely the images of the release are inspected.
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
	// Run determines the names and labels of the run's objects.
	Run jobplan.Run
	// Parts are the Jobs of each cluster, starting with the target cluster.
	Parts []Part
	// Parallelism bounds the Jobs that are unfinished at one time in each cluster.
	Parallelism int
	// Known are results that need not be collected again. Results of an earlier run are Reused; results of a run that
	// another process began are Resumed.
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

// Found has the findings of all checks, and how far the run came.
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
		present.images(ctx), departure.Sources(present.Scene, e.From, e.Target.Version), present.componentPolicies(), present.sitePolicies(),
		present.foresee(), rehearse(present),
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

// images is the check of the release's images; none for a release that may
// not be read.
func (e Execution) images(ctx context.Context) []collector.Source {
	if !e.Contents.Readable() {
		return nil
	}
	check := image.Check{
		Release: e.Target, Images: e.Contents.Images(), Mode: e.Images, Architectures: e.Scene.Architectures(ctx),
		// Nodes do not have the user's own credentials.
		Access: func(context.Context) *registry.Access { return e.Pulling.Nodes.OfNodes() },
	}
	if check.Mode.Pulls() {
		check.ToPull = e.imagesToPull()
		check.Nodes = pull.Nodes{
			Client: e.Scene.Cluster.Kubernetes, List: e.Scene.Snapshot.Nodes, Start: e.Jobs.Parts[0].Launcher, Run: e.Jobs.Run,
			Parallelism: e.Jobs.Parallelism,
		}
	}
	return []collector.Source{{Name: image.Name, Kind: finding.SourceImage, Collect: func(ctx context.Context) ([]finding.Finding, error) {
		findings, err := withProgress(check, e.Progress).Collect(ctx)
		e.Progress.Status(jobs.Status{Check: image.Name, State: diagnosis.Done, Since: time.Now(), Findings: findings})
		return findings, err
	}}}
}

// imagesToPull are the images of the checks that run in the target cluster, unless nodes must pull all images.
func (e Execution) imagesToPull() map[string]string {
	if e.Images == image.PullAll {
		return e.Contents.Images()
	}
	used := map[string]bool{}
	for _, check := range e.Jobs.Parts[0].Planned.Checks {
		spec := check.Job.Spec.Template.Spec
		for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
			used[container.Image] = true
		}
	}
	chosen := map[string]string{}
	for component, pullSpec := range e.Contents.Images() {
		if used[pullSpec] {
			chosen[component] = pullSpec
		}
	}
	return chosen
}

// withProgress reports the progress of the check, each tenth once.
func withProgress(check image.Check, observer *progress.Serial) image.Check {
	report := func(detail string) {
		observer.Status(jobs.Status{Check: image.Name, State: diagnosis.Running, Detail: detail, Since: time.Now()})
	}
	report("")
	tenth := 0
	check.Progress = func(done, total int) {
		if done*10/total > tenth {
			tenth = done * 10 / total
			report(fmt.Sprintf("%d of %s", done, words.Count(total, "image")))
		}
	}
	return check
}

// rehearse is the rehearsal of the writes of the release; none of a later update of a path: the cluster that it starts from does
// not exist yet.
func rehearse(e Execution) []collector.Source {
	switch {
	case e.Rehearsal == rehearsal.Off, departure.Provisional(e.From):
		return nil
	case len(e.Contents.Manifests()) == 0 && !e.Scene.Cluster.Fixed(): // not read, or more than the limit
		return []collector.Source{collector.Known(rehearsal.Name, finding.SourceRehearsal, rehearsal.WithoutRelease())}
	}
	rehearsed := rehearsal.Rehearsal{
		Cluster: e.Scene.Cluster, Mode: e.Rehearsal, Hosted: e.Scene.Settings.Estate.Namespace() != "", Run: uuid.NewString(),
		Owner: e.Scene.Version.UID, Manifests: e.Contents.Manifests(), Progress: eachTenth(e.Progress),
	}
	if e.Jobs != nil { // whose cleanup then deletes the guard, too
		rehearsed.Run = e.Jobs.Run.ID
	}
	return []collector.Source{{
		Name: rehearsal.Name, Kind: finding.SourceRehearsal,
		Collect: func(ctx context.Context) ([]finding.Finding, error) {
			findings, err := rehearsed.Findings(ctx)
			for i := range findings {
				if findings[i].Blocks && e.Target.Version != "" {
					findings[i].BlockedTargets = []string{e.Target.Version}
				}
			}
			e.Progress.Status(jobs.Status{Check: rehearsal.Name, State: diagnosis.Done, Since: time.Now(), Findings: findings})
			return findings, err
		},
	}}
}

// eachTenth reports the progress of the rehearsal, each tenth once.
func eachTenth(observer *progress.Serial) func(done, total int) {
	const parts = 10
	return func(done, total int) {
		if done*parts/total > (done-1)*parts/total {
			observer.Status(jobs.Status{
				Check: rehearsal.Name, State: diagnosis.Running, Detail: fmt.Sprintf("%d of %d manifests", done, total), Since: time.Now(),
			})
		}
	}
}
