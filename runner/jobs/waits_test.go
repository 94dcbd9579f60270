package jobs_test

import (
	stdcmp "cmp"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// phase is a state of a pod that lasts.
type phase struct {
	state func(*diagnosis.Pod)
	lasts time.Duration
}

// inPhases is the lifecycle of a Job whose pod has these states, then passes.
func inPhases(phases ...phase) func(*simulation, *batchv1.Job) {
	return func(s *simulation, job *batchv1.Job) {
		pod := s.pod(job, phases[0].state)
		for i, each := range phases {
			if i > 0 {
				s.update(pod, each.state)
			}
			if !s.pass(each.lasts) {
				return
			}
		}
		s.update(pod, ended(0, frame(s.t, preflight.StateFinal, reported("Quorum", preflight.Pass))))
		s.finish(job)
	}
}

// summaries are the waits with their durations.
func summaries(t *testing.T, waits []finding.Wait) []string {
	t.Helper()
	var all []string
	for _, wait := range waits {
		start, err := time.Parse(time.RFC3339, wait.StartTime)
		if err != nil {
			t.Error(err)
		}
		end, err := time.Parse(time.RFC3339, wait.EndTime)
		if err != nil {
			t.Error(err)
		}
		if len(wait.Message) > 256 {
			t.Errorf("a message has %d bytes", len(wait.Message))
		}
		all = append(all, fmt.Sprintf("%s %s", wait.Reason, end.Sub(start)))
	}
	return all
}

func TestWaitsOfChecks(t *testing.T) {
	creating := waiting("ContainerCreating", "")
	pulling := waiting("ErrImagePull", "429 Too Many Requests")
	var flapping []phase
	for range 4 {
		flapping = append(flapping, phase{unscheduled, 2 * time.Second}, phase{creating, 3 * time.Second})
	}
	for name, tc := range map[string]struct {
		reason      string
		phases      []phase
		checks      []jobplan.Check
		parallelism int
		deadline    time.Duration
		want        [][]string
	}{
		"None":     {reason: "a wait of less than a second is not kept", phases: []phase{{creating, time.Second / 2}, {running, time.Second}}, checks: checks("etcd", 1), want: [][]string{nil}},
		"Starting": {reason: "an image is pulled without an error", phases: []phase{{creating, 40 * time.Second}, {running, time.Second}}, checks: checks("etcd", 1), want: [][]string{{"Starting 40s"}}},
		"Pull": {
			reason: "errors are waits of their own, however their messages change", checks: checks("etcd", 1),
			phases: []phase{{pulling, 10 * time.Second}, {waiting("ImagePullBackOff", "Back-off: 429 Too Many Requests"), 10 * time.Second}, {creating, 5 * time.Second}, {running, time.Second}},
			want:   [][]string{{"ImagePull 20s", "Starting 5s"}},
		},
		"Queued": {
			reason: "the parallelism allows one Job", phases: []phase{{running, 3 * time.Second}}, checks: checks("etcd", 3), parallelism: 1,
			want: [][]string{nil, {"Queued 3s"}, {"Queued 6s"}},
		},
		"Serial": {
			reason: "serial checks wait for each other", phases: []phase{{running, 3 * time.Second}}, checks: checks("serial", 2),
			want: [][]string{nil, {"Queued 3s"}},
		},
		"Bounded": {
			reason: "the last five are kept", phases: append(flapping, phase{running, time.Second}), checks: checks("etcd", 1),
			want: [][]string{{"Unscheduled 3s", "Unschedulable 2s", "Unscheduled 3s", "Unschedulable 2s", "Unscheduled 3s"}},
		},
		"Deadline": {
			reason: "a wait lasts until the deadline", phases: []phase{{unscheduled, time.Hour}}, checks: checks("etcd", 1), deadline: 30 * time.Second,
			want: [][]string{{"Unschedulable 30s"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), stdcmp.Or(tc.deadline, time.Hour))
				defer cancel()
				s := newSimulation(ctx, t, inPhases(tc.phases...), tc.checks...)
				s.collect(jobs.Options{Parallelism: tc.parallelism})
				var got [][]string
				for _, check := range tc.checks {
					got = append(got, summaries(t, s.last[check.Name].Findings[0].Job.Waits))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}
