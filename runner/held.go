package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/contents"
	"github.com/openshift/update-preflight/runner/execution"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/selection"
)

// run is a run of the release: held by this process, followed while another process
// holds it, or unheld because it has no Jobs.
type run interface {
	// execute runs the checks.
	execute(ctx context.Context) (execution.Found, error)
	// conclude makes the report, and ends the run. failure is the error of execute.
	conclude(ctx context.Context, found execution.Found, failure error) (report.Report, error)
}

// join determines who runs the checks. If a run of the same release is in progress, it is followed. Otherwise this
// process runs; checks need not run if the results of a complete run are still valid.
func join(ctx context.Context, d draft) (run, error) {
	p := d.preparation
	if p.options.Selection.NoJobs || d.contents.Unread {
		return unheld{draft: d, id: uuid.NewString()}, nil
	}
	wanted := hold.Wanted{Intent: d.intent(uuid.NewString()), Rerun: p.options.Limits.Rerun}
	begun, finished, err := hold.Join(ctx, lease.New(p.scene.Cluster.Kubernetes), wanted, p.progress)
	if err != nil {
		return nil, err
	}
	if begun == nil {
		return followed{preparation: p, contents: d.contents, finished: finished}, nil
	}
	if taken := begun.Record(); begun.Resumed() {
		if cause := wanted.Outdated(taken, p.scene.Cluster.Now()); cause != "" {
			p.progress.Stepf("run %s has ended, and does not continue: %s", taken.ID, cause)
			if _, err := hold.End(ctx, place.Of(p.scene.Cluster, p.options.Estate), begun, record.Interrupted); err != nil {
				return nil, err
			}
			return join(ctx, d)
		}
	}
	return d.hold(ctx, begun), nil
}

// hold is the run that this process holds, with the results that are known.
func (d draft) hold(ctx context.Context, begun *lease.Held) *held {
	p, taken := d.preparation, begun.Record()
	p.progress.Started(taken.ID)
	if err := taken.Verified(); err != nil {
		p.progress.Stepf("%v; no recorded results are used", err)
	}
	settled := hold.Settled(taken)
	if begun.Resumed() {
		p.progress.Stepf("continuing run %s: %d of %s have reported", taken.ID, len(settled), words.Count(len(taken.Checks), "check"))
		// Waiting for its last holder does not count.
		known := hold.Reuse{Results: settled, Until: taken.StartTime.Add(fingerprint.MaxAge)}
		return newHeld(d, begun, known, p.scene.Cluster.Now().Add(p.options.Limits.Timeout))
	}
	if !p.options.Limits.Rerun {
		present := standing.Present{Cluster: p.scene.Snapshot, Now: p.scene.Cluster.Now()}
		if earlier, ok := hold.Reusable(ctx, p.scene.Cluster.Kubernetes, d.intent(""), present, p.progress); ok {
			return newHeld(d, begun, earlier, p.scene.Deadline())
		}
	}
	return newHeld(d, begun, hold.Reuse{Results: settled}, p.scene.Deadline())
}

// held is a run that this process holds.
type held struct {
	preparation preparation
	execution   execution.Execution
	record      *lease.Held
	reused      hold.Reuse
	deadline    time.Time
	// stop ends the renewal of the Lease, and cause is why the checks ended; both are set
	// by execute.
	stop  context.CancelFunc
	cause error
}

// newHeld binds the draft to the run. The draft, which may have thousands of manifests, is
// not kept.
func newHeld(d draft, begun *lease.Held, known hold.Reuse, deadline time.Time) *held {
	p, taken := d.preparation, begun.Record()
	jobs := execution.Jobs{
		Run: jobplan.Run{
			ID: taken.ID, From: p.scene.About.Version, Target: p.target, StartTime: taken.StartTime, Deadline: deadline,
			ToolVersion: p.options.Hooks.ToolVersion,
		},
		Parallelism: p.options.Limits.Parallelism,
		Known:       known.Results, Reused: known.ID != "", Resumed: begun.Resumed(),
	}
	jobs.Parts = execution.PartsOf(place.Of(p.scene.Cluster, p.options.Estate), d.chosen, jobs.Run)
	h := &held{preparation: p, execution: d.execution(&jobs), record: begun, reused: known, deadline: deadline}
	h.execution.Reported = h.reporter()
	return h
}

func (d draft) execution(jobs *execution.Jobs) execution.Execution {
	p := d.preparation
	return execution.Execution{
		Scene: p.scene, From: p.request.from, Target: p.target, Contents: d.contents, Pulling: p.pulling,
		Images: p.options.Selection.Images, Rehearsal: p.options.Selection.Rehearsal, Jobs: jobs, Sources: d.sources, Progress: p.progress,
		Reported: func(source string, findings []finding.Finding) {
			p.request.shared.put(source, p.target.Version, findings)
		},
	}
}

// reporter records the results of the checks of the release that are not recorded yet.
func (h *held) reporter() func(string, []finding.Finding) {
	share, jobs := h.execution.Reported, h.execution.Jobs
	expected := map[string]bool{}
	for _, check := range jobs.Checks() {
		expected[check.Name] = true
	}
	return func(source string, findings []finding.Finding) {
		_, known := jobs.Known[source]
		if recorded := known && !jobs.Reused; expected[source] && !recorded {
			h.record.Put(record.Result{Check: source, Findings: findings})
		}
		share(source, findings)
	}
}

// bound is ctx with the deadline of the run.
func (h *held) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, h.deadline.Sub(h.preparation.scene.Cluster.Now()))
}

func (h *held) execute(ctx context.Context) (execution.Found, error) {
	bound, cancel := h.bound(ctx)
	holding, release := h.record.Hold(bound)
	h.stop = func() { release(); cancel() }
	found, err := h.execution.Run(holding)
	h.cause = context.Cause(holding)
	return found, err
}

// conclude ends the run here, or where it was taken over.
func (h *held) conclude(ctx context.Context, found execution.Found, failure error) (report.Report, error) {
	decided, err := h.end(ctx, found, failure)
	if !errors.Is(err, recordstore.ErrTakenOver) {
		return decided, err
	}
	id := h.execution.Jobs.Run.ID
	h.preparation.progress.Stepf("run %s was taken over by another process: waiting for its result", id)
	bound, cancel := h.bound(ctx)
	defer cancel()
	finished, failed := lease.New(h.preparation.scene.Cluster.Kubernetes).Follow(bound, id, hold.Reporting(h.preparation.progress))
	if failed != nil {
		return report.Report{}, fmt.Errorf("run %s was taken over by another process; run the preflight again: %w", id, failed)
	}
	return followed{preparation: h.preparation, contents: h.execution.Contents, finished: finished}.conclude(ctx, found, nil)
}

// end makes the report, deletes what the run created, and closes its record.
func (h *held) end(ctx context.Context, found execution.Found, failure error) (report.Report, error) {
	defer h.stop()
	run := h.execution.Jobs.Run
	if errors.Is(h.cause, recordstore.ErrTakenOver) {
		return report.Report{}, fmt.Errorf("run %s: %w", run.ID, h.cause)
	}
	if err := h.flush(ctx); errors.Is(err, recordstore.ErrTakenOver) {
		return report.Report{}, fmt.Errorf("run %s: %w", run.ID, err)
	}
	if failure != nil {
		_, failed := h.remove(ctx)
		return report.Report{}, errors.Join(failure, failed, h.finish(ctx, record.Ending{Phase: record.Interrupted}))
	}
	h.preparation.scene = found.Scene
	decided := h.preparation.reportOf(ctx, h.execution.Contents, found,
		reported{id: run.ID, started: run.StartTime, reused: h.reused, created: h.created()})
	if ctx.Err() != nil && found.Phase == report.PhaseInterrupted && h.preparation.options.Hooks.OnInterrupt(run.ID) == Detach {
		return h.detach(ctx, decided)
	}
	decided = h.baseline(ctx, decided)
	h.preparation.progress.Decided(decided)
	removal, failed := h.remove(ctx)
	decided.Removal = removal
	return decided, errors.Join(failed, h.close(ctx, decided))
}

// baseline stores the state of the cluster before the record has its end: a verdict that permits the update has one.
func (h *held) baseline(ctx context.Context, decided report.Report) report.Report {
	if errors.Is(h.cause, lease.ErrCanceled) {
		return decided
	}
	return h.preparation.withBaseline(ctx, decided)
}

// flush writes the results before the Jobs are deleted that they were read from:
// otherwise a process that continues the run would run them again. An error that
// is not a takeover is met again when the record is closed.
func (h *held) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hold.Timeout)
	defer cancel()
	return h.record.Flush(ctx)
}

// detach leaves the Jobs running, for the next Run of the release.
func (h *held) detach(ctx context.Context, decided report.Report) (report.Report, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hold.Timeout)
	defer cancel()
	decided.Run.Detached = true
	decided.Findings = attachable(decided.Findings, decided.Run.ID)
	h.preparation.progress.Decided(decided)
	return decided, h.record.Detach(ctx)
}

// attachable replaces the remedy of checks that continue after the run was detached from.
func attachable(findings []finding.Finding, run string) []finding.Finding {
	changed := slices.Clone(findings)
	for i, f := range changed {
		if f.Reason == collector.ReasonInterrupted.String() {
			f.Actions = nil
			changed[i] = f.Remedy("Attach to the run, which continues the check.").Do(finding.Attach(run))
		}
	}
	return changed
}

// close writes the end of the run into its record.
func (h *held) close(ctx context.Context, decided report.Report) error {
	ending, err := hold.EndingOf(decided)
	if err != nil {
		return err
	}
	if errors.Is(h.cause, lease.ErrCanceled) {
		ending.Phase = record.Canceled
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hold.Timeout)
	defer cancel()
	ending.Fingerprint = fingerprint.Read(ctx, h.preparation.scene.Snapshot)
	return h.record.Finish(ctx, ending)
}

// finish closes the record of a run without a report.
func (h *held) finish(ctx context.Context, ending record.Ending) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hold.Timeout)
	defer cancel()
	return h.record.Finish(ctx, ending)
}

// The deletion of a run's objects is bounded by removeTimeout, and removeShare
// more for each object: for every Job and its pod, the garbage collector and the
// Job controller make about five requests, and Kubernetes limits each of them to
// 20 a second by default.
const (
	removeTimeout = time.Minute
	removeShare   = time.Second / 4
)

// remove deletes what the run created. It outlives the cancellation of ctx, so an
// interrupted run leaves nothing behind either.
func (h *held) remove(ctx context.Context) (*report.Removal, error) {
	jobs := h.execution.Jobs
	pulls := h.execution.Images.Pulls() && h.execution.Contents.Readable()
	if creates := pulls || len(jobs.Checks()) > 0 && !jobs.Reused; !creates || h.preparation.options.Limits.Keep {
		return nil, nil //nolint:nilnil // a run that creates nothing has no removal
	}
	h.preparation.progress.Step("deleting the objects of the run")
	limit := removeTimeout + removeShare*time.Duration(len(h.created()))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	done, err := place.Cleanup(ctx, jobs.Places(), jobs.Run.ID)
	if err != nil {
		err = &hold.RemovalError{Run: jobs.Run.ID, Left: len(done.Left), Err: err}
	}
	return hold.RemovalOf(done), err
}

// created are the objects that the run has created so far.
func (h *held) created() []report.Object {
	return place.Created(h.execution.Jobs.Places(), h.execution.Jobs.Run.ID)
}

// draft is the work of a run.
type draft struct {
	preparation preparation
	// contents lack the manifests of the Jobs, which chosen has.
	contents contents.Contents
	chosen   jobplan.Draft
	// sources are the findings so far.
	sources []collector.Source
}

// draftOf selects the checks that are to run, and checks that the user has the permissions
// to run and record them. Nothing is created.
func draftOf(ctx context.Context, p preparation, inside contents.Contents) (draft, error) {
	p.target = targetOf(p.target, inside)
	drafted := inside.Draft(p.scene.About.Version, p.options.Estate)
	if from := p.request.from; departure.Provisional(from) {
		versions := departure.Versions(from, p.target.Version)
		drafted = drafted.Along(versions[:len(versions)-1], p.target.Version)
	}
	chosen, sources, err := p.options.Selection.Choose(drafted, p.request.shared.known(drafted))
	if err != nil {
		return draft{}, err
	}
	for _, each := range place.Of(p.scene.Cluster, p.options.Estate)[1:] {
		permitted, refused := each.Permitted(ctx, chosen)
		chosen, sources = permitted, append(sources, selection.Refused(refused)...)
	}
	d := draft{preparation: p, contents: inside.WithoutJobs(), chosen: chosen, sources: append(slices.Clip(inside.Sources), sources...)}
	return d, p.options.writingNeeds(chosen.On(check.Guest)).Check(ctx, p.scene.Cluster.Kubernetes.AuthorizationV1())
}

// targetOf is a target with what its contents and its proof have of it.
func targetOf(target update.Release, inside contents.Contents) update.Release {
	target.Image = inside.Proof.PullSpec
	if target.Version == "" {
		target.Version = inside.Version()
	}
	return target
}

// intent is the record before the first Job exists.
func (d draft) intent(id string) record.Intent {
	p := d.preparation
	intent := record.Intent{
		ID: id, From: p.scene.About.Version, Target: p.target, ToolVersion: p.options.Hooks.ToolVersion,
		Selection:  p.options.covers(p.request.from, p.request.graph).String(),
		Attachment: p.options.Selection.Attachment(), Requester: p.options.Hooks.Requester, Generation: p.scene.Version.Generation,
		Provisional: departure.Provisional(p.request.from), Narrowed: selection.Narrowed(p.options.Selection, p.options.Judgement),
	}
	for _, check := range d.chosen.Checks {
		intent.Checks = append(intent.Checks, check.Name)
	}
	return intent
}
