package jobs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/words"
	corev1 "k8s.io/api/core/v1"
)

// unborn is about a Job without a pod.
func (o Observation) unborn() obstacle {
	warning := o.warning("Job", o.Check.Job.Name)
	switch {
	case warning != nil && warning.Reason == "FailedCreate":
		return o.podRefused(words.Line(warning.Message, maxLine))
	case o.Job == nil:
		return obstacle{cause: "JobNotSeen", detail: "the API server has not shown the Job yet", patience: toTheEnd, remedy: "See whether the API server is well: oc get --raw /readyz?verbose"}
	}
	return obstacle{
		cause: "PodNotCreated", detail: "the Job has no pod yet", patience: toTheEnd,
		remedy: "See whether the Job controller runs: oc -n openshift-kube-controller-manager get pods",
	}
}

// podRefused sorts the API server's answers to the Job controller. They differ
// in their text only.
func (o Observation) podRefused(message string) obstacle {
	namespace := o.Check.Job.Namespace
	why := obstacle{cause: "PodNotCreated", detail: sentence("the pod of the Job is refused", message), remedy: "Put right what the message names, then run the preflight again."}
	switch {
	case strings.Contains(message, "exceeded quota"), strings.Contains(message, "failed quota"):
		why.cause, why.patience = "QuotaExceeded", grace
		why.remedy = fmt.Sprintf("Make room in the quota of the namespace: oc -n %s describe quota", namespace)
	case strings.Contains(message, "serviceaccount") && strings.Contains(message, "not found"):
		why.cause = "ServiceAccountMissing"
		why.remedy = fmt.Sprintf("The release expects the ServiceAccount to be in the cluster already. See: oc -n %s get serviceaccounts", namespace)
	case strings.Contains(message, "violates PodSecurity"):
		why.cause = "PodSecurity"
		why.remedy = fmt.Sprintf("The namespace allows less than the check asks for: oc get namespace %s --show-labels. Report it to the owners of component %q.", namespace, o.Check.Component)
	case strings.Contains(message, "security context constraint"):
		why.cause = "SecurityContextConstraints"
		why.remedy = fmt.Sprintf("No SCC that the check's account may use allows what it asks for. Report it to the owners of component %q.", o.Check.Component)
	case strings.Contains(message, "failed calling webhook"), strings.Contains(message, "Internal error"):
		why.patience = grace
		why.remedy = "See whether the admission webhook that the message names is well."
	case strings.Contains(message, "denied"):
		why.cause = "AdmissionDenied"
		why.remedy = "See the policy or webhook that the message names: oc get validatingadmissionpolicies,validatingwebhookconfigurations"
	case !strings.Contains(message, "forbidden") && !strings.Contains(message, "invalid"):
		why.patience = grace
	}
	return why
}

// warning is the last one about an object.
func (o Observation) warning(kind, name string) *corev1.Event {
	for _, event := range slices.Backward(o.Warnings) {
		if event.InvolvedObject.Kind == kind && event.InvolvedObject.Name == name {
			return event
		}
	}
	return nil
}
