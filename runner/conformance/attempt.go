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

// maxLog is how much a check may write to its log, in bytes. A preflight reads
// the last 2 MiB, and a node keeps 10 MiB.
const maxLog = 1 << 20

// attempt is what one attempt left.
type attempt struct {
	// findings are what a preflight would report of it.
	findings []finding.Finding
	// end is how the check's container ended; nil when it did not.
	end *corev1.ContainerStateTerminated
	// running is true when it was still at work.
	running bool
	// ended is true when the kubelet put an end to it.
	ended bool
	// signal is what a kubelet ends the check with, where it says so.
	signal corev1.Signal
	// message is the frame in the termination message, with the error of the
	// reading.
	message      preflight.Result
	messageError error
	// flooded is true when the log has more than maxLog bytes.
	flooded bool
	// answered is true when the check itself had the last word.
	answered bool
}

// slate holds the attempts by check and trial, and what is known of its account
// by check.
type slate struct {
	mutex    sync.Mutex
	tried    map[string]map[string]attempt
	accounts map[string]access.Rights
	// reading is true where a binding of the manifest gives the account rights.
	reading map[string]bool
}

func (s *slate) write(check, trial string, left attempt) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.tried[check] == nil {
		s.tried[check] = map[string]attempt{}
	}
	s.tried[check][trial] = left
}

// answered are the checks that had the last word in the first trial.
func (s *slate) answered(checks []string) []string {
	var answered []string
	for _, check := range checks {
		if s.tried[check][asIs].answered {
			answered = append(answered, check)
		}
	}
	return answered
}

// read looks at the pod of a check before it is deleted.
func (s *session) read(ctx context.Context, check launch.Check) (attempt, error) {
	selection := ofRun(check.Job.Labels[label.Run])
	selection.LabelSelector += "," + labels.Set{"job-name": check.Job.Name}.String()
	pods, err := s.Kubernetes.CoreV1().Pods(check.Job.Namespace).List(ctx, selection)
	if err != nil {
		return attempt{}, fmt.Errorf("could not list the pods of Job %q: %w", check.Job.Name, err)
	}
	if len(pods.Items) == 0 {
		return attempt{}, nil
	}
	newest := slices.MaxFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
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

func observe(check launch.Check, pod corev1.Pod) attempt {
	left := attempt{ended: pod.Status.Reason == "DeadlineExceeded"}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != check.Job.Spec.Template.Spec.Containers[0].Name {
			continue
		}
		left.running = status.State.Running != nil
		left.end = cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
		if status.StopSignal != nil {
			left.signal = *status.StopSignal
		}
	}
	if left.end != nil {
		left.message, left.messageError = preflight.ParseFrame([]byte(left.end.Message))
	}
	return left
}

// log is the beginning of what the check wrote, one byte more than it may.
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

// final is true when the check ended with a result of its own that its exit
// code agrees with. Without a promise of one the exit code is the result.
func (a attempt) final(check launch.Check, log []byte) bool {
	run := check.Job.Labels[label.Run]
	for _, data := range [][]byte{[]byte(a.end.Message), log} {
		result, err := preflight.ParseFrame(data)
		if err == nil && result.RunID == run && result.Agrees(int(a.end.ExitCode)) {
			return true
		}
	}
	framed := check.Framed || a.messageError == nil || !errors.Is(a.messageError, preflight.ErrNoFrame)
	return !framed && a.end.ExitCode < 126 // from there on the exit codes are those of signals and of what could not be run
}

// took is how long the check was at work; it has ended.
func (a attempt) took() time.Duration { return a.end.FinishedAt.Sub(a.end.StartedAt.Time) }

// killed tells SIGKILL from other ends.
func (a attempt) killed() bool { return a.end != nil && a.end.ExitCode == 137 }
