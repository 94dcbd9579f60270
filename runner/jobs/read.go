package jobs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/jobs/checkresult"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
)

const (
	// logLines and logBytes bound the end of a log that is read: enough for a
	// result of 1 MiB in parts, in the SDK's format.
	logLines      = 2000
	logBytes      = 2 << 20
	retryInterval = time.Second
)

// readLog reads the end of the log of the check's container, with retries until
// the timeout. A failure is in Log.Error.
func (s *source) readLog(ctx context.Context, pod string, timeout time.Duration) *diagnosis.Log {
	var log *diagnosis.Log
	start := time.Now()
	err := wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		text, err := s.logOf(ctx, pod, timeout)
		log = &diagnosis.Log{Pod: pod, Text: text}
		if err == nil {
			return true, nil
		}
		log.Error = err.Error()
		awaited := timeout == diagnosis.RequiredLogTimeout && unreachable(err)
		return permanent(err) || time.Since(start) >= timeout && !awaited, nil
	})
	if log == nil {
		return &diagnosis.Log{Pod: pod, Error: err.Error()}
	}
	return log
}

func (s *source) logOf(ctx context.Context, pod string, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stream, err := s.run.client.CoreV1().Pods(s.check.Job.Namespace).GetLogs(pod, &corev1.PodLogOptions{
		Container: checkresult.MainContainer(s.check), TailLines: new(int64(logLines)), LimitBytes: new(int64(logBytes)),
	}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(stream, logBytes))
	return text, errors.Join(err, stream.Close())
}

// maxPods bounds the pods that are listed of a Job. An imitation may have its label, but has no effect.
const maxPods = 500

// listPods lists the pods of the check's Job, with retries until ctx is done: by the label that the Job controller
// requires of a pod to count it. Admission can remove every other one.
func (s *source) listPods(ctx context.Context) {
	job := s.check.Job
	options := metav1.ListOptions{
		LabelSelector: labels.Set{batchv1.ControllerUidLabel: string(s.run.start.UID(s.check))}.String(), Limit: maxPods,
	}
	err := wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		found, err := s.run.client.CoreV1().Pods(job.Namespace).List(ctx, options)
		if err != nil {
			s.run.tracker.Failures.Record("listing the pods of a Job", err)
			return permanent(err), nil
		}
		s.run.tracker.ReplacePods(s.index, found.Items)
		return true, nil
	})
	s.listed = err == nil
}

// permanent is true for a response that a retry does not change: the pod or log
// does not exist, or the user may not read it.
func permanent(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}

// unreachable is true when the API server did not respond.
func unreachable(err error) bool { return retry.Disconnected(err) || utilnet.IsConnectionRefused(err) }
