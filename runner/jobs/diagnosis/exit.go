package diagnosis

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs/checkresult"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

var (
	reasonOOMKilled = finding.NewReason("OOMKilled", finding.Explanation{
		Meaning: "Reported for a check that ran out of memory.",
		Cause:   "Its memory limit is too low, or the node ran out of memory.",
		Remedy:  "Report it to the owners of the check; if the node is short of memory, free some: `oc adm top nodes`.",
	})
	reasonContradiction = finding.NewReason("Contradiction", finding.Explanation{
		Meaning: "Reported for a check whose exit code contradicts its result.",
		Cause:   "A defect of the check.",
		Remedy:  "Report it to the owners of the check.",
	})
	reasonBadResult = finding.NewReason("BadResult", finding.Explanation{
		Meaning: "Reported for a check whose result cannot be used.",
		Cause:   "The result is damaged, too large, of another run, or of a later version of the SDK.",
		Remedy:  "Report it to the owners of the check.",
	})
	reasonKilled = finding.NewReason("Killed", finding.Explanation{
		Meaning: "Reported for a check that ended by SIGKILL or SIGTERM.",
		Cause:   "The kubelet or the runtime killed the container.",
		Remedy:  "Read the events with `oc get events -n NAMESPACE`, then run the preflight again.",
	})
)

// finalResult takes over a final result that agrees with the exit code. An
// inconclusive result of a pod that was disrupted does not decide: the Job
// retries.
func finalResult(o Observation, pod Pod, exitCode int32, result checkresult.Result) (Classification, bool) {
	agrees := result.Result.Agrees(int(exitCode))
	if interrupted(pod) && (!agrees || exitCode == preflight.ExitUnknown) {
		return Classification{}, false
	}
	if !agrees {
		return unknown(o, cause{
			reason: reasonContradiction,
			detail: fmt.Sprintf("the check ended with exit code %d, which contradicts its result", exitCode),
			remedy: reportDefect,
		}).withFailures(o, result), true
	}
	all, err := checkresult.Findings(o.Check, result.Result)
	if err != nil {
		return unknown(o, badResult(err.Error())), true
	}
	return doneWith(o, all), true
}

// exitedZero classifies a check that exited 0 without a final result.
func exitedZero(o Observation, pod Pod, result checkresult.Result) (Classification, bool) {
	switch {
	case result.Invalid != "":
		return unknown(o, badResult(result.Invalid)), true
	case result.Found, o.Check.Framed:
		return unknown(o, noResult(o, 0)).withFailures(o, result), true
	}
	switch otherContainers(o.Check, pod) {
	case containersRunning:
		return Classification{State: Running, Detail: "waiting for its other containers to end"}, true
	case containersFailed:
		return Classification{}, false
	case containersPassed:
	}
	return passed(o), true
}

func passed(o Observation) Classification {
	return done(o, finding.Pass(gap.Proven("the exit code of the check"), checkresult.ReasonPassed, "the check exited 0 and reported no findings"))
}

// containersState is the worst state of several containers.
type containersState int

const (
	containersPassed containersState = iota
	containersRunning
	containersFailed
)

// otherContainers is the state of the containers of the manifest beside the check's.
func otherContainers(check jobplan.Check, pod Pod) containersState {
	others := map[string]bool{}
	for _, container := range check.Job.Spec.Template.Spec.Containers {
		others[container.Name] = container.Name != checkresult.MainContainer(check)
	}
	worst := containersPassed
	for _, status := range pod.Status.ContainerStatuses {
		switch {
		case !others[status.Name]:
		case status.State.Terminated == nil:
			worst = max(worst, containersRunning)
		case status.State.Terminated.ExitCode != 0:
			worst = max(worst, containersFailed)
		}
	}
	return worst
}

// exitedNonZero classifies the last attempt of a check that ended with another
// exit code than 0, without a final result.
func exitedNonZero(o Observation, pod Pod, end *corev1.ContainerStateTerminated) Classification {
	log := o.logOf(pod)
	result := checkresult.Of(o.Check.Job.Labels[label.Run], end.Message, log.text())
	all, err := checkresult.Findings(o.Check, result.Result)
	switch {
	case result.Final() && err == nil:
		return doneWith(o, all)
	case killed(end.ExitCode):
		return unknown(o, cause{
			reason:  reasonKilled,
			detail:  checkresult.Sentence(fmt.Sprintf("the check was killed (exit code %d)", end.ExitCode), lastLines(end, log)),
			remedy:  "Find the cause in the events of namespace " + pod.Namespace + ", then run the preflight again.",
			actions: []finding.Action{finding.Read("oc get events -n %s", pod.Namespace), finding.Retry("")},
		}).withFailures(o, result)
	case result.Invalid != "":
		return unknown(o, badResult(result.Invalid))
	case result.Found, o.Check.Framed:
		why := noResult(o, end.ExitCode)
		why.detail = checkresult.Sentence(why.detail, lastLines(end, log))
		return unknown(o, why).withFailures(o, result)
	}
	return done(o, finding.Fail(checkresult.ReasonFailed,
		"%s", checkresult.Sentence(fmt.Sprintf("the check exited with code %d%s", end.ExitCode, o.attempts()), lastLines(end, log))).
		Remedy("Fix what the log of the check names. The whole log is available while the Jobs of the run are kept.").
		Do(finding.Read("oc -n %s logs job/%s", pod.Namespace, o.Check.Job.Name)))
}

// killed is true for the exit codes of SIGKILL and SIGTERM.
func killed(exitCode int32) bool {
	return exitCode == 137 || exitCode == 143
}

func (o Observation) attempts() string {
	if n := o.job().Attempts; n > 1 {
		return fmt.Sprintf(" in the last of %d attempts", n)
	}
	return ""
}

// lastLines are the last lines of a container's output, from its log or from the termination message.
func lastLines(end *corev1.ContainerStateTerminated, log *Log) string {
	if log != nil && len(log.Text) > 0 {
		return checkresult.Tail(string(log.Text))
	}
	return checkresult.Tail(end.Message)
}

func outOfMemory(container string) cause {
	return cause{
		reason: reasonOOMKilled,
		detail: fmt.Sprintf("container %q was killed because it ran out of memory", container),
		remedy: "Report it to the owners of the check: it needs a higher memory limit. If the node was short of memory, free some and run the preflight again.",
	}
}

func badResult(why string) cause {
	return cause{reason: reasonBadResult, detail: checkresult.Sentence("the result of the check cannot be used", words.Line(why, checkresult.MaxLine)), remedy: reportDefect}
}

func noResult(o Observation, exitCode int32) cause {
	detail := fmt.Sprintf("the check ended with exit code %d%s and left no final result", exitCode, o.attempts())
	if o.Log != nil && o.Log.Error != "" {
		detail += "; its log could not be read: " + words.Line(o.Log.Error, checkresult.MaxLine)
	}
	return cause{reason: collector.ReasonNoResult, detail: detail, remedy: reportDefect}
}
