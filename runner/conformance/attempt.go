package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
)

// maxLog bounds the log of a check, in bytes. A preflight reads
// the last 2 MiB, and a node keeps 10 MiB.
const maxLog = 1 << 20

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

// trialResults holds the attempts by check and trial, and the rights of its account
// by check.
type trialResults struct {
	mutex    sync.Mutex
	tried    map[string]map[string]attempt
	accounts map[string]access.Rights
	// reading is true when a binding of the manifest grants the account rights.
	reading map[string]bool
}

func (s *trialResults) write(check, trial string, left attempt) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.tried[check] == nil {
		s.tried[check] = map[string]attempt{}
	}
	s.tried[check][trial] = left
}

// answered are the checks with a final result in the first trial.
func (s *trialResults) answered(checks []string) []string {
	var answered []string
	for _, check := range checks {
		if s.tried[check][asIs].answered {
			answered = append(answered, check)
		}
	}
	return answered
}

// read reads the pod of a check before it is deleted.
func (s *session) read(ctx context.Context, check launch.Check) (attempt, error) {
	pods, err := s.pods(ctx, check)
	if err != nil || len(pods) == 0 {
		return attempt{}, err
	}
	newest := slices.MaxFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	left := observe(check, newest)
	if left.end == nil {
		return left, nil
	}
	log, err := s.log(ctx, newest, check.Job.Spec.Template.Spec.Containers[0].Name)
	if err != nil {
		return attempt{}, err
	}
	left.flooded = len(log) > maxLog
	left.answered = left.final(check, log)
	return left, nil
}

// pods lists the pods of a check.
func (s *session) pods(ctx context.Context, check launch.Check) ([]corev1.Pod, error) {
	selection := ofRun(check.Job.Labels[label.Run])
	selection.LabelSelector += "," + labels.Set{"job-name": check.Job.Name}.String()
	pods, err := s.Kubernetes.CoreV1().Pods(check.Job.Namespace).List(ctx, selection)
	if err != nil {
		return nil, fmt.Errorf("could not list the pods of Job %q: %w", check.Job.Name, err)
	}
	return pods.Items, nil
}

// checkStatus is the status of the check's container; zero without one.
func checkStatus(check launch.Check, pod corev1.Pod) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == check.Job.Spec.Template.Spec.Containers[0].Name {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

func observe(check launch.Check, pod corev1.Pod) attempt {
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

// log is the first maxLog+1 bytes of the check's log.
func (s *session) log(ctx context.Context, pod corev1.Pod, container string) ([]byte, error) {
	stream, err := s.Kubernetes.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, LimitBytes: new(int64(maxLog + 1)),
	}).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not read the log of pod %q: %w", pod.Name, err)
	}
	text, err := io.ReadAll(io.LimitReader(stream, maxLog+1))
	if err := errors.Join(err, stream.Close()); err != nil {
		return nil, fmt.Errorf("could not read the log of pod %q: %w", pod.Name, err)
	}
	return text, nil
}

// final is true when the check ended with a result that its exit
// code matches. Without a declared frame the exit code is the result.
func (a attempt) final(check launch.Check, log []byte) bool {
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
