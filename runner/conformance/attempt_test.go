package conformance_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance"
	"github.com/openshift/update-preflight/runner/launch"
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
		"AtTheDeadline":  {reason: "the kubelet reports times in seconds", finished: limit * time.Second, cause: "DeadlineExceeded", want: true},
		"AfterDeadline":  {reason: "it had some seconds to end", finished: (limit + 4) * time.Second, cause: "DeadlineExceeded", want: true},
		"BeforeDeadline": {reason: "a busy kubelet noticed its end after the deadline of the pod", finished: (limit - 1) * time.Second, cause: "DeadlineExceeded"},
		"ByItself":       {reason: "the pod was not ended by its deadline", finished: (limit + 1) * time.Second},
		"Running":        {reason: "it has not ended", cause: "DeadlineExceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "preflight"}}}}
			check := launch.Check{Job: &batchv1.Job{Spec: batchv1.JobSpec{Template: template}}}
			status := corev1.ContainerStatus{Name: "preflight"}
			if tc.finished > 0 {
				status.State.Terminated = &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(start), FinishedAt: metav1.NewTime(start.Add(tc.finished))}
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
	for name, tc := range map[string]struct {
		reason  string
		end     *corev1.ContainerStateTerminated
		stopped bool
		outcome preflight.Outcome
		want    bool
	}{
		"Completes":    {reason: "its work was complete in the first attempt, too", end: &corev1.ContainerStateTerminated{}, outcome: preflight.Pass, want: true},
		"GivesUp":      {reason: "by itself it does not pass, so the pass was caused by the stop", end: &corev1.ContainerStateTerminated{}, outcome: preflight.Unknown},
		"PassesAgain":  {reason: "it passes whenever it is stopped", end: &corev1.ContainerStateTerminated{}, stopped: true, outcome: preflight.Pass},
		"UnknownLater": {reason: "it passed at one of two stops", end: &corev1.ContainerStateTerminated{}, stopped: true, outcome: preflight.Unknown},
		"Running":      {reason: "the second attempt is inconclusive", outcome: preflight.Unknown, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := conformance.Replaces(tc.end, tc.stopped, tc.outcome); got != tc.want {
				t.Errorf("%s: the second attempt counts: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
