package requirement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// Attempt is the data that one attempt left.
type Attempt struct {
	// Findings are the findings that a preflight would report.
	Findings []finding.Finding
	// End is the terminated state of the check's container; nil if it is not known.
	End *corev1.ContainerStateTerminated
	// running is true when it was still running.
	running bool
	// Stopped is true when the kubelet stopped it.
	Stopped bool
	// signal is the stop signal, if the kubelet reports it.
	signal corev1.Signal
	// message is the frame in the termination message, with the error of parsing it.
	message      preflight.Result
	messageError error
	// flooded is true when the log has more than maxLog bytes.
	flooded bool
	// Answered is true when the check itself wrote the final result.
	Answered bool
}

// final is true when the check ended with a result that its exit
// code matches. Without a declared frame the exit code is the result.
func (a Attempt) final(check jobplan.Check, log []byte) bool {
	run := check.Job.Labels[label.Run]
	for _, data := range [][]byte{[]byte(a.End.Message), log} {
		result, err := preflight.ParseFrame(data)
		if err == nil && result.RunID == run && result.Agrees(int(a.End.ExitCode)) {
			return true
		}
	}
	framed := check.Framed || a.messageError == nil || !errors.Is(a.messageError, preflight.ErrNoFrame)
	return !framed && a.End.ExitCode < 126 // exit codes from 126 mean signals and failed starts
}

// Took is how long the ended check ran.
func (a Attempt) Took() time.Duration { return a.End.FinishedAt.Sub(a.End.StartedAt.Time) }

// killed reports whether SIGKILL ended the check.
func (a Attempt) killed() bool { return a.End != nil && a.End.ExitCode == 137 }

// Replaces reports whether a second attempt counts instead of a first one in which the check passed although it was
// stopped: the check finishes by itself, or its end is unknown.
func (a Attempt) Replaces() bool { return a.End == nil || !a.Stopped && a.Passed() }

// Logged returns the attempt of an ended check with what its log adds.
func (a Attempt) Logged(check jobplan.Check, log []byte) Attempt {
	a.flooded = len(log) > MaxLog
	a.Answered = a.final(check, log)
	return a
}

// Observe returns the observations from the pod of a check; Logged adds its log.
func Observe(check jobplan.Check, pod corev1.Pod) Attempt {
	status := CheckStatus(check, pod)
	left := Attempt{running: status.State.Running != nil, End: cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)}
	if status.StopSignal != nil {
		left.signal = *status.StopSignal
	}
	if left.End != nil {
		left.message, left.messageError = preflight.ParseFrame([]byte(left.End.Message))
		left.Stopped = pod.Status.Reason == "DeadlineExceeded" && !left.End.FinishedAt.Time.Before(deadline(pod))
	}
	return left
}

// deadline is when the kubelet stops a pod. All times are by the kubelet's clock: a
// check may end by itself before, and the kubelet notice it after.
func deadline(pod corev1.Pod) time.Time {
	if pod.Status.StartTime == nil || pod.Spec.ActiveDeadlineSeconds == nil {
		return time.Time{}
	}
	return pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
}

// CheckStatus is the status of the check's container; zero without one.
func CheckStatus(check jobplan.Check, pod corev1.Pod) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == check.Job.Spec.Template.Spec.Containers[0].Name {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

// Result is the result of one requirement for one check.
type Result struct {
	// Check is the name of the check, as a preflight would report it; the name of
	// the file if a manifest cannot be read.
	Check string `json:"check"`
	// Requirement is one CamelCase word, stable between releases.
	Requirement string `json:"requirement"`
	// Outcome is Unknown when the cluster prevented the test, and Skipped when the requirement does not apply.
	Outcome     preflight.Outcome `json:"outcome"`
	Reason      string            `json:"reason"`
	Message     string            `json:"message"`
	Remediation string            `json:"remediation,omitempty"`
}

func (r Result) asWarning() Result {
	r.Outcome = preflight.Warn
	return r
}

func pass(format string, args ...any) Result {
	return Result{Outcome: preflight.Pass, Reason: reasonConforms.String(), Message: fmt.Sprintf(format, args...)}
}

func skip(reason finding.Reason, format string, args ...any) Result {
	return Result{Outcome: preflight.Skipped, Reason: reason.String(), Message: fmt.Sprintf(format, args...)}
}

func fail(reason finding.Reason, remedy, format string, args ...any) Result {
	return Result{Outcome: preflight.Fail, Reason: reason.String(), Message: fmt.Sprintf(format, args...), Remediation: remedy}
}

const (
	// reasonTimeout is the reason of runner/jobs and of the SDK for a check that ran until its deadline.
	reasonTimeout    = "Timeout"
	reasonCheckError = "CheckError"
	// kubeletBytes is the limit of a kubelet for a termination message.
	kubeletBytes = 4096
)

var _ = catalog.Reasons("A check ends with an error.", `
CheckError | The program of the check failed. | Fix the check.`)

// failure is the result of an attempt without a final result of the check, as a preflight reports it.
func (a Attempt) failure() Result {
	if len(a.Findings) == 0 {
		return Result{
			Outcome: preflight.Unknown, Reason: reasonNoFinding.String(), Message: "the end of the check was not observed",
			Remediation: "Run the conformance test again.",
		}
	}
	f := a.Findings[0]
	result := Result{Outcome: preflight.Unknown, Reason: f.Reason, Message: f.Message, Remediation: f.Remediation}
	if remedy, ok := defects()[f.Reason]; ok && (f.Reason != reasonTimeout || a.running) {
		result.Outcome, result.Remediation = preflight.Fail, remedy
	}
	if a.End != nil && a.messageError != nil && len(a.End.Message) >= kubeletBytes {
		result.Message += fmt.Sprintf("; its termination message has %d bytes, the limit of a kubelet", len(a.End.Message))
	}
	return result
}

// defects are the reasons of runner/jobs that are defects of the check, each
// with its remedy. All others are caused by the cluster.
func defects() map[string]string {
	const result = "Write the result as the SDK does: link preflight.Main, or follow WIRE.md."
	return map[string]string{
		"NoResult":        "Write the final result in the first process before it ends; its children are killed with it. " + result,
		"BadResult":       result,
		"Contradiction":   "End with the exit code of the result. " + result,
		"Killed":          "Find out what killed the check: it must exit by itself.",
		"OOMKilled":       "Use less memory, or raise the limit in the manifest.",
		"NotProvided":     "Install the program at the path in the manifest, by default /bin/preflight.",
		"BinaryMissing":   "Install the program at the path in the manifest, by default /bin/preflight.",
		"NotExecutable":   "Build the program for linux, statically linked, and make it executable.",
		"ContainerConfig": "Match image and security context: build the image with a numeric user other than root.",
		reasonTimeout:     "End before PREFLIGHT_DEADLINE, also while waiting.",
		"AttemptFailed":   result,
		"Failed":          result,
	}
}

func (a Attempt) reason() string {
	if len(a.Findings) == 0 {
		return ""
	}
	return a.Findings[0].Reason
}

// outcomes are the findings without messages: names with outcomes and reasons.
func (a Attempt) outcomes() string {
	sorted := slices.SortedFunc(slices.Values(a.Findings), func(x, y finding.Finding) int { return cmp.Compare(x.Name, y.Name) })
	var texts []string
	for _, f := range sorted {
		texts = append(texts, fmt.Sprintf("%s %s (%s)", f.Name, f.Outcome, f.Reason))
	}
	return strings.Join(texts, ", ")
}

// Passed is true when there are findings and all of them pass.
func (a Attempt) Passed() bool {
	return len(a.Findings) > 0 && !slices.ContainsFunc(a.Findings, func(f finding.Finding) bool { return f.Outcome != preflight.Pass })
}

// unended is the result when the node did not stop the check.
func (a Attempt) unended() (Result, bool) {
	switch {
	case a.End == nil && a.running:
		return Result{
			Outcome: preflight.Unknown, Reason: reasonNotTried.String(), Message: "the node did not stop it before " +
				"the end of the test",
			Remediation: "Run the conformance test again with a longer timeout.",
		}, true
	case a.End == nil:
		return a.failure(), true
	case !a.Stopped:
		return a.tooFast(), true
	}
	return Result{}, false
}

// tooFast is the result when the check ended before the node could stop it, or at the same time.
func (a Attempt) tooFast() Result {
	return skip(reasonTooFast, "it exited by itself, with exit code %d, before it could be stopped", a.End.ExitCode)
}

var (
	reasonConforms = finding.NewReason("Conforms", finding.Explanation{
		Meaning: "The check meets a requirement.",
		Cause:   "The check conforms.",
	})
	reasonMayWrite = finding.NewReason("MayWrite", finding.Explanation{
		Meaning: "The account of a check has write access.",
		Cause:   "A role of the account grants verbs other than get, list and watch.",
		Remedy:  "Give the check its own annotated ServiceAccount, with read-only roles.",
	})
	reasonAPIUnavailable = finding.NewReason("APIUnavailable", finding.Explanation{
		Meaning: "Write access of an account to an API group could not be determined.",
		Cause:   "The API server does not currently serve the group.",
		Remedy:  "Check the API services: oc get apiservices.",
	})
	reasonNotFramed = finding.NewReason("NotFramed", finding.Explanation{
		Meaning: "The Job does not declare a framed result.",
		Cause:   "The annotation preflight.openshift.io/result: framed is missing.",
		Remedy:  "Link the SDK, or write the result as WIRE.md specifies, and set the annotation.",
	})
	reasonInconclusive = finding.NewReason("Inconclusive", finding.Explanation{
		Meaning: "The check is Unknown on this cluster.",
		Cause:   "The check needs something that this cluster does not have, or it is defective.",
		Remedy:  "Run it on a cluster where it reaches a conclusion.",
	})
	reasonInvalidCheck = finding.NewReason("InvalidCheck", finding.Explanation{
		Meaning: "The SDK rejects the declaration of a check.",
		Cause:   "A name, rule or prerequisite of the check is invalid.",
		Remedy:  "Correct the declaration as described in the message.",
	})
	reasonInvalidArguments = finding.NewReason("InvalidArguments", finding.Explanation{
		Meaning: "The program rejects its arguments.",
		Cause:   "The command of the container does not match the program.",
		Remedy:  "Correct the command in the manifest.",
	})
	reasonNotFinished = finding.NewReason("NotFinished", finding.Explanation{
		Meaning: "The check exits without a final result.",
		Cause:   "The check terminates its own process.",
		Remedy:  "Return from the check instead of exiting the process.",
	})
	reasonNeverEnds = finding.NewReason("NeverEnds", finding.Explanation{
		Meaning: "The check runs past its deadline.",
		Cause:   "The check ignores its context.",
		Remedy:  "End before PREFLIGHT_DEADLINE: use the context that Run receives.",
	})
	reasonNotTried = finding.NewReason("NotTried", finding.Explanation{
		Meaning: "A requirement could not be tested.",
		Cause:   "The check left no result to compare with, or a busy node did not stop it before the test ended.",
		Remedy:  "Fix the other violations first, or run the conformance test again with a longer timeout.",
	})
	reasonSlow = finding.NewReason("Slow", finding.Explanation{
		Meaning: "The check takes longer than a minute.",
		Cause:   "The check sends too many requests one after another.",
		Remedy:  "Send fewer requests, or send them concurrently.",
	})
	reasonTooMuchOutput = finding.NewReason("TooMuchOutput", finding.Explanation{
		Meaning: "The log of a check exceeds the limit.",
		Cause:   "The check logs too much.",
		Remedy:  "Log only what an administrator needs.",
	})
	reasonPassesWhenKilled = finding.NewReason("PassesWhenKilled", finding.Explanation{
		Meaning: "A killed check counts as passed.",
		Cause:   "The check reports Pass before it is complete.",
		Remedy:  "Link preflight.Main, or follow WIRE.md.",
	})
	reasonNothingLeft = finding.NewReason("NothingLeft", finding.Explanation{
		Meaning: "A killed check leaves no result.",
		Cause:   "The check does not report that it is running.",
		Remedy:  "Link preflight.Main, or follow WIRE.md.",
	})
	reasonIgnoresSIGTERM = finding.NewReason("IgnoresSIGTERM", finding.Explanation{
		Meaning: "The check does not exit after SIGTERM.",
		Cause:   "The program ignores SIGTERM.",
		Remedy:  "Exit on SIGTERM: link preflight.Main, or follow WIRE.md.",
	})
	reasonPassesWhenTerminated = finding.NewReason("PassesWhenTerminated", finding.Explanation{
		Meaning: "A terminated check counts as passed.",
		Cause:   "The check reports Pass before it is complete.",
		Remedy:  "Report Unknown on SIGTERM.",
	})
	reasonNotIdempotent = finding.NewReason("NotIdempotent", finding.Explanation{
		Meaning: "Two runs of a check report different outcomes.",
		Cause:   "The result depends on the time of day or on an earlier run.",
		Remedy:  "Report the same result for the same cluster.",
	})
	reasonMessageVaries = finding.NewReason("MessageVaries", finding.Explanation{
		Meaning: "Two runs of a check report different messages.",
		Cause:   "The message contains times, counters or unsorted lists.",
		Remedy:  "Report the same message for the same cluster.",
	})
	reasonRunsAsRoot = finding.NewReason("RunsAsRoot", finding.Explanation{
		Meaning: "The image of a check runs as root.",
		Cause:   "The image does not set a numeric user.",
		Remedy:  "Build the image with a numeric user other than root, such as USER 65532.",
	})
	reasonNeedsRoot = finding.NewReason("NeedsRoot", finding.Explanation{
		Meaning: "The check reports a different result when it does not run as root.",
		Cause:   "The check needs root privileges.",
		Remedy:  "Build the image for a user other than root.",
	})
	reasonWritesToFilesystem = finding.NewReason("WritesToFilesystem", finding.Explanation{
		Meaning: "The check reports a different result on a read-only file system.",
		Cause:   "The check writes files.",
		Remedy:  "Do not write files, or mount an emptyDir.",
	})
	reasonTooMuchMemory = finding.NewReason("TooMuchMemory", finding.Explanation{
		Meaning: "The check exceeds the memory limit.",
		Cause:   "The check holds too many objects in memory.",
		Remedy:  "List in pages, and keep only what is needed.",
	})
	reasonOverBudget = finding.NewReason("OverBudget", finding.Explanation{
		Meaning: "The result exceeds PREFLIGHT_RESULT_BYTES.",
		Cause:   "The program ignores this limit.",
		Remedy:  "Link preflight.Main, or follow WIRE.md.",
	})
	reasonResultLost = finding.NewReason("ResultLost", finding.Explanation{
		Meaning: "The result is lost when PREFLIGHT_RESULT_BYTES is small.",
		Cause:   "The program does not print the complete result to standard output.",
		Remedy:  "Link preflight.Main, or follow WIRE.md.",
	})
	reasonNoAccess = finding.NewReason("NoAccess", finding.Explanation{
		Meaning: "The manifest grants its check no access.",
		Cause:   "The check does not use the API server.",
	})
	reasonFailsOpen = finding.NewReason("FailsOpen", finding.Explanation{
		Meaning: "The check passes without an API server.",
		Cause:   "The check ignores failed requests.",
		Remedy:  "Return the error of every request.",
	})
	reasonNoFinding = finding.NewReason("NoFinding", finding.Explanation{
		Meaning: "The end of a check was not observed.",
		Cause:   "The pod was deleted during the run.",
		Remedy:  "Run the conformance test again.",
	})
	reasonTooFast = finding.NewReason("TooFast", finding.Explanation{
		Meaning: "The check finished before it could be stopped.",
		Cause:   "The check is fast.",
	})
)
