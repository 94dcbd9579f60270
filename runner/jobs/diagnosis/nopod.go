package diagnosis

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/jobs/checkresult"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/alteration"
)

var (
	reasonJobNotSeen = finding.NewReason("JobNotSeen", finding.Explanation{
		Meaning: "Reported for a check whose Job was created and never returned by a list or watch.",
		Cause:   "The API server does not serve the watch on Jobs.",
		Remedy:  "Check the API server with `oc get --raw '/readyz?verbose'`, then run the preflight again.",
	})
	reasonPodNotCreated = finding.NewReason("PodNotCreated", finding.Explanation{
		Meaning: "Reported for a check whose Job has no pod.",
		Cause:   "The Job controller does not run, or the API server rejects the pod.",
		Remedy: "Fix what the message names, or check the Job controller with `oc -n openshift-kube-controller-manager " +
			"get pods`; then run the preflight again.",
	})
	reasonPodSecurity = finding.NewReason("PodSecurity", finding.Explanation{
		Meaning: "Reported for a check whose pod violates the Pod Security level of its namespace.",
		Cause:   "The manifest of the check requires more than the namespace allows.",
		Remedy:  "Read the labels with `oc get namespace NAME --show-labels`, and report it to the owners of the component.",
	})
	reasonSecurityContextConstraints = finding.NewReason("SecurityContextConstraints", finding.Explanation{
		Meaning: "Reported for a check whose pod no SecurityContextConstraints (SCC) allow.",
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
			remedy: "Check the API server, then run the preflight again.", actions: []finding.Action{finding.Read("oc get --raw /readyz?verbose"), finding.Retry("")},
		}
	}
	if exceeded := o.Check.Exceeded; exceeded != "" {
		// A rejected pod has the reason QuotaExceeded, which ends the check earlier.
		foreseen := launch.QuotaExceeded(o.Check, exceeded)
		return cause{
			reason: reasonPodNotCreated, detail: "the Job has no pod yet, and the quota of its namespace had too little left: " + exceeded, timeout: untilDeadline,
			remedy: foreseen.Remediation, actions: foreseen.Actions,
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
	why := cause{reason: reasonPodNotCreated, detail: checkresult.Sentence("the API server rejects the pod of the Job", message), remedy: fixMessage}
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
		why.remedy = "Check the admission webhook that the message names."
	case strings.Contains(message, "denied"):
		why.reason = launch.ReasonAdmissionDenied
		why.remedy = "Check the policy or webhook that the message names."
		why.actions = []finding.Action{finding.Read("oc get validatingadmissionpolicies,validatingwebhookconfigurations")}
	case !strings.Contains(message, "forbidden") && !strings.Contains(message, "invalid"):
		why.timeout = TransientTimeout
	}
	return why
}
