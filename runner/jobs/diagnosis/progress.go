package diagnosis

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/jobs/checkresult"
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
