package diagnosis

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/jobs/checkresult"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

var (
	reasonAttemptFailed = finding.NewReason("AttemptFailed", finding.Explanation{
		Meaning: "Reported for a check whose Job was still retrying at the deadline of the run.",
		Cause:   "The last attempt exited with another code than 0.",
		Remedy:  "Fix what the log of the check names, or run the preflight again with a longer timeout.",
	})
	reasonUnscheduled = finding.NewReason("Unscheduled", finding.Explanation{
		Meaning: "Reported for a check whose pod the scheduler has not processed.",
		Cause:   "The scheduler does not run, or is overloaded.",
		Remedy:  "Check the scheduler: `oc -n openshift-kube-scheduler get pods`.",
	})
	reasonInitFailed = finding.NewReason("InitFailed", finding.Explanation{
		Meaning: "Reported for a check with a failed init container.",
		Cause:   "The message has the last lines of its output.",
		Remedy:  "Fix what they name, or report it to the owners of the component.",
	})
	reasonContainerFailed = finding.NewReason("ContainerFailed", finding.Explanation{
		Meaning: "Reported for a check that exited 0 while another container of its pod failed.",
		Cause:   "A defect of the check.",
		Remedy:  "Report it to the owners of the check.",
	})
)

// activity of the last attempt at its end.
func activity(o Observation) string {
	pod, ok := o.Newest()
	if !ok {
		return withoutPod(o).detail
	}
	return inProgress(o, pod).Detail
}

// inProgress classifies an active Job whose last pod does not decide.
func inProgress(o Observation, pod Pod) Classification {
	if why := attemptFailure(o, pod); why != nil {
		why.detail += "; the Job retries"
		why.timeout = untilDeadline
		return tolerate(o, *why)
	}
	if why, ok := podBlocked(o, pod); ok {
		return tolerate(o, why)
	}
	current := checkresult.Status(o.Check, pod.Pod)
	switch {
	case pod.Gone:
		return Classification{State: Waiting, Detail: "its pod is gone, and no other pod was observed yet"}
	case current != nil && current.State.Running != nil:
		return Classification{State: Running, Detail: "the check is running"}
	case checkresult.Terminated(o.Check, pod.Pod) != nil:
		end := checkresult.Terminated(o.Check, pod.Pod)
		return cause{
			reason:  reasonAttemptFailed,
			detail:  checkresult.Sentence(fmt.Sprintf("attempt %d ended with exit code %d, and the Job retries", o.job().Attempts, end.ExitCode), lastLines(end, o.logOf(pod))),
			remedy:  "Fix what the log of the check names, or run the preflight again with a longer timeout.",
			actions: []finding.Action{finding.Retry(finding.OptionTimeout)},
		}.waiting()
	case pod.Spec.NodeName == "":
		return cause{
			reason: reasonUnscheduled, detail: "its pod waits for the scheduler",
			remedy: "Check the scheduler.", actions: []finding.Action{finding.Read("oc -n openshift-kube-scheduler get pods")},
		}.waiting()
	}
	return Classification{State: Waiting, Detail: "its container is being created on node " + pod.Spec.NodeName}
}

// attemptFailure is the cause for an attempt that did not fail in the check itself; nil for others.
func attemptFailure(o Observation, pod Pod) *cause {
	if why := disruption(pod); why != nil {
		return why
	}
	for _, container := range pod.Status.InitContainerStatuses {
		if end := container.State.Terminated; end != nil && end.ExitCode != 0 {
			return &cause{
				reason: reasonInitFailed,
				detail: checkresult.Sentence(fmt.Sprintf("init container %q ended with exit code %d", container.Name, end.ExitCode), checkresult.Tail(end.Message)),
				remedy: fmt.Sprintf("Fix what its output names, or report it to the owners of component %q.", o.Check.Component),
			}
		}
	}
	main := checkresult.Terminated(o.Check, pod.Pod)
	for _, container := range pod.Status.ContainerStatuses {
		if end := container.State.Terminated; end != nil && end.ExitCode != 0 && main != nil && main.ExitCode == 0 {
			return &cause{
				reason: reasonContainerFailed,
				detail: checkresult.Sentence(fmt.Sprintf("container %q, beside the check, ended with exit code %d", container.Name, end.ExitCode), checkresult.Tail(end.Message)),
				remedy: reportDefect,
			}
		}
	}
	return nil
}

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
