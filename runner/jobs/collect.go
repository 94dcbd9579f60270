package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/jobs/jobwatch"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// Collect creates the Job when the queue grants it, and waits for the findings.
func (s *source) Collect(ctx context.Context) ([]finding.Finding, error) {
	if len(s.known) > 0 {
		return s.complete(slices.Clone(s.known)), nil
	}
	for {
		classified, err := s.runOnce(ctx)
		if err != nil {
			return s.interrupted(ctx, err)
		}
		if classified.State == diagnosis.Done {
			return s.complete(classified.Findings), nil
		}
	}
}

// interrupted handles the end of ctx: the deadline has findings, a cancellation has none.
func (s *source) interrupted(ctx context.Context, cause error) ([]finding.Finding, error) {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("interrupted: %w", cause)
	}
	return s.complete(s.expire(ctx)), nil
}

// runOnce has one Job run. It ends in state Done, or with a deleted Job that has
// to be created again. An error means that ctx is done.
func (s *source) runOnce(ctx context.Context) (diagnosis.Classification, error) {
	classified, err := s.create(ctx)
	if err != nil || classified.State == diagnosis.Done {
		return classified, err
	}
	classified, err = s.await(ctx)
	if err != nil || classified.State == diagnosis.Done {
		return classified, err
	}
	s.report(classified)
	s.restarted = s.restarted || classified.Restart
	return classified, s.deleteJob(ctx)
}

// create creates the Job when the queue grants it, unless the Job exists. A
// rejection by the API server is state Done.
func (s *source) create(ctx context.Context) (diagnosis.Classification, error) {
	tracker := s.run.tracker
	if s.granted = !tracker.Enqueue(s.index); s.granted {
		return diagnosis.Classification{State: diagnosis.Waiting}, nil
	}
	s.report(diagnosis.Classification{State: diagnosis.Queued, Detail: s.waiting.Detail})
	for {
		granted, changed := tracker.Granted(s.index)
		if granted {
			break
		}
		if err := awaitChange(ctx, changed, 0); err != nil {
			return diagnosis.Classification{}, err
		}
	}
	s.granted = true
	s.report(diagnosis.Classification{State: diagnosis.Waiting, Detail: "creating the Job"})
	err := s.run.start.Start(ctx, s.check)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return diagnosis.Classification{}, err
	case err != nil:
		return diagnosis.Classification{State: diagnosis.Done, Findings: []finding.Finding{launch.Explain(s.check, err)}}, nil
	}
	tracker.Created(s.index, s.run.start.UID(s.check))
	return diagnosis.Classification{State: diagnosis.Waiting}, nil
}

// await classifies after every change, until state Done or until the Job has to be created again.
func (s *source) await(ctx context.Context) (diagnosis.Classification, error) {
	var reason finding.Reason
	since := time.Now()
	for {
		o, changed := s.observe()
		o.Reason, o.Waited = reason, time.Since(since)
		classified := diagnosis.Classify(o)
		if classified.State == diagnosis.Done || classified.Restart {
			return classified, nil
		}
		if fetched := s.fetch(ctx, classified); fetched {
			if err := ctx.Err(); err != nil {
				return classified, err
			}
			continue
		}
		if classified.Reason != reason {
			reason, since = classified.Reason, time.Now()
		}
		s.report(classified)
		recheck, yield := s.yields(classified, time.Since(since))
		if yield {
			return classified, nil
		}
		if err := awaitChange(ctx, changed, recheck); err != nil {
			return classified, err
		}
	}
}

// fetch requests what the classification needs; false if it needs nothing.
func (s *source) fetch(ctx context.Context, classified diagnosis.Classification) bool {
	switch {
	case classified.ReadLog != "":
		s.log = s.readLog(ctx, classified.ReadLog, classified.LogTimeout)
	case classified.ListPods:
		s.listPods(ctx)
	default:
		return false
	}
	return true
}

// yields is true for a check that was idle for a while when others wait for its
// capacity; it is queued again after them. Otherwise the duration is when to
// classify again.
func (s *source) yields(classified diagnosis.Classification, waited time.Duration) (time.Duration, bool) {
	if !classified.Idle || s.pinned {
		return classified.Recheck, false
	}
	if left := diagnosis.TransientTimeout - waited; left > 0 {
		return left, false
	}
	return diagnosis.TransientTimeout, s.run.tracker.Contended(s.index)
}

// deleteJob deletes the Job if it exists and waits until it is gone. A Job that
// cannot be deleted is kept and followed further.
func (s *source) deleteJob(ctx context.Context) error {
	s.granted = false
	o, changed := s.observe()
	if !o.Deleted {
		err := s.run.start.End(ctx, s.check)
		s.run.tracker.Failures.Record("deleting a Job to create it again", err)
		if err != nil {
			s.pinned, s.restarted = true, true
			return ctx.Err()
		}
	}
	for !o.Deleted {
		if err := awaitChange(ctx, changed, 0); err != nil {
			return err
		}
		o, changed = s.observe()
	}
	s.run.tracker.Reset(s.index)
	s.log, s.listed = nil, false
	return nil
}

// awaitChange returns after a change, or after recheck if that is positive. An error means that ctx is done.
func awaitChange(ctx context.Context, changed <-chan struct{}, recheck time.Duration) error {
	var due <-chan time.Time
	if recheck > 0 {
		timer := time.NewTimer(recheck)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-due:
	}
	return nil
}

// expire returns the findings at the deadline, with the last log lines of a running check.
func (s *source) expire(ctx context.Context) []finding.Finding {
	o, _ := s.observe()
	if !s.granted {
		return o.NotStarted(s.waiting).Findings
	}
	if pod, ok := o.Newest(); ok && o.Log == nil && diagnosis.Classify(o).State == diagnosis.Running {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), diagnosis.OptionalLogTimeout)
		defer cancel()
		o.Log = s.readLog(ctx, pod.Name, diagnosis.OptionalLogTimeout)
	}
	o.Expired = true
	return diagnosis.Classify(o).Findings
}

// complete settles the check with its findings, and adds when it waited.
func (s *source) complete(findings []finding.Finding) []finding.Finding {
	s.run.tracker.Settle(s.index)
	findings = s.waits.addTo(findings, time.Now())
	s.report(diagnosis.Classification{State: diagnosis.Done, Findings: findings})
	return findings
}

var (
	reasonQueued = finding.NewReason("Queued", finding.Explanation{
		Meaning: "The check waited before its Job was created.",
		Cause: "The run had reached its limit of parallel Jobs, or another check of the component was running; its " +
			"checks run one at a time.",
		Remedy: "None needed; a higher parallelism shortens the wait.",
	})
	reasonStarting = finding.NewReason("Starting", finding.Explanation{
		Meaning: "The pod of the check was starting, without an error.",
		Cause:   "The cluster created the Job, its pod and its containers, and pulled their images.",
	})
)

const (
	// maxWaits bounds the waits of a check; the last are kept.
	maxWaits = 5
	// maxWaitMessage bounds the message of a wait, in bytes.
	maxWaitMessage = 256
	// leastWait is the duration from which on a wait is kept.
	leastWait = time.Second
)

// waits are the periods in which a check waited. The zero value has none.
type waits struct {
	ended []finding.Wait
	// reason is the reason of the present wait; empty if the check does not wait.
	reason  finding.Reason
	message string
	since   time.Time
}

func (w *waits) observe(classified diagnosis.Classification, now time.Time) {
	reason := waitReason(classified)
	if reason != w.reason {
		w.end(now)
		w.reason, w.since = reason, now
	}
	w.message = classified.Detail
}

// waitReason is why a check waits; empty if it does not.
func waitReason(classified diagnosis.Classification) finding.Reason {
	switch {
	case classified.State == diagnosis.Queued:
		return reasonQueued
	case classified.State == diagnosis.Waiting && classified.Reason == (finding.Reason{}):
		return reasonStarting
	case classified.State == diagnosis.Waiting:
		return classified.Reason
	}
	return finding.Reason{}
}

func (w *waits) end(now time.Time) {
	if w.reason == (finding.Reason{}) || now.Sub(w.since) < leastWait {
		return
	}
	w.ended = append(w.ended, finding.Wait{
		Reason: w.reason.String(), Message: words.Line(w.message, maxWaitMessage),
		StartTime: words.Time(w.since), EndTime: words.Time(now),
	})
	w.ended = w.ended[max(0, len(w.ended)-maxWaits):]
}

// addTo ends the present wait, and adds all to the findings of the Job. Findings of a
// check that has not waited are left as they are.
func (w *waits) addTo(findings []finding.Finding, now time.Time) []finding.Finding {
	w.end(now)
	w.reason = finding.Reason{}
	if len(w.ended) == 0 {
		return findings
	}
	for i, f := range findings {
		if f.Job != nil {
			job := *f.Job
			job.Waits = w.ended
			findings[i].Job = &job
		}
	}
	return findings
}

// starter creates and deletes the Job of a check; implemented by launch.Launcher.
type starter interface {
	Start(ctx context.Context, check jobplan.Check) error
	End(ctx context.Context, check jobplan.Check) error
	// UID returns the UID of the Job that was created or adopted; empty before.
	UID(check jobplan.Check) types.UID
}

type run struct {
	client  kubernetes.Interface
	start   starter
	tracker *jobwatch.Tracker

	mutex    sync.Mutex
	progress func(Status)
}

func (r *run) report(status Status) {
	if r.progress == nil {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.progress(status)
}

// deleteEvicted deletes the Jobs of checks with findings whose capacity other checks wait for.
func (r *run) deleteEvicted(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case check := <-r.tracker.Evicted:
			r.tracker.Failures.Record("deleting the Job of a completed check", r.start.End(ctx, check))
		}
	}
}

type source struct {
	run   *run
	index int
	check jobplan.Check
	known []finding.Finding

	log      *diagnosis.Log
	listed   bool
	reported Status
	// waiting is the last classification in state Waiting.
	waiting diagnosis.Classification
	waits   waits
	// granted is true while the check may have a Job, restarted when its Job was
	// created once more, pinned when its Job cannot be deleted.
	granted, restarted, pinned bool
}

func (s *source) observe() (diagnosis.Observation, <-chan struct{}) {
	o, changed := s.run.tracker.Observe(s.index)
	o.Log, o.Listed, o.Restarted = s.log, s.listed, s.restarted
	return o, changed
}

func (s *source) report(classified diagnosis.Classification) {
	if classified.State == diagnosis.Waiting {
		s.waiting = classified
	}
	s.waits.observe(classified, time.Now())
	if classified.State == s.reported.State && classified.Detail == s.reported.Detail && classified.State != diagnosis.Done {
		return
	}
	s.reported = Status{
		Check: s.check.Name, State: classified.State, Detail: classified.Detail, Since: time.Now(),
		Findings: classified.Findings,
	}
	s.run.report(s.reported)
}
