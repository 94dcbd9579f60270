package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobplan"
	"github.com/openshift/update-preflight/runner/label"
)

// maxLog bounds the log of a check, in bytes. A preflight reads
// the last 2 MiB, and a node keeps 10 MiB.
const maxLog = 1 << 20

// read reads the pod of a check before it is deleted.
func (s *session) read(ctx context.Context, check jobplan.Check) (attempt, error) {
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
	return left.logged(check, log), nil
}

// logged returns the attempt of an ended check with what its log adds.
func (a attempt) logged(check jobplan.Check, log []byte) attempt {
	a.flooded = len(log) > maxLog
	a.answered = a.final(check, log)
	return a
}

// pods lists the pods of a check.
func (s *session) pods(ctx context.Context, check jobplan.Check) ([]corev1.Pod, error) {
	selection := ofRun(check.Job.Labels[label.Run])
	selection.LabelSelector += "," + labels.Set{"job-name": check.Job.Name}.String()
	pods, err := s.Kubernetes.CoreV1().Pods(check.Job.Namespace).List(ctx, selection)
	if err != nil {
		return nil, fmt.Errorf("could not list the pods of Job %q: %w", check.Job.Name, err)
	}
	return pods.Items, nil
}

func ofRun(run string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.Set{label.Run: run}.String()}
}

// checkStatus is the status of the check's container; zero without one.
func checkStatus(check jobplan.Check, pod corev1.Pod) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == check.Job.Spec.Template.Spec.Containers[0].Name {
			return status
		}
	}
	return corev1.ContainerStatus{}
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
