package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/launch"
)

// defaultParallelism is how many Jobs are unfinished at one time where nobody
// says otherwise.
const defaultParallelism = 32

// Options are what may be chosen; the zero value is good.
type Options struct {
	// Parallelism bounds the Jobs of the run that are unfinished at one time, as
	// their own status has it; 0 is 32. Jobs that are in the cluster already
	// count, and come first. A check is answered at once all the same.
	Parallelism int
	// Answered are the findings of checks that are answered already, by their
	// names: no Job of theirs is started.
	Answered map[string][]finding.Finding
	// Progress is told of every change, one call at a time; nil is nobody.
	Progress func(Status)
}

// starter creates and deletes the Job of a check. It is launch.Launcher.
type starter interface {
	Start(ctx context.Context, check launch.Check) error
	End(ctx context.Context, check launch.Check) error
}

// Sources makes one source for each check of the plan. It begins to watch, and
// goes on until ctx is done; the sources are to be asked under the same ctx, all
// of them, since each has its place in the queue, in the order of the plan. An
// error means that the Jobs cannot be watched, and nothing was started. Jobs of
// the run that are there already are taken over.
//
// When the time of ctx is up, a source answers with what its check was doing.
// When ctx is canceled, it returns an error that says so.
func Sources(ctx context.Context, client kubernetes.Interface, start starter, plan launch.Plan, options Options) ([]collector.Source, error) {
	if options.Parallelism <= 0 {
		options.Parallelism = defaultParallelism
	}
	watched, err := follow(ctx, client, plan, options.Parallelism)
	if err != nil {
		return nil, err
	}
	shared := &run{client: client, start: start, watched: watched, progress: options.Progress}
	go shared.makeRoom(ctx)
	watched.line(func(check launch.Check) bool { return len(options.Answered[check.Name]) > 0 })
	sources := make([]collector.Source, 0, len(plan.Checks))
	for i, check := range plan.Checks {
		one := &source{run: shared, place: i, check: check, answered: options.Answered[check.Name]}
		sources = append(sources, collector.Source{Name: check.Name, Kind: finding.SourceJob, Collect: one.Collect})
	}
	return sources, nil
}

// run is what the sources of a run share.
type run struct {
	client  kubernetes.Interface
	start   starter
	watched *follower

	mutex    sync.Mutex
	progress func(Status)
}

func (r *run) tell(status Status) {
	if r.progress == nil {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.progress(status)
}

// makeRoom deletes the Jobs that nobody waits for, while others wait for their
// place.
func (r *run) makeRoom(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case check := <-r.watched.dismissed:
			r.watched.report("making room for other checks", r.start.End(ctx, check))
		}
	}
}

// source is one check.
type source struct {
	run   *run
	place int
	check launch.Check
	// answered are the findings that are in already.
	answered []finding.Finding

	log    *Log
	listed bool
	told   Status
	// last is what it waited for last.
	last Reading
	// inTurn is false while the check waits for its turn, restarted is true when
	// its Job was started once more, stays when that cannot be deleted.
	inTurn, restarted, stays bool
}

// Collect starts the Job when it is its turn, and waits for its answer.
func (s *source) Collect(ctx context.Context) ([]finding.Finding, error) {
	if len(s.answered) > 0 {
		return s.done(slices.Clone(s.answered)), nil
	}
	for {
		reading, err := s.round(ctx)
		if err != nil {
			return s.over(ctx, err)
		}
		if reading.State == Done {
			return s.done(reading.Findings), nil
		}
	}
}

// over answers when ctx is done. That the time is up is an answer, an interrupt
// is none.
func (s *source) over(ctx context.Context, cause error) ([]finding.Finding, error) {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("interrupted: %w", cause)
	}
	return s.done(s.expire(ctx)), nil
}

// round has the Job run once. It ends with an answer, or with a Job that is gone
// and has to be started again. An error means that ctx is done.
func (s *source) round(ctx context.Context) (Reading, error) {
	reading, err := s.begin(ctx)
	if err != nil || reading.State == Done {
		return reading, err
	}
	reading, err = s.await(ctx)
	if err != nil || reading.State == Done {
		return reading, err
	}
	s.tell(reading)
	s.restarted = s.restarted || reading.Restart
	return reading, s.vacate(ctx)
}

// begin creates the Job when it is the check's turn. It does nothing when the
// Job is there. That the API server does not take it is an answer.
func (s *source) begin(ctx context.Context) (Reading, error) {
	watched := s.run.watched
	if s.inTurn = !watched.enter(s.place); s.inTurn {
		return Reading{State: Waiting}, nil
	}
	s.tell(Reading{State: Queued, Detail: s.last.Detail})
	for {
		granted, changed := watched.turn(s.place)
		if granted {
			break
		}
		if err := change(ctx, changed, 0); err != nil {
			return Reading{}, err
		}
	}
	s.inTurn = true
	s.tell(Reading{State: Waiting, Detail: "creating the Job"})
	err := s.run.start.Start(ctx, s.check)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return Reading{}, err
	case err != nil:
		return Reading{State: Done, Findings: []finding.Finding{launch.Explain(s.check, err)}}, nil
	}
	watched.created(s.place)
	return Reading{State: Waiting}, nil
}

// await looks whenever something changed, until there is an answer or the Job
// has to be started again.
func (s *source) await(ctx context.Context) (Reading, error) {
	var cause string
	since := time.Now()
	for {
		o, changed := s.observe()
		o.Cause, o.Waited = cause, time.Since(since)
		reading := Classify(o)
		if reading.State == Done || reading.Restart {
			return reading, nil
		}
		if asked := s.ask(ctx, reading); asked {
			if err := ctx.Err(); err != nil {
				return reading, err
			}
			continue
		}
		if reading.Cause != cause {
			cause, since = reading.Cause, time.Now()
		}
		s.tell(reading)
		recheck, aside := s.stepAside(reading, time.Since(since))
		if aside {
			return reading, nil
		}
		if err := change(ctx, changed, recheck); err != nil {
			return reading, err
		}
	}
}

// ask gets what a reading wants to know, and is false when that is nothing.
func (s *source) ask(ctx context.Context, reading Reading) bool {
	switch {
	case reading.ReadLog != "":
		s.log = s.readLog(ctx, reading.ReadLog, reading.logTime)
	case reading.ListPods:
		s.listPods(ctx)
	default:
		return false
	}
	return true
}

// stepAside is true for a check of which nothing has run for a while, when
// others wait for its place; it comes to its turn again after them. Otherwise it
// is when to look again.
func (s *source) stepAside(reading Reading, waited time.Duration) (time.Duration, bool) {
	if !reading.Idle || s.stays {
		return reading.Recheck, false
	}
	if left := grace - waited; left > 0 {
		return left, false
	}
	return grace, s.run.watched.pressed(s.place)
}

// vacate deletes the Job where it is there, and waits until it is gone. Where it
// cannot be deleted, the check has to do with it.
func (s *source) vacate(ctx context.Context) error {
	s.inTurn = false
	o, changed := s.observe()
	if !o.Deleted {
		err := s.run.start.End(ctx, s.check)
		s.run.watched.report("starting a check again", err)
		if err != nil {
			s.stays, s.restarted = true, true
			return ctx.Err()
		}
	}
	for !o.Deleted {
		if err := change(ctx, changed, 0); err != nil {
			return err
		}
		o, changed = s.observe()
	}
	s.run.watched.renew(s.place)
	s.log, s.listed = nil, false
	return nil
}

// observe is what is known about the check's Job.
func (s *source) observe() (Observation, <-chan struct{}) {
	o, changed := s.run.watched.observe(s.place)
	o.Log, o.Listed, o.Restarted = s.log, s.listed, s.restarted
	return o, changed
}

// change returns when something changed, or it is time to look again. An error
// means that ctx is done.
func change(ctx context.Context, changed <-chan struct{}, recheck time.Duration) error {
	var alarm <-chan time.Time
	if recheck > 0 {
		timer := time.NewTimer(recheck)
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-alarm:
	}
	return nil
}

// expire answers when the time is up, with the last words of a check that is
// still at work.
func (s *source) expire(ctx context.Context) []finding.Finding {
	o, _ := s.observe()
	if !s.inTurn {
		return o.unstarted(s.last).Findings
	}
	if pod, ok := o.newest(); ok && o.Log == nil && Classify(o).State == Running {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWordsTime)
		defer cancel()
		o.Log = s.readLog(ctx, pod.Name, lastWordsTime)
	}
	o.Expired = true
	return Classify(o).Findings
}

// tell passes on what changed.
func (s *source) tell(reading Reading) {
	if reading.State == Waiting {
		s.last = reading
	}
	if reading.State == s.told.State && reading.Detail == s.told.Detail && reading.State != Done {
		return
	}
	s.told = Status{Check: s.check.Name, State: reading.State, Detail: reading.Detail, Since: time.Now(), Findings: reading.Findings}
	s.run.tell(s.told)
}

// done is the answer.
func (s *source) done(findings []finding.Finding) []finding.Finding {
	s.run.watched.settle(s.place)
	s.tell(Reading{State: Done, Findings: findings})
	return findings
}
