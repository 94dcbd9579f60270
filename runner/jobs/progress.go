package jobs

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/launch"
)

// ReasonAttemptFailed is reported for a check whose Job was still retrying at the
// deadline of the run.
//
// Cause: the last attempt exited with another code than 0.
//
// Remedy: fix what the log of the check names, or run the preflight again with a
// longer timeout.
const ReasonAttemptFailed finding.Reason = "AttemptFailed"

// ReasonUnscheduled is reported for a check whose pod the scheduler has not
// processed.
//
// Cause: the scheduler does not run, or is overloaded.
//
// Remedy: check the scheduler: `oc -n openshift-kube-scheduler get pods`.
const ReasonUnscheduled finding.Reason = "Unscheduled"

// ReasonInitFailed is reported for a check with a failed init container.
//
// Cause: the message has the last lines of its output.
//
// Remedy: fix what they name, or report it to the owners of the component.
const ReasonInitFailed finding.Reason = "InitFailed"

// ReasonContainerFailed is reported for a check that exited 0 while another
// container of its pod failed.
//
// Cause: a defect of the check.
//
// Remedy: report it to the owners of the check.
const ReasonContainerFailed finding.Reason = "ContainerFailed"

// ReasonEvicted is reported for a check whose pod was evicted.
//
// Cause: the node was short of memory, disk or process IDs.
//
// Remedy: wait until the nodes have resources, then run the preflight again: `oc
// get nodes`.
const ReasonEvicted finding.Reason = "Evicted"

// ReasonDisrupted is reported for a check whose pod was terminated by a drain, a
// preemption or the loss of its node.
//
// Cause: the condition DisruptionTarget of the pod, which the message has.
//
// Remedy: wait until no node is drained, then run the preflight again: `oc get
// nodes`.
const ReasonDisrupted finding.Reason = "Disrupted"

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

// lingers is true for a created Job that is not about to finish: its pod does not
// run or does not terminate, or the Job is going to retry. The watch may report
// the pod before it reports the Job.
func (o Observation) lingers() bool {
	pod, exists := o.newest()
	switch {
	case o.Deleted || o.condition() != nil:
		return false
	case !exists || pod.Gone:
		return true
	}
	current := status(o.Check, pod)
	if current == nil || current.State.Terminated == nil {
		return true
	}
	if code := current.State.Terminated.ExitCode; code != 0 {
		return !finalExitCode(o.Check.Job.Spec, code)
	}
	return otherContainers(o.Check, pod) != containersPassed
}

// finalExitCode is true for an exit code after which a Job does not retry.
func finalExitCode(spec batchv1.JobSpec, code int32) bool {
	if spec.BackoffLimit != nil && *spec.BackoffLimit == 0 {
		return true
	}
	return spec.PodFailurePolicy != nil && slices.ContainsFunc(spec.PodFailurePolicy.Rules, func(rule batchv1.PodFailurePolicyRule) bool {
		return rule.Action == batchv1.PodFailurePolicyActionFailJob && rule.OnExitCodes != nil &&
			rule.OnExitCodes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && slices.Contains(rule.OnExitCodes.Values, code)
	})
}

// notStarted ends a check that was queued at the deadline of the run: for the
// first time, or again after waiting.
func (o Observation) notStarted(waiting Classification) Classification {
	if waiting.Reason != "" {
		return o.expired(waiting)
	}
	return o.unknown(cause{
		reason: launch.ReasonNotStarted, detail: "timed out: the check waited for other checks to end, and was not started",
		remedy:  "Run the preflight again with a longer timeout or a higher parallelism.",
		actions: []finding.Action{finding.Retry(finding.OptionTimeout), finding.Retry(finding.OptionParallelism)},
	})
}

// activity is what the last attempt was doing when it ended.
func (o Observation) activity() string {
	pod, ok := o.newest()
	if !ok {
		return o.withoutPod().detail
	}
	return o.inProgress(pod).Detail
}

// inProgress classifies an active Job whose last pod does not decide.
func (o Observation) inProgress(pod Pod) Classification {
	if why := o.attemptFailure(pod); why != nil {
		why.detail += "; the Job retries"
		why.timeout = untilDeadline
		return o.tolerate(*why)
	}
	if why, ok := o.podBlocked(pod); ok {
		return o.tolerate(why)
	}
	current := status(o.Check, pod)
	switch {
	case pod.Gone:
		return Classification{State: Waiting, Detail: "its pod is gone, and no other pod was observed yet"}
	case current != nil && current.State.Running != nil:
		return Classification{State: Running, Detail: "the check is running"}
	case terminated(o.Check, pod) != nil:
		end := terminated(o.Check, pod)
		return cause{
			reason:  ReasonAttemptFailed,
			detail:  sentence(fmt.Sprintf("attempt %d ended with exit code %d, and the Job retries", o.job().Attempts, end.ExitCode), lastLines(end, o.logOf(pod))),
			remedy:  "Fix what the log of the check names, or run the preflight again with a longer timeout.",
			actions: []finding.Action{finding.Retry(finding.OptionTimeout)},
		}.waiting()
	case pod.Spec.NodeName == "":
		return cause{
			reason: ReasonUnscheduled, detail: "its pod waits for the scheduler",
			remedy: "Check the scheduler.", actions: []finding.Action{finding.Run("oc -n openshift-kube-scheduler get pods")},
		}.waiting()
	}
	return Classification{State: Waiting, Detail: "its container is being created on node " + pod.Spec.NodeName}
}

// attemptFailure is the cause for an attempt that did not fail in the check
// itself; nil for others.
func (o Observation) attemptFailure(pod Pod) *cause {
	if why := disruption(pod); why != nil {
		return why
	}
	for _, container := range pod.Status.InitContainerStatuses {
		if end := container.State.Terminated; end != nil && end.ExitCode != 0 {
			return &cause{
				reason: ReasonInitFailed,
				detail: sentence(fmt.Sprintf("init container %q ended with exit code %d", container.Name, end.ExitCode), tail(end.Message)),
				remedy: fmt.Sprintf("Fix what its output names, or report it to the owners of component %q.", o.Check.Component),
			}
		}
	}
	main := terminated(o.Check, pod)
	for _, container := range pod.Status.ContainerStatuses {
		if end := container.State.Terminated; end != nil && end.ExitCode != 0 && main != nil && main.ExitCode == 0 {
			return &cause{
				reason: ReasonContainerFailed,
				detail: sentence(fmt.Sprintf("container %q, beside the check, ended with exit code %d", container.Name, end.ExitCode), tail(end.Message)),
				remedy: reportDefect,
			}
		}
	}
	return nil
}

// disruption is the cause for a pod that was terminated by the cluster: an
// eviction, a drain, a preemption, a lost node; nil for others. The Jobs of a run
// do not count it as an attempt (podFailurePolicy).
func disruption(pod Pod) *cause {
	why := &cause{
		remedy:  "Wait until no node is drained or short of resources, then run the preflight again.",
		actions: []finding.Action{finding.Run("oc get nodes"), finding.Retry("")},
	}
	if pod.Status.Reason == "Evicted" {
		why.reason, why.detail = ReasonEvicted, sentence("its pod was evicted from node "+pod.Spec.NodeName, words.Line(pod.Status.Message, maxLine))
		return why
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			why.reason, why.detail = ReasonDisrupted, sentence("its pod was disrupted ("+condition.Reason+")", words.Line(condition.Message, maxLine))
			return why
		}
	}
	return nil
}

// interrupted is true for a pod that was deleted or disrupted.
func interrupted(pod Pod) bool {
	return pod.DeletionTimestamp != nil || disruption(pod) != nil
}
