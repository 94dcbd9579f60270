package diagnosis

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// Observation is the observed state of the Job of one check at one moment.
type Observation struct {
	Check jobplan.Check
	// Job is nil until a list or watch returned it.
	Job *batchv1.Job
	// Deleted is true when the Job existed and no longer does.
	Deleted bool
	// Pods are all pods ever observed, by creation time.
	Pods []Pod
	// Warnings are the warning events about the Job and its pods, oldest first.
	Warnings []*corev1.Event
	// Log of a container, as far as it was read; nil before.
	Log *Log
	// Reason is the reason of the previous classification, Waited for how long it has been the same.
	Reason finding.Reason
	Waited time.Duration
	// Listed is true when the pods were listed after the Job had finished: Pods is complete.
	Listed bool
	// Restarted is true when the Job replaces one whose outcome was lost.
	Restarted bool
	// Expired is true when the deadline of the run has passed.
	Expired bool
	// APIErrors are the requests to the API server that fail at present; empty if none.
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
	Pod  string
	Text []byte
	// Error is why the log could not be read; empty if it was.
	Error string
}

// text is nil before the log was read.
func (l *Log) text() []byte {
	if l == nil {
		return nil
	}
	return l.Text
}

// Newest is the pod of the last attempt.
func (o Observation) Newest() (Pod, bool) {
	if len(o.Pods) == 0 {
		return Pod{}, false
	}
	return o.Pods[len(o.Pods)-1], true
}

// neverRan is true when a Job has one pod, and no container of it has ever run.
func (o Observation) neverRan() bool {
	if len(o.Pods) != 1 || o.Pods[0].Gone {
		return false
	}
	status := o.Pods[0].Status
	return !slices.ContainsFunc(slices.Concat(status.InitContainerStatuses, status.ContainerStatuses), func(container corev1.ContainerStatus) bool {
		return container.State.Running != nil || container.State.Terminated != nil || container.LastTerminationState.Terminated != nil
	})
}

func (o Observation) warning(kind, name string) *corev1.Event {
	for _, event := range slices.Backward(o.Warnings) {
		if event.InvolvedObject.Kind == kind && event.InvolvedObject.Name == name {
			return event
		}
	}
	return nil
}

func (o Observation) logOf(pod Pod) *Log {
	if o.Log != nil && o.Log.Pod == pod.Name {
		return o.Log
	}
	return nil
}
