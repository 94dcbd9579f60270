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

	"github.com/openshift/update-preflight/runner/label"
)

const (
	// The end of a log that is read: enough for a result of 1 MiB in parts, in
	// the SDK's form.
	logLines = 2000
	logBytes = 2 << 20
	// logTime is how long to try to read a log that an answer depends on: a
	// kubelet that restarts is back by then. An API server is waited for as long
	// as the run lasts.
	logTime = 30 * time.Second
	// lastWordsTime bounds the reading of a log that is good to have.
	lastWordsTime = 3 * time.Second
	// retryInterval is the time between two tries.
	retryInterval = time.Second
)

// readLog reads the end of the log of the check's container, and tries for so
// long. That it cannot be read is known then, and judged like everything else.
func (s *source) readLog(ctx context.Context, pod string, patience time.Duration) *Log {
	var log *Log
	start := time.Now()
	err := wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		text, err := s.logOf(ctx, pod, patience)
		log = &Log{Pod: pod, Text: text}
		if err == nil {
			return true, nil
		}
		log.Problem = err.Error()
		awaited := patience == logTime && unreachable(err)
		return refused(err) || time.Since(start) >= patience && !awaited, nil
	})
	if log == nil {
		return &Log{Pod: pod, Problem: err.Error()}
	}
	return log
}

func (s *source) logOf(ctx context.Context, pod string, patience time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stream, err := s.run.client.CoreV1().Pods(s.check.Job.Namespace).GetLogs(pod, &corev1.PodLogOptions{
		Container: mainContainer(s.check), TailLines: new(int64(logLines)), LimitBytes: new(int64(logBytes)),
	}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(stream, logBytes))
	return text, errors.Join(err, stream.Close())
}

// listPods lists the pods of the check's Job, for as long as it takes.
func (s *source) listPods(ctx context.Context) {
	job := s.check.Job
	options := metav1.ListOptions{LabelSelector: labels.Set{batchv1.JobNameLabel: job.Name, label.Run: job.Labels[label.Run]}.String()}
	err := wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		found, err := s.run.client.CoreV1().Pods(job.Namespace).List(ctx, options)
		if err != nil {
			s.run.watched.report("listing the pods of a Job", err)
			return refused(err), nil
		}
		s.run.watched.list(s.place, found.Items)
		return true, nil
	})
	s.listed = err == nil
}

// refused is true for an answer that stays the same: there is no such pod or
// log, or the user may not read it.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}

// unreachable is true when the API server itself did not answer.
func unreachable(err error) bool {
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}
