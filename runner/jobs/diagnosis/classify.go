// Package diagnosis answers: what does the observed state of the Job of a check mean?
//
// [Classify] is pure: it returns the findings of a finished check, or the reason why the check is waiting. Every end of
// a pod without a result is Unknown, with its cause and remedy.
//
// A container that terminated with a final result decides its check immediately, without waiting for the Job's
// condition Complete. For a check that did not promise such a result, the exit code decides once the Job makes no
// further attempt.
package diagnosis

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs/checkresult"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/alteration"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// Classify returns the meaning of an observation. It is pure, and with Expired the state is always Done.
//
// No pod decides before all were compared with the plan. The last attempt decides, and an earlier attempt only with a
// final result that was read late. An attempt that ended without a result does not decide while the Job retries.
func Classify(o Observation) Classification {
	classified := classify(o)
	if o.Expired && classified.State != Done {
		return expired(o, classified)
	}
	return classified
}

func classify(o Observation) Classification {
	if unobserved(o) {
		return outcomeLost(o, lost("the Job counts more pods than were observed: it is unknown what the other pods ran"))
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
	return unknown(o, alteredBy(fmt.Sprintf("a mutating webhook or policy of the cluster changes Pod %s/%s: %s", pod.Namespace, pod.Name,
		differs))), true
}

func alteredBy(detail string) cause {
	return cause{
		reason: alteration.ReasonAlteredByAdmission, detail: detail,
		remedy:  fmt.Sprintf("Exempt objects with the label %s from the webhook or policy that changes them.", label.Run),
		actions: []finding.Action{finding.Read("oc get mutatingwebhookconfigurations,mutatingadmissionpolicies")},
	}
}

// State is the progress of a check.
type State string

// The states of a check.
const (
	// Queued means that the check waits until the parallelism allows its Job.
	Queued State = "queued"
	// Waiting means that the Job exists and the container of the check does not run.
	Waiting State = "waiting"
	// Running means that the container runs, or has just terminated.
	Running State = "running"
	// Done means that the findings of the check are complete.
	Done State = "done"
)

// Classification of an Observation.
type Classification struct {
	// State is Waiting, Running or Done.
	State State
	// Detail is a clause about the reason for waiting.
	Detail string
	// Reason is the reason of the finding if the state lasts until the deadline; empty in an ordinary state.
	Reason finding.Reason
	// Findings are set when State is Done.
	Findings []finding.Finding
	ReadLog  string
	// ListPods is true when the pods have to be listed first, because the watch may lag behind.
	ListPods bool
	// Recheck is after how long to classify again without a change; 0 is never.
	Recheck time.Duration
	// Restart is true when the outcome of the Job is lost: the Job has to be
	// deleted if it exists, and created once more.
	Restart bool
	// Idle is true when no container of the Job has ever run and it waits for
	// something without a time limit, so that it may yield to queued checks.
	Idle bool

	// cause has the Reason.
	cause cause
	// LogTimeout is how long to retry the reading of the log.
	LogTimeout time.Duration
}

func (why cause) waiting() Classification {
	return Classification{State: Waiting, Detail: why.detail, Reason: why.reason, cause: why}
}

const (
	// RequiredLogTimeout is how long reading a log is retried if the log decides the check: long enough for a kubelet
	// to restart. While the API server is unreachable, reading is retried until the deadline of the run.
	RequiredLogTimeout = 30 * time.Second
	// OptionalLogTimeout bounds the reading of a log that does not decide the check.
	OptionalLogTimeout = 3 * time.Second
)

const (
	// TransientTimeout is how long a cause is tolerated that may resolve without
	// intervention: a registry under load, a quota that another pod is about to
	// free.
	TransientTimeout = 90 * time.Second
	// watchLag is how far the watch on pods may lag behind that on Jobs.
	watchLag = 5 * time.Second
	// untilDeadline is the timeout of a cause that is tolerated until the deadline of the run.
	untilDeadline = time.Duration(-1)

	reportDefect = "Report this defect of the check to its owners."
	runAgain     = "Run the preflight again."
	fixMessage   = "Fix the problem in the message, then run the preflight again."
)

type cause struct {
	reason finding.Reason
	// detail is a clause, remedy an imperative sentence, actions its commands.
	detail, remedy string
	actions        []finding.Action
	// timeout is how long the cause is tolerated; 0 is not at all.
	timeout time.Duration
}

var reasonBesideAltered = finding.NewReason("BesideAlteredPod", finding.Explanation{
	Meaning: "The check did not fail, but a mutating webhook or policy changed the pod of another check in the same " +
		"run. The changed pod may have influenced this check, for example through their node.",
	Cause: "The admission policy of the run, which rejects such pods before they start, is not in force, or does not " +
		"see the change.",
	Remedy: "Exempt objects with the label preflight.openshift.io/run from the webhook or policy, check the node on " +
		"which the changed pod ran, then run the preflight again.",
})

// Withdraw returns the findings of a run without the results of a cluster's Jobs that are in favor of the update, if
// admission altered a pod of one of them and the pod may have run: each such finding becomes Unknown, and names that
// pod.
func Withdraw(findings []finding.Finding) []finding.Finding {
	altered := map[string]finding.Finding{}
	for _, f := range findings {
		if f.Job != nil && f.Job.Attempts > 0 && f.Reason == alteration.ReasonAlteredByAdmission.String() {
			altered[f.Job.Cluster] = f
		}
	}
	if len(altered) == 0 {
		return findings
	}
	kept := make([]finding.Finding, 0, len(findings))
	for _, f := range findings {
		if f.Job != nil && f.Outcome != preflight.Fail && f.Outcome != preflight.Unknown {
			if by, found := altered[f.Job.Cluster]; found {
				f = besideAltered(f, by)
			}
		}
		kept = append(kept, f)
	}
	return kept
}

func besideAltered(f, by finding.Finding) finding.Finding {
	where := ""
	if by.Job.Node != "" {
		where = fmt.Sprintf("; the changes of that pod to node %s remain after the run", by.Job.Node)
	}
	withdrawn := finding.Unknown(reasonBesideAltered,
		"the result of the check does not count (%s: %s), because admission changed a pod of %s%s", f.Outcome, f.Message, by.Name, where).
		Named(f.Name).From(finding.SourceJob).About(append(f.Objects, by.Objects...)...).Do(by.Actions...).Do(finding.Retry(""))
	withdrawn.Job = f.Job
	return withdrawn
}

var (
	reasonOOMKilled = finding.NewReason("OOMKilled", finding.Explanation{
		Meaning: "The check ran out of memory.",
		Cause:   "Its memory limit is too low, or the node ran out of memory.",
		Remedy:  "Report it to the owners of the check. If the node is short of memory, free some: `oc adm top nodes`.",
	})
	reasonContradiction = finding.NewReason("Contradiction", finding.Explanation{
		Meaning: "The exit code of the check contradicts its result.",
		Cause:   "The check is defective.",
		Remedy:  "Report it to the owners of the check.",
	})
	reasonBadResult = finding.NewReason("BadResult", finding.Explanation{
		Meaning: "The result of the check cannot be used.",
		Cause:   "The result is damaged, too large, from another run, or from a later SDK version.",
		Remedy:  "Report it to the owners of the check.",
	})
	reasonKilled = finding.NewReason("Killed", finding.Explanation{
		Meaning: "The check was terminated by SIGKILL or SIGTERM.",
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
		return Classification{State: Running, Detail: "waiting for its other containers to finish"}, true
	case containersFailed:
		return Classification{}, false
	case containersPassed:
	}
	return passed(o), true
}

func passed(o Observation) Classification {
	return done(o, finding.Pass(gap.Proven("the exit code of the check"), checkresult.ReasonPassed,
		"the check exited 0 and reported no findings"))
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
		Remedy("Fix the problem in the log of the check. The whole log is available while the Jobs of the run are kept.").
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
		remedy: "Report it to the owners of the check: it needs a higher memory limit. If the node was short of memory, free some and " +
			"run the preflight again.",
	}
}

func badResult(why string) cause {
	return cause{reason: reasonBadResult, detail: checkresult.Sentence("the result of the check cannot be used",
		words.Line(why, checkresult.MaxLine)), remedy: reportDefect}
}

func noResult(o Observation, exitCode int32) cause {
	detail := fmt.Sprintf("the check ended with exit code %d%s and left no final result", exitCode, o.attempts())
	if o.Log != nil && o.Log.Error != "" {
		detail += "; its log could not be read: " + words.Line(o.Log.Error, checkresult.MaxLine)
	}
	return cause{reason: collector.ReasonNoResult, detail: detail, remedy: reportDefect}
}
