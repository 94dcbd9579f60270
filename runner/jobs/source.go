package jobs

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/jobs/jobwatch"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

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
	s.reported = Status{Check: s.check.Name, State: classified.State, Detail: classified.Detail, Since: time.Now(), Findings: classified.Findings}
	s.run.report(s.reported)
}
