// Package diagnosis answers: what does the observed state of the Job of a check mean?
//
// [Classify] is pure: it returns the findings of a check that has ended, or what the check
// waits for. Every end of a pod without a result is Unknown, with its cause and remedy.
//
// A container that terminated with a final result decides its check at once,
// without waiting for the Job's condition Complete. A check that did not promise
// such a result is decided by its exit code, once the Job makes no further
// attempt.
package diagnosis

import (
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/jobs/checkresult"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/alteration"
)

// Classify returns what an observation means. It is pure, and with Expired the
// state is always Done.
//
// No pod decides before all were compared with the plan. The last attempt decides, and an earlier one only by a final result that was
// read late. An attempt that ended without a result does not decide while the Job
// retries.
func Classify(o Observation) Classification {
	classified := classify(o)
	if o.Expired && classified.State != Done {
		return expired(o, classified)
	}
	return classified
}

func classify(o Observation) Classification {
	if unobserved(o) {
		return outcomeLost(o, lost("the Job counts more pods than were observed: what the others have run is unknown"))
	}
	for _, pod := range o.Pods {
		if altered, ok := altered(o, pod); ok {
			return altered
		}
	}
	for i := range slices.Backward(o.Pods) {
		if classified, ok := attempt(o, i); ok {
			return classified
		}
	}
	pod, exists := o.Newest()
	switch condition := condition(o); {
	case o.Deleted:
		return outcomeLost(o, cause{
			reason: reasonJobDeleted, detail: checkresult.Sentence("the Job was deleted by another client", activity(o)),
			remedy:  "Stop the client that deletes Jobs in namespace " + o.Check.Job.Namespace + ", then run the preflight again.",
			actions: []finding.Action{finding.Retry("")},
		})
	case condition != nil && condition.failed:
		return failed(o, *condition)
	case condition != nil:
		return completed(o)
	case !exists:
		return tolerate(o, withoutPod(o))
	default:
		return inProgress(o, pod)
	}
}

// attempt classifies the end of one attempt. False means that it does not decide.
//
// The log is read, once, if the termination message has no complete result. That
// includes a check without a promised result that exits 0 with an empty message:
// it may have printed a result with warnings, or one that contradicts its exit
// code. Without that log its exit code decides, so the read is not required.
// Together with the dry run and the creation this makes three requests per Job.
func attempt(o Observation, i int) (Classification, bool) {
	pod := o.Pods[i]
	if failure, ok := startFailure(o, pod); ok {
		return failure, true
	}
	end := checkresult.Terminated(o.Check, pod.Pod)
	if end == nil {
		return Classification{}, false
	}
	log := o.logOf(pod)
	result := checkresult.Of(o.Check.Job.Labels[label.Run], end.Message, log.text())
	if end.Reason == reasonOOMKilled.String() && disruption(pod) == nil {
		return unknown(o, outOfMemory(checkresult.MainContainer(o.Check))).withFailures(o, result), true
	}
	last := i == len(o.Pods)-1
	if last && !result.Complete() && log == nil && !pod.Gone && !o.Expired {
		classified := Classification{State: Running, Detail: "reading its log", ReadLog: pod.Name, LogTimeout: RequiredLogTimeout}
		if end.ExitCode == 0 && !result.Found && result.Invalid == "" && !o.Check.Framed {
			classified.LogTimeout = OptionalLogTimeout
		}
		return classified, true
	}
	if result.Final() {
		return finalResult(o, pod, end.ExitCode, result)
	}
	if end.ExitCode != 0 || !last || interrupted(pod) || pastDeadline(pod) {
		return Classification{}, false // a check may exit 0 because it was stopped
	}
	return exitedZero(o, pod, result)
}

// altered is for a pod that does not run the check of the release, so that its result
// does not count. Admission changes pods after the Job was compared.
func altered(o Observation, pod Pod) (Classification, bool) {
	if len(pod.Spec.Containers) == 0 {
		return Classification{}, false // the API server accepts no such pod
	}
	deadline := alteration.Deadline(pod.Spec) // where the Job is not known yet
	if o.Job != nil {
		deadline = alteration.Deadline(o.Job.Spec.Template.Spec)
	}
	differs, err := alteration.OfPod(alteration.Until(deadline, o.Check.Job), pod.Pod)
	if err != nil {
		differs = err.Error()
	}
	if differs == "" {
		return Classification{}, false
	}
	return unknown(o, alteredBy(fmt.Sprintf("a mutating webhook or policy of the cluster changes Pod %s/%s: %s", pod.Namespace, pod.Name, differs))), true
}

func alteredBy(detail string) cause {
	return cause{
		reason: alteration.ReasonAlteredByAdmission, detail: detail,
		remedy:  fmt.Sprintf("Exempt objects with the label %s from the webhook or policy that changes them.", label.Run),
		actions: []finding.Action{finding.Read("oc get mutatingwebhookconfigurations,mutatingadmissionpolicies")},
	}
}
