package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
)

const (
	// defaultParallelism is how many Jobs are unfinished at one time where
	// nobody says otherwise.
	defaultParallelism = 32
	// The end of a log that is read: enough for a result of 1 MiB in parts, in
	// the SDK's form.
	logLines = 2000
	logBytes = 2 << 20
	// lastWordsTime bounds the reading of a log when the time of a run is up.
	lastWordsTime = 3 * time.Second
)

// Options are what may be chosen; the zero value is good.
type Options struct {
	// Parallelism bounds the Jobs that are unfinished at one time; 0 is 32.
	Parallelism int
	// Progress is told of every change, one call at a time; nil is nobody.
	Progress func(Status)
}

// starter creates the Job of a check. It is launch.Launcher.
type starter interface {
	Start(ctx context.Context, check launch.Check) error
}

// Sources makes one source for each check of the plan. It begins to watch, and
// goes on until ctx is done; the sources are to be asked under the same ctx. An
// error means that the Jobs cannot be watched, and nothing was started.
//
// When the time of ctx is up, a source answers with what its check was doing.
// When ctx is canceled, it returns an error that says so.
func Sources(ctx context.Context, client kubernetes.Interface, start starter, plan launch.Plan, options Options) ([]collector.Source, error) {
	watched, err := follow(ctx, client, plan)
	if err != nil {
		return nil, err
	}
	if options.Parallelism <= 0 {
		options.Parallelism = defaultParallelism
	}
	shared := &run{
		client: client, start: start, watched: watched, progress: options.Progress,
		slots: semaphore.NewWeighted(int64(options.Parallelism)),
	}
	sources := make([]collector.Source, 0, len(plan.Checks))
	for _, check := range plan.Checks {
		sources = append(sources, &source{run: shared, check: check})
	}
	return sources, nil
}

// run is what the sources of a run share.
type run struct {
	client  kubernetes.Interface
	start   starter
	watched *follower
	slots   *semaphore.Weighted

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

// source is one check.
type source struct {
	run   *run
	check launch.Check
	told  Status
}

var _ collector.Source = (*source)(nil)

// Name implements collector.Source.
func (s *source) Name() string { return s.check.Name }

// Source implements collector.Source.
func (s *source) Source() preflight.Source { return preflight.SourceJob }

// Collect starts the Job when there is room, and waits for its answer.
func (s *source) Collect(ctx context.Context) ([]preflight.Finding, error) {
	s.tell(Reading{State: Queued})
	if err := s.run.slots.Acquire(ctx, 1); err != nil {
		return s.unstarted(ctx)
	}
	defer s.run.slots.Release(1)

	s.tell(Reading{State: Waiting, Detail: "creating the Job"})
	if err := s.run.start.Start(ctx, s.check); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		return s.done([]preflight.Finding{launch.Explain(s.check, err)}), nil
	}
	return s.await(ctx)
}

// unstarted answers for a check that never had its turn.
func (s *source) unstarted(ctx context.Context) ([]preflight.Finding, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	o := Observation{Check: s.check}
	return s.done(o.unknown(obstacle{
		cause: "NotStarted", detail: "time is up: the check had to wait until other checks end, and was never started",
		remedy: "Run the preflight again with a longer --timeout or a higher --parallelism.",
	}).Findings), nil
}

// await looks whenever something changed, until there is an answer.
func (s *source) await(ctx context.Context) ([]preflight.Finding, error) {
	var log *Log
	var cause string
	since := time.Now()
	for {
		o, changed := s.run.watched.observe(s.check)
		o.Log, o.Cause, o.Waited = log, cause, time.Since(since)
		reading := Classify(o)
		if reading.State == Done {
			return s.done(reading.Findings), nil
		}
		if reading.ReadLog != "" {
			log = s.readLog(ctx, reading.ReadLog)
			continue
		}
		if reading.Cause != cause {
			cause, since = reading.Cause, time.Now()
		}
		s.tell(reading)
		if err := wait(ctx, changed, reading.Recheck); err != nil {
			return s.expire(ctx, o)
		}
	}
}

// wait returns when something changed, or it is time to look again. An error
// means that ctx is done.
func wait(ctx context.Context, changed <-chan struct{}, recheck time.Duration) error {
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
func (s *source) expire(ctx context.Context, o Observation) ([]preflight.Finding, error) {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("interrupted: %w", ctx.Err())
	}
	if pod, ok := o.newest(); ok && o.Log == nil && Classify(o).State == Running {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWordsTime)
		defer cancel()
		o.Log = s.readLog(ctx, pod.Name)
	}
	o.Expired = true
	return s.done(Classify(o).Findings), nil
}

// readLog reads the end of the log of the check's container. That it cannot be
// read is known then, and judged like everything else.
func (s *source) readLog(ctx context.Context, pod string) *Log {
	stream, err := s.run.client.CoreV1().Pods(s.check.Job.Namespace).GetLogs(pod, &corev1.PodLogOptions{
		Container: mainContainer(s.check), TailLines: new(int64(logLines)), LimitBytes: new(int64(logBytes)),
	}).Stream(ctx)
	if err != nil {
		return &Log{Pod: pod, Problem: err.Error()}
	}
	text, err := io.ReadAll(io.LimitReader(stream, logBytes))
	if err = errors.Join(err, stream.Close()); err != nil {
		return &Log{Pod: pod, Text: text, Problem: err.Error()}
	}
	return &Log{Pod: pod, Text: text}
}

// tell passes on what changed.
func (s *source) tell(reading Reading) {
	if reading.State == s.told.State && reading.Detail == s.told.Detail && reading.State != Done {
		return
	}
	s.told = Status{Check: s.check.Name, State: reading.State, Detail: reading.Detail, Since: time.Now(), Findings: reading.Findings}
	s.run.tell(s.told)
}

func (s *source) done(findings []preflight.Finding) []preflight.Finding {
	s.tell(Reading{State: Done, Findings: findings})
	return findings
}
