package conformance_test

import (
	stdcmp "cmp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/runner/conformance"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// A check that ends by itself must not be accused of passing when it is stopped.
func TestStopped(t *testing.T) {
	start := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	const limit = 5
	for name, tc := range map[string]struct {
		reason   string
		finished time.Duration // after the start of the pod; 0: it is running
		cause    string        // of the end of the pod
		want     bool
	}{
		"AtTheDeadline": {reason: "the kubelet reports times in seconds", finished: limit * time.Second, cause: "DeadlineExceeded", want: true},
		"AfterDeadline": {reason: "it had some seconds to end", finished: (limit + 4) * time.Second, cause: "DeadlineExceeded", want: true},
		"BeforeDeadline": {
			reason: "a busy kubelet noticed its end after the deadline of the pod", finished: (limit - 1) * time.Second,
			cause: "DeadlineExceeded",
		},
		"ByItself": {reason: "the pod was not ended by its deadline", finished: (limit + 1) * time.Second},
		"Running":  {reason: "it has not ended", cause: "DeadlineExceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "preflight"}}}}
			check := jobplan.Check{Job: &batchv1.Job{Spec: batchv1.JobSpec{Template: template}}}
			status := corev1.ContainerStatus{Name: "preflight"}
			if tc.finished > 0 {
				status.State.Terminated = &corev1.ContainerStateTerminated{
					StartedAt:  metav1.NewTime(start),
					FinishedAt: metav1.NewTime(start.Add(tc.finished)),
				}
			}
			pod := corev1.Pod{
				Spec:   corev1.PodSpec{ActiveDeadlineSeconds: new(int64(limit))},
				Status: corev1.PodStatus{StartTime: new(metav1.NewTime(start)), Reason: tc.cause, ContainerStatuses: []corev1.ContainerStatus{status}},
			}
			if got := conformance.Stopped(check, pod); got != tc.want {
				t.Errorf("%s: stopped by the kubelet: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// A check that passed when it was stopped violates the requirement unless it passes by itself.
func TestSecondStop(t *testing.T) {
	const check, other = "Zoo.Candidate", "Zoo.Other"
	passesStopped := conformance.Ending{Stopped: true, Passes: true}
	for name, tc := range map[string]struct {
		reason        string
		trial         string
		first, second conformance.Ending
		once          bool
		want          bool
	}{
		"Completes": {
			reason: "its work was complete in the first attempt, too", first: passesStopped,
			second: conformance.Ending{Passes: true},
		},
		"GivesUp": {
			reason: "by itself it does not pass, so the pass was caused by the stop", first: passesStopped,
			second: conformance.Ending{}, want: true,
		},
		"PassesAgain":  {reason: "it passes whenever it is stopped", first: passesStopped, second: passesStopped, want: true},
		"UnknownLater": {reason: "it passed at one of two stops", first: passesStopped, second: conformance.Ending{Stopped: true}, want: true},
		"Running":      {reason: "the second attempt is inconclusive", first: passesStopped, second: conformance.Ending{Lost: true}},
		"Unknown":      {reason: "it did not pass when it was stopped", first: conformance.Ending{Stopped: true}, once: true},
		"ByItself":     {reason: "it ended by itself", first: conformance.Ending{Passes: true}, once: true},
		"Killed":       {reason: "both stops have the rule", trial: conformance.Killed, first: passesStopped, second: passesStopped, want: true},
		"NoStop": {
			reason: "the deadline of the run ended a trial that stops no check", trial: conformance.Memory, first: passesStopped,
			once: true, want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			attempts, violates, err := conformance.TryAll(t.Context(), stdcmp.Or(tc.trial, conformance.Terminated), []string{check, other}, tc.first,
				tc.second)
			if err != nil {
				t.Fatal(err)
			}
			want := [][]string{{check, other}, {check}}
			if tc.once {
				want = want[:1]
			}
			if diff := cmp.Diff(want, attempts); diff != "" {
				t.Errorf("%s: checks of each attempt (-want, +got):\n%s", tc.reason, diff)
			}
			if violates != tc.want {
				t.Errorf("%s: it passes although it is stopped: %t, want %t", tc.reason, violates, tc.want)
			}
		})
	}
}

// A check is stopped late enough that it has reported that it runs.
func TestSettle(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		starting int64
		before   time.Duration
		want     int64
	}{
		"Fast":   {reason: "times of a kubelet have a precision of a second", want: 3},
		"Slow":   {reason: "a busy node needs as long again", starting: 7, want: 7},
		"Slower": {reason: "the time is bounded", starting: 60, want: 10},
		"Again":  {reason: "the second time it runs more than twice as long as the first time", starting: 7, before: 12 * time.Second, want: 27},
	} {
		t.Run(name, func(t *testing.T) {
			if got := conformance.Settle(tc.starting, tc.before); got != tc.want {
				t.Errorf("%s: stopped after %d s, want %d s", tc.reason, got, tc.want)
			}
		})
	}
}
