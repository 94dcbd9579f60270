package jobs

import (
	"cmp"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
)

// ReasonPassed is reported for a check that exited 0 without findings of its own.
//
// Cause: the check found nothing that blocks the update.
//
// Remedy: none needed.
const ReasonPassed finding.Reason = "Passed"

// ReasonFailed is reported for a check that exited with another code than 0,
// without findings of its own.
//
// Cause: the message has the last lines of its log.
//
// Remedy: fix what the log names, then run the preflight again.
const ReasonFailed finding.Reason = "Failed"

// ReasonOOMKilled is reported for a check that ran out of memory.
//
// Cause: its memory limit is too low, or the node ran out of memory.
//
// Remedy: report it to the owners of the check; if the node is short of memory,
// free some: `oc adm top nodes`.
const ReasonOOMKilled finding.Reason = "OOMKilled"

// ReasonContradiction is reported for a check whose exit code contradicts its
// result.
//
// Cause: a defect of the check.
//
// Remedy: report it to the owners of the check.
const ReasonContradiction finding.Reason = "Contradiction"

// ReasonBadResult is reported for a check whose result cannot be used.
//
// Cause: the result is damaged, too large, of another run, or of a later version
// of the SDK.
//
// Remedy: report it to the owners of the check.
const ReasonBadResult finding.Reason = "BadResult"

// ReasonKilled is reported for a check that ended by SIGKILL or SIGTERM.
//
// Cause: the kubelet or the runtime killed the container.
//
// Remedy: read the events with `oc get events -n NAMESPACE`, then run the
// preflight again.
const ReasonKilled finding.Reason = "Killed"

// ReasonLost is reported for a check whose Job ended and whose pod was gone before
// its result was read.
//
// Cause: the pod was deleted, or its node was lost.
//
// Remedy: run the preflight again.
const ReasonLost finding.Reason = "Lost"

// ReasonJobDeleted is reported for a check whose Job was deleted by another client
// twice.
//
// Cause: a user or a controller deletes Jobs in the namespace.
//
// Remedy: stop the client that deletes Jobs in the namespace, then run the
// preflight again.
const ReasonJobDeleted finding.Reason = "JobDeleted"

// ReasonPodDeleted is reported for a check whose pod was deleted by another
// client.
//
// Cause: a user or a controller deletes pods in the namespace.
//
// Remedy: stop the client that deletes pods in the namespace, then run the
// preflight again.
const ReasonPodDeleted finding.Reason = "PodDeleted"

// ReasonDeadlineExceeded is reported for a check whose Job exceeded its
// activeDeadlineSeconds.
//
// Cause: the pod waited for something, or the check took too long.
//
// Remedy: remove what the message names, then run the preflight again.
const ReasonDeadlineExceeded finding.Reason = "DeadlineExceeded"

// Classify returns what an observation means. It is pure, and with Expired the
// state is always Done.
//
// The last attempt decides, and an earlier one only by a final result that was
// read late. An attempt that ended without a result does not decide while the Job
// retries.
func Classify(o Observation) Classification {
	classified := o.classify()
	if o.Expired && classified.State != Done {
		return o.expired(classified)
	}
	return classified
}

func (o Observation) classify() Classification {
	for i := range slices.Backward(o.Pods) {
		if classified, ok := o.attempt(i); ok {
			return classified
		}
	}
	pod, exists := o.newest()
	switch condition := o.condition(); {
	case o.Deleted:
		return o.outcomeLost(cause{
			reason: ReasonJobDeleted, detail: sentence("the Job was deleted by another client", o.activity()),
			remedy:  "Stop the client that deletes Jobs in namespace " + o.Check.Job.Namespace + ", then run the preflight again.",
			actions: []finding.Action{finding.Retry("")},
		})
	case condition != nil && condition.failed:
		return o.failed(*condition)
	case condition != nil:
		return o.completed()
	case !exists:
		return o.tolerate(o.withoutPod())
	default:
		return o.inProgress(pod)
	}
}

// jobCondition is the final condition of a Job.
type jobCondition struct {
	failed          bool
	reason, message string
}

// condition reads all conditions: SuccessCriteriaMet and FailureTarget precede
// Complete and Failed, while pods still terminate. It returns nil while the Job is
// active.
func (o Observation) condition() *jobCondition {
	if o.Job == nil {
		return nil
	}
	for _, condition := range o.Job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobFailed, batchv1.JobFailureTarget:
			return &jobCondition{failed: true, reason: condition.Reason, message: words.Line(condition.Message, maxLine)}
		case batchv1.JobComplete, batchv1.JobSuccessCriteriaMet:
			return &jobCondition{}
		case batchv1.JobSuspended:
		}
	}
	return nil
}

// attempt classifies the end of one attempt. False means that it does not decide.
//
// The log is read, once, if the termination message has no complete result. That
// includes a check without a promised result that exits 0 with an empty message:
// it may have printed a result with warnings, or one that contradicts its exit
// code. Without that log its exit code decides, so the read is not required.
// Together with the dry run and the creation this makes three requests per Job.
func (o Observation) attempt(i int) (Classification, bool) {
	pod := o.Pods[i]
	if altered, ok := o.altered(pod); ok {
		return altered, true
	}
	if failure, ok := o.startFailure(pod); ok {
		return failure, true
	}
	end := terminated(o.Check, pod)
	if end == nil {
		return Classification{}, false
	}
	log := o.logOf(pod)
	result := resultOf(o.Check.Job.Labels[label.Run], end.Message, log)
	if end.Reason == string(ReasonOOMKilled) && disruption(pod) == nil {
		return o.unknown(outOfMemory(mainContainer(o.Check))).withFailures(o, result), true
	}
	last := i == len(o.Pods)-1
	if last && !result.complete() && log == nil && !pod.Gone && !o.Expired {
		classified := Classification{State: Running, Detail: "reading its log", ReadLog: pod.Name, logTimeout: requiredLogTimeout}
		if end.ExitCode == 0 && !result.found && result.invalid == "" && !o.Check.Framed {
			classified.logTimeout = optionalLogTimeout
		}
		return classified, true
	}
	if result.final() {
		return o.finalResult(pod, end.ExitCode, result)
	}
	if end.ExitCode != 0 || !last {
		return Classification{}, false
	}
	return o.exitedZero(pod, result)
}

// altered is for a pod that does not run the check of the release, so that its result
// does not count. Admission changes pods after the Job was compared.
func (o Observation) altered(pod Pod) (Classification, bool) {
	if len(pod.Spec.Containers) == 0 {
		return Classification{}, false // the API server accepts no such pod
	}
	differs, err := o.Check.Altered(pod.Spec)
	if err != nil {
		differs = err.Error()
	}
	if differs == "" {
		return Classification{}, false
	}
	return o.unknown(cause{
		reason:  launch.ReasonAlteredByAdmission,
		detail:  fmt.Sprintf("a mutating webhook or policy of the cluster changes Pod %s/%s: %s", pod.Namespace, pod.Name, differs),
		remedy:  fmt.Sprintf("Exempt objects with the label %s from the webhook or policy that changes them.", label.Run),
		actions: []finding.Action{finding.Run("oc get mutatingwebhookconfigurations,mutatingadmissionpolicies")},
	}), true
}

// logOf is the log of the pod if it was read.
func (o Observation) logOf(pod Pod) *Log {
	if o.Log != nil && o.Log.Pod == pod.Name {
		return o.Log
	}
	return nil
}

// finalResult takes over a final result that agrees with the exit code. An
// inconclusive result of a pod that was disrupted does not decide: the Job
// retries.
func (o Observation) finalResult(pod Pod, exitCode int32, result containerResult) (Classification, bool) {
	agrees := result.Agrees(int(exitCode))
	if interrupted(pod) && (!agrees || exitCode == preflight.ExitUnknown) {
		return Classification{}, false
	}
	if !agrees {
		return o.unknown(cause{
			reason: ReasonContradiction,
			detail: fmt.Sprintf("the check ended with exit code %d, which contradicts its result", exitCode),
			remedy: reportDefect,
		}).withFailures(o, result), true
	}
	all, err := findings(o.Check, result.Result)
	if err != nil {
		return o.unknown(badResult(err.Error())), true
	}
	return o.doneWith(all), true
}

// exitedZero classifies a check that exited 0 without a final result.
func (o Observation) exitedZero(pod Pod, result containerResult) (Classification, bool) {
	switch {
	case result.invalid != "":
		return o.unknown(badResult(result.invalid)), true
	case result.found, o.Check.Framed:
		return o.unknown(o.noResult(0)).withFailures(o, result), true
	}
	switch otherContainers(o.Check, pod) {
	case containersRunning:
		return Classification{State: Running, Detail: "waiting for its other containers to end"}, true
	case containersFailed:
		return Classification{}, false
	case containersPassed:
	}
	return o.passed(), true
}

func (o Observation) passed() Classification {
	return o.done(finding.Pass(ReasonPassed, "the check exited 0 and reported no findings"))
}

// containersState is the worst state of several containers.
type containersState int

const (
	containersPassed containersState = iota
	containersRunning
	containersFailed
)

// otherContainers is the state of the containers of the manifest beside the
// check's.
func otherContainers(check launch.Check, pod Pod) containersState {
	others := map[string]bool{}
	for _, container := range check.Job.Spec.Template.Spec.Containers {
		others[container.Name] = container.Name != mainContainer(check)
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

// completed classifies a Job that is complete without an observed end of a pod:
// the watch may lag behind.
func (o Observation) completed() Classification {
	if !o.Check.Framed && o.Listed {
		return o.passed()
	}
	return o.outcomeLost(lost("the Job is complete, but its pod was gone before its result was read"))
}

// lost is the cause for an ended Job whose pod is gone.
func lost(detail string) cause {
	return cause{reason: ReasonLost, timeout: watchLag, detail: detail, remedy: runAgain, actions: []finding.Action{finding.Retry("")}}
}

// outcomeLost classifies a Job whose outcome can no longer be read: it is
// created again once, after a list has shown that the watch does not lag behind.
func (o Observation) outcomeLost(why cause) Classification {
	classified := o.tolerate(why)
	switch {
	case classified.State != Done:
		return classified
	case why.reason == ReasonLost && !o.Listed:
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

// failed classifies a Job with the condition Failed.
func (o Observation) failed(condition jobCondition) Classification {
	pod, exists := o.newest()
	switch {
	case condition.reason == batchv1.JobReasonDeadlineExceeded:
		return o.unknown(cause{
			reason: ReasonDeadlineExceeded,
			detail: sentence("the Job exceeded its activeDeadlineSeconds", cmp.Or(o.activity(), condition.message)),
			remedy: fmt.Sprintf("Remove what it waited for and run the preflight again; if the check was running, report it to the owners of component %q.", o.Check.Component),
		})
	case !exists:
		return o.outcomeLost(lost(sentence("the Job failed, and no pod of it was observed", condition.message)))
	}
	if why := disruption(pod); why != nil {
		return o.outcomeLost(*why)
	}
	if pod.DeletionTimestamp != nil {
		return o.outcomeLost(cause{
			reason: ReasonPodDeleted, detail: sentence("its pod was deleted by another client", condition.message),
			remedy:  "Stop the client that deletes pods in namespace " + pod.Namespace + ", then run the preflight again.",
			actions: []finding.Action{finding.Retry("")},
		})
	}
	if why := o.attemptFailure(pod); why != nil {
		return o.unknown(*why)
	}
	end := terminated(o.Check, pod)
	if end == nil || end.ExitCode == 0 {
		return o.outcomeLost(lost(sentence("the Job failed, but its pod was gone before its end was observed", condition.message)))
	}
	return o.exitedNonZero(pod, end)
}

// exitedNonZero classifies the last attempt of a check that ended with another
// exit code than 0, without a final result.
func (o Observation) exitedNonZero(pod Pod, end *corev1.ContainerStateTerminated) Classification {
	log := o.logOf(pod)
	result := resultOf(o.Check.Job.Labels[label.Run], end.Message, log)
	all, err := findings(o.Check, result.Result)
	switch {
	case result.final() && err == nil:
		return o.doneWith(all)
	case killed(end.ExitCode):
		return o.unknown(cause{
			reason:  ReasonKilled,
			detail:  sentence(fmt.Sprintf("the check was killed (exit code %d)", end.ExitCode), lastLines(end, log)),
			remedy:  "Find the cause in the events of namespace " + pod.Namespace + ", then run the preflight again.",
			actions: []finding.Action{finding.Run("oc get events -n %s", pod.Namespace), finding.Retry("")},
		}).withFailures(o, result)
	case result.invalid != "":
		return o.unknown(badResult(result.invalid))
	case result.found, o.Check.Framed:
		why := o.noResult(end.ExitCode)
		why.detail = sentence(why.detail, lastLines(end, log))
		return o.unknown(why).withFailures(o, result)
	}
	return o.done(finding.Fail(ReasonFailed,
		"%s", sentence(fmt.Sprintf("the check exited with code %d%s", end.ExitCode, o.attempts()), lastLines(end, log))).
		Remedy("Fix what the log of the check names. The whole log is available while the Jobs of the run are kept.").
		Do(finding.Run("oc -n %s logs job/%s", pod.Namespace, o.Check.Job.Name)))
}

// killed is true for the exit codes of SIGKILL and SIGTERM.
func killed(exitCode int32) bool {
	return exitCode == 137 || exitCode == 143
}

// attempts is a clause with the number of attempts, if there were several.
func (o Observation) attempts() string {
	if n := o.job().Attempts; n > 1 {
		return fmt.Sprintf(" in the last of %d attempts", n)
	}
	return ""
}

// lastLines are the last lines of a container's output, from its log or from the
// termination message.
func lastLines(end *corev1.ContainerStateTerminated, log *Log) string {
	if log != nil && len(log.Text) > 0 {
		return tail(string(log.Text))
	}
	return tail(end.Message)
}

// expired ends the check at the deadline of the run, with its last state.
func (o Observation) expired(classified Classification) Classification {
	why := classified.cause
	detail := classified.Detail
	if pod, ok := o.newest(); ok && o.logOf(pod) != nil {
		if lines := tail(string(o.Log.Text)); lines != "" {
			detail = sentence(detail+"; last log lines", lines)
		}
	}
	if o.APIErrors != "" {
		detail += "; requests to the API server fail: " + words.Line(o.APIErrors, maxLine)
	}
	if why.reason == "" {
		why.reason = collector.ReasonTimeout
	}
	if why.remedy == "" {
		why.remedy, why.actions = "Run the preflight again with a longer timeout.", []finding.Action{finding.Retry(finding.OptionTimeout)}
	}
	why.detail = "timed out: " + detail
	return o.unknown(why)
}

func outOfMemory(container string) cause {
	return cause{
		reason: ReasonOOMKilled,
		detail: fmt.Sprintf("container %q was killed because it ran out of memory", container),
		remedy: "Report it to the owners of the check: it needs a higher memory limit. If the node was short of memory, free some and run the preflight again.",
	}
}

func badResult(why string) cause {
	return cause{reason: ReasonBadResult, detail: sentence("the result of the check cannot be used", words.Line(why, maxLine)), remedy: reportDefect}
}

func (o Observation) noResult(exitCode int32) cause {
	detail := fmt.Sprintf("the check ended with exit code %d%s and left no final result", exitCode, o.attempts())
	if o.Log != nil && o.Log.Error != "" {
		detail += "; its log could not be read: " + words.Line(o.Log.Error, maxLine)
	}
	return cause{reason: collector.ReasonNoResult, detail: detail, remedy: reportDefect}
}
