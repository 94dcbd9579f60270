package jobs

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

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

// pastDeadline is true for a pod that the kubelet stopped because it exceeded its own
// activeDeadlineSeconds.
func pastDeadline(pod Pod) bool { return pod.Status.Reason == "DeadlineExceeded" }

// interrupted is true for a pod that was deleted or disrupted.
func interrupted(pod Pod) bool {
	return pod.DeletionTimestamp != nil || disruption(pod) != nil
}
