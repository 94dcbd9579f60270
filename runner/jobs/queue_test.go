package jobs_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

const passed = "Etcd.Quorum Pass(Because)"

func TestUnfinishedJobsAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		checks      []jobplan.Check
		parallelism int
		existing    int // of the checks have a Job before the run begins
		most        int
		together    int
		took        time.Duration // until the last findings, at one second per check
	}{
		"ByTheirResult": {
			"a Job counts until its containers have ended and its check has findings, not until it is Complete", checks("etcd", 6),
			2, 0, 2, 0, 3 * time.Second,
		},
		"AllAtOnce":      {"the parallelism allows all", checks("etcd", 6), 6, 0, 6, 0, time.Second},
		"ByDefault":      {"the default bound is 32", checks("etcd", 40), 0, 0, 32, 0, 2 * time.Second},
		"Existing":       {"Jobs of a previous runner count", checks("etcd", 6), 3, 2, 3, 0, 2 * time.Second},
		"MoreExisting":   {"more Jobs may exist than the parallelism allows", checks("etcd", 6), 2, 4, 4, 0, 2 * time.Second},
		"OneAtATime":     {"serial checks of a component run one at a time", checks("serial", 3), 8, 0, 1, 1, 3 * time.Second},
		"BesideOthers":   {"serial checks do not delay others", append(checks("serial", 3), checks("etcd", 3)...), 2, 0, 2, 1, 3 * time.Second},
		"ExistingSerial": {"a serial Job of a previous runner counts", checks("serial", 3), 8, 1, 1, 1, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation(t.Context(), t, passes, tc.checks...)
				for _, check := range tc.checks[:tc.existing] {
					if err := s.create(t.Context(), check); err != nil {
						t.Fatal(err)
					}
				}
				got := s.collect(jobs.Options{Parallelism: tc.parallelism})
				if diff := cmp.Diff(slices.Repeat([]string{passed}, len(tc.checks)), got); diff != "" {
					t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
				}
				if s.most != tc.most || s.together != tc.together {
					t.Errorf("%s: %d Jobs were unfinished at one time, %d of them serial; want %d and %d", tc.reason, s.most, s.together, tc.most,
						tc.together)
				}
				if len(s.started) != len(tc.checks)-tc.existing || len(s.ended) > 0 {
					t.Errorf("%s: started %v, ended %v", tc.reason, s.started, s.ended)
				}
				if took := slices.Max(slices.Collect(maps.Values(s.done))); took != tc.took {
					t.Errorf("%s: the last findings came after %s, want %s", tc.reason, took, tc.took)
				}
			})
		})
	}
}

func TestFindingsOfPreviousRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t.Context(), t, passes, checks("etcd", 3)...)
		// One check has findings, and its Job is unfinished.
		if err := s.create(t.Context(), s.plan.Checks[0]); err != nil {
			t.Fatal(err)
		}
		known := []finding.Finding{{Finding: preflight.Finding{Name: "Etcd.Alarm", Outcome: preflight.Fail, Reason: "Because"}}}
		got := s.collect(jobs.Options{Parallelism: 1, Known: map[string][]finding.Finding{"Etcd.etcd-0": known, "Etcd.etcd-1": known}})
		if diff := cmp.Diff([]string{"Etcd.Alarm Fail(Because)", "Etcd.Alarm Fail(Because)", passed}, got); diff != "" {
			t.Errorf("(-want, +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"etcd-2"}, s.started); diff != "" || s.most > 1 {
			t.Errorf("%d Jobs at one time; started (-want, +got):\n%s", s.most, diff)
		}
	})
}

// stuck is a lifecycle in which the first two Jobs never run.
func stuck(state func(*diagnosis.Pod)) func(*simulation, *batchv1.Job) {
	return func(s *simulation, job *batchv1.Job) {
		if strings.HasSuffix(job.Name, "-0") || strings.HasSuffix(job.Name, "-1") {
			s.pod(job, state)
			return
		}
		passes(s, job)
	}
}

func TestStuckCheckDoesNotBlockOthers(t *testing.T) {
	const imagePull, unschedulable = "Unknown(ImagePull)", "Unknown(Unschedulable)"
	for name, tc := range map[string]struct {
		reason string
		state  func(*diagnosis.Pod)
		checks []jobplan.Check
		want   string
		ended  bool
		after  time.Duration // the others have findings
	}{
		"Complete": {
			"the Job of a complete check that does not finish is deleted", waiting("InvalidImageName", "no"), checks("etcd", 4),
			imagePull, true, time.Second,
		},
		"CompleteSerial": {"a serial Job is deleted, too", waiting("InvalidImageName", "no"), checks("serial", 3), imagePull, true, time.Second},
		"NoneQueued": {
			"a Job is kept for inspection if no check is queued", waiting("InvalidImageName", "no"), checks("etcd", 2), imagePull,
			false, 0,
		},
		"AfterTimeout": {
			"a transient cause is tolerated first", waiting("ErrImagePull", "429 Too Many Requests"), checks("etcd", 4), imagePull,
			true, 91 * time.Second,
		},
		"Yields": {
			"a cause without a time limit yields, and is queued again", unscheduled, checks("etcd", 4), unschedulable, true,
			91 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				s := newSimulation(ctx, t, stuck(tc.state), tc.checks...)
				got := s.collect(jobs.Options{Parallelism: 2})
				for i, outcome := range got {
					if i < 2 && !strings.HasSuffix(outcome, tc.want) || i >= 2 && outcome != passed {
						t.Errorf("%s: check %d ended with %s", tc.reason, i, outcome)
					}
				}
				if tc.ended != slices.Contains(s.ended, tc.checks[0].Job.Name) {
					t.Errorf("%s: ended %v", tc.reason, s.ended)
				}
				if len(tc.checks) > 2 && s.done[tc.checks[2].Name] != tc.after {
					t.Errorf("%s: others had findings after %s, want %s", tc.reason, s.done[tc.checks[2].Name], tc.after)
				}
				if s.most > 2 || s.times(tc.checks[len(tc.checks)-1].Job.Name) != 1 {
					t.Errorf("%s: %d Jobs at one time, started %v", tc.reason, s.most, s.started)
				}
			})
		})
	}
}

func TestYieldedCheckIsQueuedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lifecycle := func(s *simulation, job *batchv1.Job) {
			if strings.HasSuffix(job.Name, "-0") && s.times(job.Name) == 1 {
				s.pod(job, unscheduled)
				return
			}
			passes(s, job)
		}
		s := newSimulation(t.Context(), t, lifecycle, checks("etcd", 3)...)
		got := s.collect(jobs.Options{Parallelism: 1})
		if diff := cmp.Diff(slices.Repeat([]string{passed}, 3), got); diff != "" {
			t.Errorf("(-want, +got):\n%s", diff)
		}
		if s.times("etcd-0") != 2 || s.times("etcd-1") != 1 || s.times("etcd-2") != 1 || s.most > 1 {
			t.Errorf("%d at one time, started %v", s.most, s.started)
		}
	})
}

// drained is a lifecycle in which the first Job fails because its pod is drained.
func drained(s *simulation, job *batchv1.Job) {
	if s.times(job.Name) > 1 {
		passes(s, job)
		return
	}
	s.pod(job, disrupted, ended(143, ""))
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True", Reason: batchv1.JobReasonBackoffLimitExceeded}}
	s.close(job)
	_, err := s.client.BatchV1().Jobs(job.Namespace).UpdateStatus(s.ctx, job, metav1.UpdateOptions{})
	s.check(err)
}

func TestJobFailedByDrainIsRestartedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t.Context(), t, drained, checks("etcd", 2)...)
		got := s.collect(jobs.Options{Parallelism: 1})
		if diff := cmp.Diff(slices.Repeat([]string{passed}, 2), got); diff != "" {
			t.Errorf("(-want, +got):\n%s", diff)
		}
		if s.times("etcd-0") != 2 || s.times("etcd-1") != 2 || len(s.ended) != 2 || s.most > 1 {
			t.Errorf("started %v, ended %v, at most %d at one time", s.started, s.ended, s.most)
		}
	})
}
