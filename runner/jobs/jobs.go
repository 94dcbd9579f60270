// Package jobs answers: what are the results of the Jobs of this run?
//
// [Sources] returns one collector source per check of a plan. A source creates its Job when the parallelism allows it,
// follows it through the watches that all sources share, and ends with the findings of the check, or with an Unknown
// finding that contains the cause. Package jobwatch observes the state, package diagnosis interprets it.
//
// A Job counts if it has the UID of the Job which the starter created or adopted, and a pod if such a Job is its
// controller: a label or a name alone has no effect. The API server does not restrict which controller a pod names, so
// a user who may create pods in the namespace of a check can forge its result. Such a user can also execute commands in
// the pod of the check.
//
// A run survives a change of its runner: existing Jobs of the run are adopted in any state, and no Job is created
// twice. If the outcome of a Job is lost, because it was deleted or its pod disappeared before its end was observed,
// the Job is created once more. The same applies to a Job whose pods were evicted or drained.
//
// Limitations: the check is the first container of the manifest; the others only have to exit 0. While more checks are
// queued than may run, the Job of a decided check that does not finish is deleted, and a check whose pod has not run
// for a while is deleted and queued again.
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
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/jobs/checkresult"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/jobs/jobwatch"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// defaultParallelism is the bound on unfinished Jobs if Options has none.
const defaultParallelism = 32

// Options are the options of [Sources]; the zero value has the defaults.
type Options struct {
	// Parallelism bounds the Jobs of the run that are unfinished at one time, by
	// their own status; 0 is 32. Existing Jobs of the run count. The findings of a
	// check do not wait for its Job to finish.
	Parallelism int
	// Known are the findings of checks that are already complete, by the name of
	// the check; no Job is created for these.
	Known map[string][]finding.Finding
	// Progress is called with every change of a Status, one call at a time; may be nil.
	Progress func(Status)
}

// Status is the progress of one check.
type Status struct {
	Check string
	State diagnosis.State
	// Detail is a clause about the reason for waiting; may be empty.
	Detail string
	// Since is when State and Detail last changed.
	Since time.Time
	// Findings are set when State is Done.
	Findings []finding.Finding
}

// Sources returns one source per check of the plan. It starts the watches, which last until ctx is done. The caller
// must collect all sources, with the same ctx, because each is queued in the order of the plan. Existing Jobs whose UID
// start returns are followed; Start is called for every other check. An error means that the Jobs cannot be watched; no
// Job was created then.
//
// When the deadline of ctx passes, a source returns an Unknown finding with the last state of its check. When ctx is
// canceled, it returns an error.
func Sources(ctx context.Context, client kubernetes.Interface, start starter, plan jobplan.Plan,
	options Options,
) ([]collector.Source, error) {
	if options.Parallelism <= 0 {
		options.Parallelism = defaultParallelism
	}
	tracked, err := jobwatch.Start(ctx, client, start.UID, plan, options.Parallelism)
	if err != nil {
		return nil, err
	}
	shared := &run{client: client, start: start, tracker: tracked, progress: options.Progress}
	go shared.deleteEvicted(ctx)
	tracked.EnqueueAll(func(check jobplan.Check) bool { return len(options.Known[check.Name]) > 0 })
	sources := make([]collector.Source, 0, len(plan.Checks))
	for i, check := range plan.Checks {
		one := &source{run: shared, index: i, check: check, known: options.Known[check.Name]}
		sources = append(sources, collector.Source{Name: check.Name, Kind: finding.SourceJob, Collect: one.Collect})
	}
	return sources, nil
}

// Needs are the permissions to follow Jobs in all namespaces, without those to create them.
func Needs() access.Needs {
	var needs access.Needs
	for _, resource := range []access.Request{{Group: batchv1.GroupName, Resource: "jobs"}, {Resource: "pods"}, {Resource: "events"}} {
		needs.Required = append(needs.Required, access.Verbs(resource, "list", "watch")...)
	}
	needs.Required = append(needs.Required, access.Request{Verb: "get", Resource: "pods", Subresource: "log"})
	return needs
}

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
