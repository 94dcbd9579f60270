package requirement

import (
	"cmp"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// Attempt is the data that one attempt left.
type Attempt struct {
	// Findings are what a preflight would report.
	Findings []finding.Finding
	// End is the terminated state of the check's container; nil when it did not end.
	End *corev1.ContainerStateTerminated
	// running is true when it was still running.
	running bool
	// Stopped is true when the kubelet stopped it.
	Stopped bool
	// signal is the stop signal, if the kubelet reports it.
	signal corev1.Signal
	// message is the frame in the termination message, with the error of parsing it.
	message      preflight.Result
	messageError error
	// flooded is true when the log has more than maxLog bytes.
	flooded bool
	// Answered is true when the check itself wrote the final result.
	Answered bool
}

// final is true when the check ended with a result that its exit
// code matches. Without a declared frame the exit code is the result.
func (a Attempt) final(check jobplan.Check, log []byte) bool {
	run := check.Job.Labels[label.Run]
	for _, data := range [][]byte{[]byte(a.End.Message), log} {
		result, err := preflight.ParseFrame(data)
		if err == nil && result.RunID == run && result.Agrees(int(a.End.ExitCode)) {
			return true
		}
	}
	framed := check.Framed || a.messageError == nil || !errors.Is(a.messageError, preflight.ErrNoFrame)
	return !framed && a.End.ExitCode < 126 // exit codes from 126 mean signals and failed starts
}

// Took is how long the ended check ran.
func (a Attempt) Took() time.Duration { return a.End.FinishedAt.Sub(a.End.StartedAt.Time) }

// killed reports whether SIGKILL ended the check.
func (a Attempt) killed() bool { return a.End != nil && a.End.ExitCode == 137 }

// Replaces reports whether a second attempt counts instead of a first one, in which the
// check passed although it was stopped: the check passes by itself, or it is unknown how it
// ends.
func (a Attempt) Replaces() bool { return a.End == nil || !a.Stopped && a.Passed() }

// Logged returns the attempt of an ended check with what its log adds.
func (a Attempt) Logged(check jobplan.Check, log []byte) Attempt {
	a.flooded = len(log) > MaxLog
	a.Answered = a.final(check, log)
	return a
}

// Observe returns what the pod of a check shows; its log adds to it with Logged.
func Observe(check jobplan.Check, pod corev1.Pod) Attempt {
	status := CheckStatus(check, pod)
	left := Attempt{running: status.State.Running != nil, End: cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)}
	if status.StopSignal != nil {
		left.signal = *status.StopSignal
	}
	if left.End != nil {
		left.message, left.messageError = preflight.ParseFrame([]byte(left.End.Message))
		left.Stopped = pod.Status.Reason == "DeadlineExceeded" && !left.End.FinishedAt.Time.Before(deadline(pod))
	}
	return left
}

// deadline is when the kubelet stops a pod. All times are by the kubelet's clock: a
// check may end by itself before, and the kubelet notice it after.
func deadline(pod corev1.Pod) time.Time {
	if pod.Status.StartTime == nil || pod.Spec.ActiveDeadlineSeconds == nil {
		return time.Time{}
	}
	return pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
}

// CheckStatus is the status of the check's container; zero without one.
func CheckStatus(check jobplan.Check, pod corev1.Pod) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == check.Job.Spec.Template.Spec.Containers[0].Name {
			return status
		}
	}
	return corev1.ContainerStatus{}
}
