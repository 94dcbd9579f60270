// Package jobs answers: what are the results of the Jobs of this run?
//
// [Sources] returns one collector source per check of a plan. A source creates
// its Job when the parallelism allows it, follows it through the watches that all
// sources share, and ends with the findings of the check, or with an Unknown
// finding that has the cause. [Classify] decides what an observed state means; it
// is pure.
//
// A container that terminated with a final result decides its check at once,
// without waiting for the Job's condition Complete. A check that did not promise
// such a result is decided by its exit code, once the Job makes no further
// attempt. Every other end of a pod is Unknown, with its cause and remedy.
//
// A Job counts if its UID is that of the Job which the starter created or adopted, and
// a pod if such a Job is its controller: a label or a name alone has no effect. The
// API server does not restrict which controller a pod names, so a user who may create
// pods in the namespace of a check can forge its result. Such a user can also execute
// commands in the pod of the check.
//
// A run survives a change of its runner: existing Jobs of the run are adopted in
// whatever state they are, and no Job is created twice. A Job whose outcome is
// lost, because it was deleted or its pod disappeared before its end was observed,
// is created once more; so is a Job that failed because its pods were evicted or
// drained. All state comes from list and watch; a watch that was interrupted or
// whose resourceVersion expired starts again with a list.
//
// Limitations: the check is the first container of the manifest; the others only
// have to exit 0. While more checks are queued than may run, the Job of a decided
// check that does not finish is deleted, and a check whose pod has not run for a
// while is deleted and queued again.
package jobs

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/launch"
)

// State is the progress of a check.
type State string

// The states of a check.
const (
	// Queued means that the check waits until the parallelism allows its Job.
	Queued State = "queued"
	// Waiting means that the Job exists and the container of the check does not
	// run.
	Waiting State = "waiting"
	// Running means that the container runs, or has just terminated.
	Running State = "running"
	// Done means that the findings of the check are complete.
	Done State = "done"
)

// Status is the progress of one check.
type Status struct {
	// Check is the name of the check.
	Check string
	State State
	// Detail is a clause about what the check waits for; may be empty.
	Detail string
	// Since is when State and Detail last changed.
	Since time.Time
	// Findings are set when State is Done.
	Findings []finding.Finding
}

// Observation is the observed state of the Job of one check at one moment.
type Observation struct {
	Check launch.Check
	// Job is nil until a list or watch returned it.
	Job *batchv1.Job
	// Deleted is true when the Job existed and no longer does.
	Deleted bool
	// Pods are all pods ever observed, by creation time.
	Pods []Pod
	// Warnings are the warning events about the Job and its pods, oldest first.
	Warnings []*corev1.Event
	// Log is what was read of a container's log; nil before it was read.
	Log *Log
	// Reason is that of the previous classification, Waited for how long it has
	// been the same.
	Reason finding.Reason
	Waited time.Duration
	// Listed is true when the pods were listed after the Job had finished: Pods is
	// complete.
	Listed bool
	// Restarted is true when the Job replaces one whose outcome was lost.
	Restarted bool
	// Expired is true when the deadline of the run has passed.
	Expired bool
	// APIErrors are the requests to the API server that fail at present; empty if
	// none.
	APIErrors string
}

// Pod is a pod in its last observed state.
type Pod struct {
	*corev1.Pod
	// Gone is true when the pod no longer exists.
	Gone bool
}

// Log is the end of a container's log.
type Log struct {
	// Pod is the name of the pod.
	Pod  string
	Text []byte
	// Error is why the log could not be read; empty if it was.
	Error string
}

// Classification is what an Observation means.
type Classification struct {
	// State is Waiting, Running or Done.
	State State
	// Detail is a clause about what the check waits for.
	Detail string
	// Reason is that of the finding if the state lasts until the deadline; empty
	// in an ordinary state.
	Reason finding.Reason
	// Findings are set when State is Done.
	Findings []finding.Finding
	// ReadLog names the pod whose log has to be read first.
	ReadLog string
	// ListPods is true when the pods have to be listed first, because the watch
	// may lag behind.
	ListPods bool
	// Recheck is after how long to classify again without a change; 0 is never.
	Recheck time.Duration
	// Restart is true when the outcome of the Job is lost: the Job has to be
	// deleted if it exists, and created once more.
	Restart bool
	// Idle is true when no container of the Job has ever run and it waits for
	// something without a time limit, so that it may yield to queued checks.
	Idle bool

	// cause is what Reason comes from.
	cause cause
	// logTimeout is how long to retry the reading of the log.
	logTimeout time.Duration
}
