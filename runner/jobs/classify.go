package jobs

import (
	"cmp"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
)

const (
	ReasonPassed finding.Reason = "Passed"
	ReasonFailed finding.Reason = "Failed"
)

// Classify says what an observation means. It is pure, and total: with Expired
// there always is an answer.
//
// The last attempt decides, and an earlier one only by a final result that came
// late. An attempt that ended without a result is no answer as long as the Job
// tries again.
func Classify(o Observation) Reading {
	reading := o.read()
	if o.Expired && reading.State != Done {
		return o.expired(reading)
	}
	return reading
}

func (o Observation) read() Reading {
	for i := range slices.Backward(o.Pods) {
		if reading, ok := o.conclude(i); ok {
			return reading
		}
	}
	pod, born := o.newest()
	switch condition := o.condition(); {
	case o.Deleted:
		return o.lost(obstacle{
			cause: "JobDeleted", detail: sentence("the Job was deleted by somebody else", o.doing()),
			remedy: "Find out who deletes Jobs in namespace " + o.Check.Job.Namespace + ", then run the preflight again.",
		})
	case condition != nil && condition.failed:
		return o.failed(*condition)
	case condition != nil:
		return o.completed()
	case !born:
		return o.held(o.unborn())
	default:
		return o.underway(pod)
	}
}

// end is the Job controller's word about the whole Job.
type end struct {
	failed          bool
	reason, message string
}

// condition looks at all conditions: SuccessCriteriaMet and FailureTarget come
// before Complete and Failed, while pods still terminate.
func (o Observation) condition() *end {
	if o.Job == nil {
		return nil
	}
	for _, condition := range o.Job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobFailed, batchv1.JobFailureTarget:
			return &end{failed: true, reason: condition.Reason, message: words.Line(condition.Message, maxLine)}
		case batchv1.JobComplete, batchv1.JobSuccessCriteriaMet:
			return &end{}
		case batchv1.JobSuspended:
		}
	}
	return nil
}

// conclude reads the end of one attempt. False means that it is no answer.
//
// The log is read, once, where the termination message has no whole result. That
// is so too for a check that promised none and exits 0 with an empty message: it
// may have printed a result that warns, or that denies its exit code. Without
// that log its exit code is the answer, so it is not waited for. With the dry
// run and the creation this makes three requests per Job.
func (o Observation) conclude(i int) (Reading, bool) {
	pod := o.Pods[i]
	if why, ok := o.unstartable(pod); ok {
		return why, true
	}
	end := ending(o.Check, pod)
	if end == nil {
		return Reading{}, false
	}
	log := o.logOf(pod)
	heard := listen(o.Check.Job.Labels[label.Run], end.Message, log)
	if end.Reason == reasonOOM && disruption(pod) == nil {
		return o.unknown(outOfMemory(mainContainer(o.Check))).along(o, heard), true
	}
	last := i == len(o.Pods)-1
	if last && !heard.complete() && log == nil && !pod.Gone && !o.Expired {
		reading := Reading{State: Running, Detail: "reading what it said", ReadLog: pod.Name, logTime: logTime}
		if end.ExitCode == 0 && !heard.found && heard.problem == "" && !o.Check.Framed {
			reading.logTime = lastWordsTime
		}
		return reading, true
	}
	if heard.final() {
		return o.final(pod, end.ExitCode, heard)
	}
	if end.ExitCode != 0 || !last {
		return Reading{}, false
	}
	return o.silent(pod, heard)
}

const reasonOOM = "OOMKilled"

// logOf is the log of the pod, where it was read.
func (o Observation) logOf(pod Pod) *Log {
	if o.Log != nil && o.Log.Pod == pod.Name {
		return o.Log
	}
	return nil
}

// final takes a check at its last word, if its exit code says the same. That it
// could not tell because its pod was put to an end is no last word: the Job
// starts it again.
func (o Observation) final(pod Pod, exitCode int32, heard said) (Reading, bool) {
	agrees := heard.result.Agrees(int(exitCode))
	if interrupted(pod) && (!agrees || exitCode == preflight.ExitUnknown) {
		return Reading{}, false
	}
	if !agrees {
		return o.unknown(obstacle{
			cause:  "Contradiction",
			detail: fmt.Sprintf("the check ended with exit code %d, which is not that of the result it left", exitCode),
			remedy: defect,
		}).along(o, heard), true
	}
	all, err := findings(o.Check, heard.result)
	if err != nil {
		return o.unknown(badResult(err.Error())), true
	}
	return o.answer(all), true
}

// silent is about a check that exited 0 without a last word.
func (o Observation) silent(pod Pod, heard said) (Reading, bool) {
	switch {
	case heard.problem != "":
		return o.unknown(badResult(heard.problem)), true
	case heard.found, o.Check.Framed:
		return o.unknown(o.noResult(0)).along(o, heard), true
	}
	switch others(o.Check, pod) {
	case othersRunning:
		return Reading{State: Running, Detail: "waiting for its other containers to end"}, true
	case othersFailed:
		return Reading{}, false
	case othersPassed:
	}
	return o.passed(), true
}

func (o Observation) passed() Reading {
	return o.done(finding.Pass(ReasonPassed, "the check exited with code 0, and says no more"))
}

// How the other containers of a manifest are getting on.
type otherContainers int

const (
	othersPassed otherContainers = iota
	othersRunning
	othersFailed
)

func others(check launch.Check, pod Pod) otherContainers {
	wanted := map[string]bool{}
	for _, container := range check.Job.Spec.Template.Spec.Containers {
		wanted[container.Name] = container.Name != mainContainer(check)
	}
	worst := othersPassed
	for _, status := range pod.Status.ContainerStatuses {
		switch {
		case !wanted[status.Name]:
		case status.State.Terminated == nil:
			worst = max(worst, othersRunning)
		case status.State.Terminated.ExitCode != 0:
			worst = max(worst, othersFailed)
		}
	}
	return worst
}

// completed is for a Job that is complete though no pod was seen to end: the
// watch may be a little behind.
func (o Observation) completed() Reading {
	if !o.Check.Framed && o.Listed {
		return o.passed()
	}
	return o.lost(obstacle{
		cause: causeLost, patience: settleTime,
		detail: "the Job is complete, but its pod was gone before anybody saw what it said",
		remedy: "Run the preflight again.",
	})
}

const causeLost = "Lost"

// lost is about a Job whose word nobody is going to hear any more. Once it is
// started again, and not because a watch is behind.
func (o Observation) lost(why obstacle) Reading {
	reading := o.held(why)
	switch {
	case reading.State != Done:
		return reading
	case why.cause == causeLost && !o.Listed:
		return Reading{State: Waiting, Detail: why.detail, Cause: why.cause, remedy: why.remedy, ListPods: true}
	case o.Restarted:
		return reading
	}
	return Reading{State: Waiting, Detail: why.detail + "; it is started once more", Cause: why.cause, remedy: why.remedy, Restart: true}
}

// failed says why a Job was given up.
func (o Observation) failed(condition end) Reading {
	pod, born := o.newest()
	switch {
	case condition.reason == batchv1.JobReasonDeadlineExceeded:
		return o.unknown(obstacle{
			cause:  "DeadlineExceeded",
			detail: sentence("the Job ran into its activeDeadlineSeconds", cmp.Or(o.doing(), condition.message)),
			remedy: fmt.Sprintf("Remove what it waited for and run the preflight again; if it was at work all the time, report it to the owners of component %q.", o.Check.Component),
		})
	case !born:
		return o.lost(obstacle{
			cause: causeLost, patience: settleTime,
			detail: sentence("the Job failed, and no pod of it was seen", condition.message), remedy: "Run the preflight again.",
		})
	}
	if why := disruption(pod); why != nil {
		return o.lost(*why)
	}
	if pod.DeletionTimestamp != nil {
		return o.lost(obstacle{
			cause: "PodDeleted", detail: sentence("its pod was deleted by somebody else", condition.message),
			remedy: "Find out who deletes pods in namespace " + pod.Namespace + ", then run the preflight again.",
		})
	}
	if why := o.failure(pod); why != nil {
		return o.unknown(*why)
	}
	end := ending(o.Check, pod)
	if end == nil || end.ExitCode == 0 {
		return o.lost(obstacle{
			cause: causeLost, patience: settleTime,
			detail: sentence("the Job failed, but its pod was gone before anybody saw why", condition.message), remedy: "Run the preflight again.",
		})
	}
	return o.exited(pod, end)
}

// exited is about a check that ended with another code than 0, for the last
// time, without a final result.
func (o Observation) exited(pod Pod, end *corev1.ContainerStateTerminated) Reading {
	log := o.logOf(pod)
	heard := listen(o.Check.Job.Labels[label.Run], end.Message, log)
	all, err := findings(o.Check, heard.result)
	switch {
	case heard.final() && err == nil:
		return o.answer(all)
	case killed(end.ExitCode):
		return o.unknown(obstacle{
			cause:  "Killed",
			detail: sentence(fmt.Sprintf("the check was killed (exit code %d)", end.ExitCode), lastLines(end, log)),
			remedy: "Find out what killed it, then run the preflight again: oc get events -n " + pod.Namespace,
		}).along(o, heard)
	case heard.problem != "":
		return o.unknown(badResult(heard.problem))
	case heard.found, o.Check.Framed:
		why := o.noResult(end.ExitCode)
		why.detail = sentence(why.detail, lastLines(end, log))
		return o.unknown(why).along(o, heard)
	}
	return o.done(finding.Fail(ReasonFailed,
		"%s", sentence(fmt.Sprintf("the check exited with code %d%s", end.ExitCode, o.attempts()), lastLines(end, log))).
		Remedy("Put right what the check says. Its whole log: oc preflight run --keep …, then oc -n %s logs job/%s", pod.Namespace, o.Check.Job.Name))
}

// killed is true for the exit codes that stand for SIGKILL and SIGTERM.
func killed(exitCode int32) bool {
	return exitCode == 137 || exitCode == 143
}

// attempts says how often it was tried, where that was more than once.
func (o Observation) attempts() string {
	if n := o.job().Attempts; n > 1 {
		return fmt.Sprintf(" in the last of %d attempts", n)
	}
	return ""
}

// lastLines are the last lines of a container, from its log or what the kubelet
// kept of it.
func lastLines(end *corev1.ContainerStateTerminated, log *Log) string {
	if log != nil && len(log.Text) > 0 {
		return tail(string(log.Text))
	}
	return tail(end.Message)
}

// expired is the answer when the time of the run is up: what it was doing.
func (o Observation) expired(reading Reading) Reading {
	detail := reading.Detail
	if pod, ok := o.newest(); ok && o.logOf(pod) != nil {
		if said := tail(string(o.Log.Text)); said != "" {
			detail = sentence(detail+"; its last words", said)
		}
	}
	if o.Trouble != "" {
		detail += "; there is trouble with the cluster: " + words.Line(o.Trouble, maxLine)
	}
	return o.unknown(obstacle{
		cause:  cmp.Or(reading.Cause, "Timeout"),
		detail: "time is up: " + detail,
		remedy: cmp.Or(reading.remedy, "Run the preflight again with a longer --timeout."),
	})
}
