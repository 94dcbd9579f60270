package conformance

import (
	"cmp"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobplan"
	"github.com/openshift/update-preflight/runner/label"
)

// attempt is the data that one attempt left.
type attempt struct {
	// findings are what a preflight would report.
	findings []finding.Finding
	// end is the terminated state of the check's container; nil when it did not end.
	end *corev1.ContainerStateTerminated
	// running is true when it was still running.
	running bool
	// stopped is true when the kubelet stopped it.
	stopped bool
	// signal is the stop signal, if the kubelet reports it.
	signal corev1.Signal
	// message is the frame in the termination message, with the error of
	// parsing it.
	message      preflight.Result
	messageError error
	// flooded is true when the log has more than maxLog bytes.
	flooded bool
	// answered is true when the check itself wrote the final result.
	answered bool
}

// final is true when the check ended with a result that its exit
// code matches. Without a declared frame the exit code is the result.
func (a attempt) final(check jobplan.Check, log []byte) bool {
	run := check.Job.Labels[label.Run]
	for _, data := range [][]byte{[]byte(a.end.Message), log} {
		result, err := preflight.ParseFrame(data)
		if err == nil && result.RunID == run && result.Agrees(int(a.end.ExitCode)) {
			return true
		}
	}
	framed := check.Framed || a.messageError == nil || !errors.Is(a.messageError, preflight.ErrNoFrame)
	return !framed && a.end.ExitCode < 126 // exit codes from 126 are those of signals and failed starts
}

// took is how long the ended check ran.
func (a attempt) took() time.Duration { return a.end.FinishedAt.Sub(a.end.StartedAt.Time) }

// killed reports whether SIGKILL ended the check.
func (a attempt) killed() bool { return a.end != nil && a.end.ExitCode == 137 }

// replaces reports whether a second attempt counts instead of a first one, in which the
// check passed although it was stopped: the check passes by itself, or it is unknown how it
// ends.
func (a attempt) replaces() bool { return a.end == nil || !a.stopped && a.passed() }

// logged returns the attempt of an ended check with what its log adds.
func (a attempt) logged(check jobplan.Check, log []byte) attempt {
	a.flooded = len(log) > maxLog
	a.answered = a.final(check, log)
	return a
}

func observe(check jobplan.Check, pod corev1.Pod) attempt {
	status := checkStatus(check, pod)
	left := attempt{running: status.State.Running != nil, end: cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)}
	if status.StopSignal != nil {
		left.signal = *status.StopSignal
	}
	if left.end != nil {
		left.message, left.messageError = preflight.ParseFrame([]byte(left.end.Message))
		left.stopped = pod.Status.Reason == "DeadlineExceeded" && !left.end.FinishedAt.Time.Before(deadline(pod))
	}
	return left
}

// deadline is when the kubelet stops a pod. All times are those of the kubelet's clock: a
// check may end by itself before, and the kubelet notice it after.
func deadline(pod corev1.Pod) time.Time {
	if pod.Status.StartTime == nil || pod.Spec.ActiveDeadlineSeconds == nil {
		return time.Time{}
	}
	return pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
}
