package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs/checkresult"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

var (
	reasonAttemptFailed = finding.NewReason("AttemptFailed", finding.Explanation{
		Meaning: "The Job of the check was still retrying at the deadline of the run.",
		Cause:   "The last attempt exited with a non-zero code.",
		Remedy:  "Fix the problem in the log of the check, or run the preflight again with a longer timeout.",
	})
	reasonUnscheduled = finding.NewReason("Unscheduled", finding.Explanation{
		Meaning: "The scheduler has not processed the pod of the check.",
		Cause:   "The scheduler is not running, or is overloaded.",
		Remedy:  "Check the scheduler: `oc -n openshift-kube-scheduler get pods`.",
	})
	reasonInitFailed = finding.NewReason("InitFailed", finding.Explanation{
		Meaning: "An init container of the check failed.",
		Cause:   "The message contains the last lines of its output.",
		Remedy:  "Fix the problem in the output, or report it to the owners of the component.",
	})
	reasonContainerFailed = finding.NewReason("ContainerFailed", finding.Explanation{
		Meaning: "The check exited with code 0, but another container of its pod failed.",
		Cause:   "The check is defective.",
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
		return Classification{State: Waiting, Detail: "its pod is gone, and no other pod has been observed yet"}
	case current != nil && current.State.Running != nil:
		return Classification{State: Running, Detail: "the check is running"}
	case checkresult.Terminated(o.Check, pod.Pod) != nil:
		end := checkresult.Terminated(o.Check, pod.Pod)
		return cause{
			reason: reasonAttemptFailed,
			detail: checkresult.Sentence(fmt.Sprintf("attempt %d ended with exit code %d, and the Job retries", o.job().Attempts, end.ExitCode),
				lastLines(end, o.logOf(pod))),
			remedy:  "Fix the problem in the log of the check, or run the preflight again with a longer timeout.",
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
				detail: checkresult.Sentence(fmt.Sprintf("init container %q ended with exit code %d", container.Name, end.ExitCode),
					checkresult.Tail(end.Message)),
				remedy: fmt.Sprintf("Fix the problem in its output, or report it to the owners of component %q.", o.Check.Component),
			}
		}
	}
	main := checkresult.Terminated(o.Check, pod.Pod)
	for _, container := range pod.Status.ContainerStatuses {
		if end := container.State.Terminated; end != nil && end.ExitCode != 0 && main != nil && main.ExitCode == 0 {
			return &cause{
				reason: reasonContainerFailed,
				detail: checkresult.Sentence(fmt.Sprintf("container %q, beside the check, ended with exit code %d", container.Name, end.ExitCode),
					checkresult.Tail(end.Message)),
				remedy: reportDefect,
			}
		}
	}
	return nil
}

// Observation is the observed state of the Job of one check at one moment.
type Observation struct {
	Check jobplan.Check
	// Job is nil until a list or watch returned it.
	Job *batchv1.Job
	// Deleted is true when the Job existed and no longer does.
	Deleted bool
	// Pods are all pods ever observed, by creation time.
	Pods []Pod
	// Warnings are the warning events about the Job and its pods, oldest first.
	Warnings []*corev1.Event
	// Log of a container, as far as it was read; nil before.
	Log *Log
	// Reason is the reason of the previous classification, Waited for how long it has been the same.
	Reason finding.Reason
	Waited time.Duration
	// Listed is true when the pods were listed after the Job had finished: Pods is complete.
	Listed bool
	// Restarted is true when the Job replaces one whose outcome was lost.
	Restarted bool
	// Expired is true when the deadline of the run has passed.
	Expired bool
	// APIErrors are the requests to the API server that fail at present; empty if none.
	APIErrors string
}

// Pod is a pod in its last observed state.
type Pod struct {
	*corev1.Pod
	// Gone is true when the pod no longer exists.
	Gone bool
}

// Log is the end of a container's log.
type Log struct {
	Pod  string
	Text []byte
	// Error is why the log could not be read; empty if it was.
	Error string
}

// text is nil before the log was read.
func (l *Log) text() []byte {
	if l == nil {
		return nil
	}
	return l.Text
}

// Newest is the pod of the last attempt.
func (o Observation) Newest() (Pod, bool) {
	if len(o.Pods) == 0 {
		return Pod{}, false
	}
	return o.Pods[len(o.Pods)-1], true
}

// neverRan is true when a Job has one pod, and no container of it has ever run.
func (o Observation) neverRan() bool {
	if len(o.Pods) != 1 || o.Pods[0].Gone {
		return false
	}
	status := o.Pods[0].Status
	return !slices.ContainsFunc(slices.Concat(status.InitContainerStatuses, status.ContainerStatuses),
		func(container corev1.ContainerStatus) bool {
			return container.State.Running != nil || container.State.Terminated != nil || container.LastTerminationState.Terminated != nil
		})
}

func (o Observation) warning(kind, name string) *corev1.Event {
	for _, event := range slices.Backward(o.Warnings) {
		if event.InvolvedObject.Kind == kind && event.InvolvedObject.Name == name {
			return event
		}
	}
	return nil
}

func (o Observation) logOf(pod Pod) *Log {
	if o.Log != nil && o.Log.Pod == pod.Name {
		return o.Log
	}
	return nil
}

// done ends a check with a finding about the Job as a whole.
func done(o Observation, f finding.Finding) Classification {
	f = f.Named(o.Check.Name).From(finding.SourceJob)
	f.Objects = o.objects()
	return doneWith(o, []finding.Finding{f})
}

// doneWith ends a check with these findings, and adds where it ran.
func doneWith(o Observation, findings []finding.Finding) Classification {
	for i := range findings {
		findings[i].Job = o.job()
		if attempts := findings[i].Job.Attempts; findings[i].Outcome == preflight.Pass && attempts > 1 {
			findings[i].Message = words.Cut(checkresult.Sentence(fmt.Sprintf("passed in attempt %d only", attempts), findings[i].Message),
				checkresult.MaxMessage)
		}
	}
	return Classification{State: Done, Findings: findings}
}

// withFailures adds the failures and warnings of an incomplete or contradicted result.
func (c Classification) withFailures(o Observation, result checkresult.Result) Classification {
	if !result.Found {
		return c
	}
	all, err := checkresult.Findings(o.Check, result.Result)
	if err != nil {
		return c
	}
	for _, f := range all {
		if f.Outcome == preflight.Fail || f.Outcome == preflight.Warn {
			f.Job = o.job()
			c.Findings = append(c.Findings, f)
		}
	}
	return c
}

func (o Observation) objects() []preflight.Object {
	job := o.Check.Job
	objects := []preflight.Object{{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name}}
	if pod, ok := o.Newest(); ok {
		objects = append(objects, preflight.Object{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name})
	}
	return objects
}

// job is where and when the check ran. A pod that was disrupted or deleted, or
// whose end was not observed, does not count as an attempt unless it is the last.
func (o Observation) job() *finding.Job {
	job := &finding.Job{Namespace: o.Check.Job.Namespace, Name: o.Check.Job.Name}
	for i, pod := range o.Pods {
		if i < len(o.Pods)-1 && (interrupted(pod) || pod.Status.Phase != corev1.PodFailed && checkresult.Terminated(o.Check, pod.Pod) == nil) {
			continue
		}
		job.Attempts++
		if current := checkresult.Status(o.Check, pod.Pod); current != nil {
			job.Attempts += int(current.RestartCount)
		}
	}
	pod, ok := o.Newest()
	if !ok {
		return job
	}
	job.Node = pod.Spec.NodeName
	if started := pod.Status.StartTime; started != nil {
		job.StartTime = words.Time(started.Time)
	}
	if end := checkresult.Terminated(o.Check, pod.Pod); end != nil {
		job.ExitCode = &end.ExitCode
		job.StartTime, job.CompletionTime = words.Time(end.StartedAt.Time), words.Time(end.FinishedAt.Time)
	}
	return job
}

// unknown ends a check that is inconclusive.
func unknown(o Observation, why cause) Classification {
	return done(o, finding.Unknown(why.reason, "%s", why.detail).Remedy("%s", why.remedy).Do(why.actions...))
}

// tolerate waits until the timeout of the cause has passed.
func tolerate(o Observation, why cause) Classification {
	classified := why.waiting()
	if why.timeout == untilDeadline {
		classified.Idle = o.neverRan()
		return classified
	}
	waited := time.Duration(0)
	if o.Reason.String() == why.reason.String() {
		waited = o.Waited
	}
	if waited >= why.timeout {
		return unknown(o, why)
	}
	classified.Recheck = why.timeout - waited
	return classified
}

// expired ends the check at the deadline of the run, with its last state.
func expired(o Observation, classified Classification) Classification {
	why := classified.cause
	detail := classified.Detail
	if pod, ok := o.Newest(); ok && o.logOf(pod) != nil {
		if lines := checkresult.Tail(string(o.Log.Text)); lines != "" {
			detail = checkresult.Sentence(detail+"; last log lines", lines)
		}
	}
	if o.APIErrors != "" {
		detail += "; requests to the API server fail: " + words.Line(o.APIErrors, checkresult.MaxLine)
	}
	if why.reason == (finding.Reason{}) {
		why.reason = collector.ReasonTimeout
	}
	if why.remedy == "" {
		why.remedy, why.actions = "Run the preflight again with a longer timeout.", []finding.Action{finding.Retry(finding.OptionTimeout)}
	}
	why.detail = "timed out: " + detail
	return unknown(o, why)
}

// NotStarted ends a check that was queued at the deadline of the run: for the first time, or again after waiting.
func (o Observation) NotStarted(waiting Classification) Classification {
	if waiting.Reason != (finding.Reason{}) {
		return expired(o, waiting)
	}
	return unknown(o, cause{
		reason: launch.ReasonNotStarted, detail: "timed out: the check waited for other checks to finish, and was not started",
		remedy:  "Run the preflight again with a longer timeout or a higher parallelism.",
		actions: []finding.Action{finding.Retry(finding.OptionTimeout), finding.Retry(finding.OptionParallelism)},
	})
}

var (
	reasonNotProvided = finding.NewReason("NotProvided", finding.Explanation{
		Meaning: "The image of the component has no check.",
		Cause:   "The image has no /bin/preflight, and the manifest does not promise a result.",
	})
	reasonBinaryMissing = finding.NewReason("BinaryMissing", finding.Explanation{
		Meaning: "The image of the check does not contain the program that its manifest names.",
		Cause:   "The release is defective.",
		Remedy:  "Report it to the owners of the check.",
	})
	reasonNotExecutable = finding.NewReason("NotExecutable", finding.Explanation{
		Meaning: "The program of the check cannot be executed.",
		Cause:   "The file is not executable, or was built for another architecture.",
		Remedy:  "Report it to the owners of the check.",
	})
)

const preflightBinary = "/bin/preflight"

// startFailure classifies a program that the runtime could not execute, which a
// retry cannot fix. An image may lack /bin/preflight, as the enhancement allows,
// unless its manifest promises a result.
func startFailure(o Observation, pod Pod) (Classification, bool) {
	message, final := startError(o.Check, pod)
	if message == "" {
		return Classification{}, false
	}
	command := command(o.Check)
	missing := strings.Contains(message, command) &&
		(strings.Contains(message, "no such file or directory") || strings.Contains(message, "not found"))
	switch {
	case missing && strings.HasPrefix(command, preflightBinary) && !o.Check.Framed:
		return done(o, finding.Skipped(gap.Proven("the error of the container runtime"), reasonNotProvided,
			"component %q has no check: its image has no %s", o.Check.Component, command)), true
	case missing:
		return unknown(o, cause{
			reason: reasonBinaryMissing,
			detail: checkresult.Sentence("the image does not have the program of the check", message), remedy: reportDefect,
		}), true
	case !final:
		return Classification{}, false
	}
	return unknown(o, cause{
		reason: reasonNotExecutable, detail: checkresult.Sentence("the program of the check cannot be executed", message),
		remedy: reportDefect,
	}), true
}

// startError is the runtime's error message for the check's container. With
// containerd the container terminates with reason StartError, with CRI-O it is
// waiting; only the former is final for the pod.
func startError(check jobplan.Check, pod Pod) (message string, final bool) {
	current := checkresult.Status(check, pod.Pod)
	if current == nil {
		return "", false
	}
	if end := current.State.Terminated; end != nil && (end.Reason == "StartError" || end.Reason == "ContainerCannotRun") {
		return words.Line(end.Message, checkresult.MaxLine), true
	}
	if waiting := current.State.Waiting; waiting != nil &&
		(waiting.Reason == "CreateContainerError" || waiting.Reason == "RunContainerError") {
		return words.Line(waiting.Message, checkresult.MaxLine), false
	}
	return "", false
}

// command is the program of the check. A manifest without one uses the image's,
// which the enhancement requires to be /bin/preflight.
func command(check jobplan.Check) string {
	containers := check.Job.Spec.Template.Spec.Containers
	if len(containers) > 0 && len(containers[0].Command) > 0 {
		return containers[0].Command[0]
	}
	return preflightBinary
}
