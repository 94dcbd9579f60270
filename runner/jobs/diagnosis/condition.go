package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/jobs/checkresult"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/alteration"
)

var (
	reasonLost = finding.NewReason("Lost", finding.Explanation{
		Meaning: "The Job of the check finished, but its pod was gone before the result was read.",
		Cause:   "The pod was deleted, or its node was lost.",
		Remedy:  "Run the preflight again.",
	})
	reasonJobDeleted = finding.NewReason("JobDeleted", finding.Explanation{
		Meaning: "Another client deleted the Job of the check twice.",
		Cause:   "A user or a controller deletes Jobs in the namespace.",
		Remedy:  "Stop the client that deletes Jobs in the namespace, then run the preflight again.",
	})
	reasonPodDeleted = finding.NewReason("PodDeleted", finding.Explanation{
		Meaning: "Another client deleted the pod of the check.",
		Cause:   "A user or a controller deletes pods in the namespace.",
		Remedy:  "Stop the client that deletes pods in the namespace, then run the preflight again.",
	})
	reasonDeadlineExceeded = finding.NewReason("DeadlineExceeded", finding.Explanation{
		Meaning: "The Job or pod of the check exceeded its activeDeadlineSeconds.",
		Cause:   "The pod was waiting for something, or the check took too long.",
		Remedy:  "Fix the problem in the message, then run the preflight again.",
	})
	reasonEvicted = finding.NewReason("Evicted", finding.Explanation{
		Meaning: "The pod of the check was evicted.",
		Cause:   "The node was short of memory, disk or process IDs.",
		Remedy:  "Wait until the nodes have free resources, then run the preflight again: `oc get nodes`.",
	})
	reasonDisrupted = finding.NewReason("Disrupted", finding.Explanation{
		Meaning: "The pod of the check was terminated by a drain, by preemption, or because its node was lost.",
		Cause:   "The message contains the DisruptionTarget condition of the pod.",
		Remedy:  "Wait until no node is being drained, then run the preflight again: `oc get nodes`.",
	})
)

// jobCondition is the final condition of a Job.
type jobCondition struct {
	failed          bool
	reason, message string
}

// condition reads all conditions: SuccessCriteriaMet and FailureTarget precede
// Complete and Failed, while pods still terminate. It returns nil while the Job is
// active.
func condition(o Observation) *jobCondition {
	if o.Job == nil {
		return nil
	}
	for _, condition := range o.Job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobFailed, batchv1.JobFailureTarget:
			return &jobCondition{failed: true, reason: condition.Reason, message: words.Line(condition.Message, checkresult.MaxLine)}
		case batchv1.JobComplete, batchv1.JobSuccessCriteriaMet:
			return &jobCondition{}
		case batchv1.JobSuspended:
		}
	}
	return nil
}

// completed classifies a Job that is complete without an observed end of a pod: the watch may lag behind. A pod that was
// observed ended with exit code 0.
func completed(o Observation) Classification {
	if !o.Check.Framed && o.Listed && len(o.Pods) > 0 {
		return passed(o)
	}
	return outcomeLost(o, lost("the Job is complete, but its pod was gone before its result was read"))
}

// unobserved is true for a Job of which more pods have ended than were ever observed: what these have run was not compared
// with the plan. Admission may have hidden them from the watch, which may also lag behind.
func unobserved(o Observation) bool {
	return o.Job != nil && !o.Deleted && int(o.Job.Status.Succeeded+o.Job.Status.Failed) > len(o.Pods)
}

// lost is the cause for an ended Job whose pod is gone.
func lost(detail string) cause {
	return cause{reason: reasonLost, timeout: watchLag, detail: detail, remedy: runAgain, actions: []finding.Action{finding.Retry("")}}
}

// outcomeLost classifies a Job whose outcome can no longer be read: it is
// created again once, after a list has shown that the watch does not lag behind.
func outcomeLost(o Observation, why cause) Classification {
	classified := tolerate(o, why)
	switch {
	case classified.State != Done:
		return classified
	case why.reason == reasonLost && !o.Listed:
		classified = why.waiting()
		classified.ListPods = true
		return classified
	case o.Restarted:
		return classified
	}
	classified = why.waiting()
	classified.Detail += "; it is created once more"
	classified.Restart = true
	return classified
}

func failed(o Observation, condition jobCondition) Classification {
	pod, exists := o.Newest()
	switch {
	case condition.reason == batchv1.JobReasonDeadlineExceeded:
		return unknown(o, cause{
			reason: reasonDeadlineExceeded,
			detail: checkresult.Sentence("the Job exceeded its activeDeadlineSeconds", cmp.Or(activity(o), condition.message)),
			remedy: fmt.Sprintf("Fix the cause of the delay and run the preflight again; if the check was running, "+
				"report it to the owners of component %q.", o.Check.Component),
		})
	case !exists:
		return outcomeLost(o, lost(checkresult.Sentence("the Job failed, and no pod of it was observed", condition.message)))
	}
	if why := disruption(pod); why != nil {
		return outcomeLost(o, *why)
	}
	if pod.DeletionTimestamp != nil {
		return outcomeLost(o, cause{
			reason: reasonPodDeleted, detail: checkresult.Sentence("its pod was deleted by another client", condition.message),
			remedy:  "Stop the client that deletes pods in namespace " + pod.Namespace + ", then run the preflight again.",
			actions: []finding.Action{finding.Retry("")},
		})
	}
	if pastDeadline(pod) {
		return unknown(o, cause{
			reason: reasonDeadlineExceeded, detail: checkresult.Sentence("its pod exceeded its activeDeadlineSeconds",
				words.Line(pod.Status.Message, checkresult.MaxLine)),
			remedy: reportDefect,
		})
	}
	if why := attemptFailure(o, pod); why != nil {
		return unknown(o, *why)
	}
	end := checkresult.Terminated(o.Check, pod.Pod)
	if end == nil || end.ExitCode == 0 {
		return outcomeLost(o, lost(checkresult.Sentence("the Job failed, but its pod was gone before its end was observed", condition.message)))
	}
	return exitedNonZero(o, pod, end)
}

// Lingers is true for a created Job that is not about to finish: its pod does not
// run or does not terminate, or the Job is going to retry. The watch may report
// the pod before it reports the Job.
func (o Observation) Lingers() bool {
	pod, exists := o.Newest()
	switch {
	case o.Deleted || condition(o) != nil:
		return false
	case !exists || pod.Gone:
		return true
	}
	current := checkresult.Status(o.Check, pod.Pod)
	if current == nil || current.State.Terminated == nil {
		return true
	}
	if code := current.State.Terminated.ExitCode; code != 0 {
		return !finalExitCode(o.Check.Job.Spec, code)
	}
	return otherContainers(o.Check, pod) != containersPassed
}

// Over is true for a Job that is about to finish and whose containers, including containers added to its pod, have all
// terminated.
func (o Observation) Over() bool {
	pod, exists := o.Newest()
	return exists && !o.Lingers() && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.State.Terminated == nil
	})
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

// disruption is the cause for a pod that was terminated by the cluster: an
// eviction, a drain, a preemption, a lost node; nil for others. The Jobs of a run
// do not count it as an attempt (podFailurePolicy).
func disruption(pod Pod) *cause {
	why := &cause{
		remedy:  "Wait until no node is being drained or short of resources, then run the preflight again.",
		actions: []finding.Action{finding.Read("oc get nodes"), finding.Retry("")},
	}
	if pod.Status.Reason == "Evicted" {
		why.reason, why.detail = reasonEvicted, checkresult.Sentence("its pod was evicted from node "+pod.Spec.NodeName,
			words.Line(pod.Status.Message, checkresult.MaxLine))
		return why
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			why.reason, why.detail = reasonDisrupted,
				checkresult.Sentence("its pod was disrupted ("+condition.Reason+")", words.Line(condition.Message, checkresult.MaxLine))
			return why
		}
	}
	return nil
}

// pastDeadline is true for a pod that the kubelet stopped because it exceeded its own activeDeadlineSeconds.
func pastDeadline(pod Pod) bool { return pod.Status.Reason == "DeadlineExceeded" }

// interrupted is true for a pod that was deleted or disrupted.
func interrupted(pod Pod) bool {
	return pod.DeletionTimestamp != nil || disruption(pod) != nil
}

var (
	reasonJobNotSeen = finding.NewReason("JobNotSeen", finding.Explanation{
		Meaning: "The Job of the check was created, but no list or watch returned it.",
		Cause:   "The API server does not serve watches on Jobs.",
		Remedy:  "Check the API server with `oc get --raw '/readyz?verbose'`, then run the preflight again.",
	})
	reasonPodNotCreated = finding.NewReason("PodNotCreated", finding.Explanation{
		Meaning: "The Job of the check has no pod.",
		Cause:   "The Job controller is not running, or the API server rejects the pod.",
		Remedy: "Fix the problem in the message, or check the Job controller with `oc -n " +
			"openshift-kube-controller-manager get pods`; then run the preflight again.",
	})
	reasonPodSecurity = finding.NewReason("PodSecurity", finding.Explanation{
		Meaning: "The pod of the check violates the Pod Security level of its namespace.",
		Cause:   "The manifest of the check requires more privileges than the namespace allows.",
		Remedy:  "Read the labels with `oc get namespace NAME --show-labels`, and report it to the owners of the component.",
	})
	reasonSecurityContextConstraints = finding.NewReason("SecurityContextConstraints", finding.Explanation{
		Meaning: "No SecurityContextConstraints (SCC) allow the pod of the check.",
		Cause:   "The ServiceAccount of the check may not use an SCC that allows its manifest.",
		Remedy:  "Report it to the owners of the component.",
	})
)

func withoutPod(o Observation) cause {
	warning := o.warning("Job", o.Check.Job.Name)
	switch {
	case warning != nil && warning.Reason == "FailedCreate":
		return podRejected(o, words.Line(warning.Message, checkresult.MaxLine))
	case o.Job == nil:
		return cause{
			reason: reasonJobNotSeen, detail: "the API server has not returned the Job yet", timeout: untilDeadline,
			remedy:  "Check the API server, then run the preflight again.",
			actions: []finding.Action{finding.Read("oc get --raw /readyz?verbose"), finding.Retry("")},
		}
	}
	if exceeded := o.Check.Exceeded; exceeded != "" {
		// A rejected pod has the reason QuotaExceeded, which ends the check earlier.
		foreseen := launch.QuotaExceeded(o.Check, exceeded)
		return cause{
			reason: reasonPodNotCreated, detail: "the Job has no pod yet, and the quota of its namespace was nearly " +
				"exhausted: " + exceeded,
			timeout: untilDeadline,
			remedy:  foreseen.Remediation, actions: foreseen.Actions,
		}
	}
	return cause{
		reason: reasonPodNotCreated, detail: "the Job has no pod yet", timeout: untilDeadline,
		remedy: "Check the Job controller.", actions: []finding.Action{finding.Read("oc -n openshift-kube-controller-manager get pods")},
	}
}

// podRejected classifies the responses of the API server to the Job controller. They differ in their text only.
func podRejected(o Observation, message string) cause {
	namespace := o.Check.Job.Namespace
	why := cause{
		reason: reasonPodNotCreated, detail: checkresult.Sentence("the API server rejects the pod of the Job", message),
		remedy: fixMessage,
	}
	reportToOwners := fmt.Sprintf("Report it to the owners of component %q.", o.Check.Component)
	switch {
	case strings.Contains(message, ownsignal.PodGuard(o.Check.Job.Labels[label.Run])):
		_, change, _ := strings.Cut(message, alteration.Prevented+", but ")
		why = alteredBy("the pod was denied before it started, because " + cmp.Or(change, message))
	case strings.Contains(message, "must specify"): // failed quota: NAME: must specify RESOURCES
		known := launch.QuotaRequires(o.Check, message)
		why.reason, why.remedy, why.actions = launch.ReasonQuotaRequires, known.Remediation, known.Actions
	case strings.Contains(message, "exceeded quota"), strings.Contains(message, "failed quota"):
		known := launch.QuotaExceeded(o.Check, message)
		why.reason, why.timeout = launch.ReasonQuotaExceeded, TransientTimeout
		why.remedy, why.actions = known.Remediation, known.Actions
	case strings.Contains(message, "serviceaccount") && strings.Contains(message, "not found"):
		why.reason = launch.ReasonServiceAccountMissing
		why.remedy = "Create the ServiceAccount, which the release expects to exist in namespace " + namespace + "."
		why.actions = []finding.Action{finding.Read("oc -n %s get serviceaccounts", namespace)}
	case strings.Contains(message, "violates PodSecurity"):
		why.reason = reasonPodSecurity
		why.remedy = reportToOwners + " The check requires more than the namespace allows."
		why.actions = []finding.Action{finding.Read("oc get namespace %s --show-labels", namespace)}
	case strings.Contains(message, "security context constraint"):
		why.reason = reasonSecurityContextConstraints
		why.remedy = reportToOwners + " No SCC that the ServiceAccount of the check may use allows its manifest."
	case strings.Contains(message, "failed calling webhook"), strings.Contains(message, "Internal error"):
		why.timeout = TransientTimeout
		why.remedy = "Check the admission webhook in the message."
	case strings.Contains(message, "denied"):
		why.reason = launch.ReasonAdmissionDenied
		why.remedy = "Check the policy or webhook in the message."
		why.actions = []finding.Action{finding.Read("oc get validatingadmissionpolicies,validatingwebhookconfigurations")}
	case !strings.Contains(message, "forbidden") && !strings.Contains(message, "invalid"):
		why.timeout = TransientTimeout
	}
	return why
}
