package diagnosis

import (
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/jobs/checkresult"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

var (
	reasonNotProvided = finding.NewReason("NotProvided", finding.Explanation{
		Meaning: "Reported for a component whose image has no check.",
		Cause:   "The image has no /bin/preflight, and the manifest does not promise a result.",
	})
	reasonBinaryMissing = finding.NewReason("BinaryMissing", finding.Explanation{
		Meaning: "Reported for a check whose image does not have the program that its manifest names.",
		Cause:   "A defect of the release.",
		Remedy:  "Report it to the owners of the check.",
	})
	reasonNotExecutable = finding.NewReason("NotExecutable", finding.Explanation{
		Meaning: "Reported for a check whose program cannot be executed.",
		Cause:   "The file is not executable, or built for another architecture.",
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
	missing := strings.Contains(message, command) && (strings.Contains(message, "no such file or directory") || strings.Contains(message, "not found"))
	switch {
	case missing && strings.HasPrefix(command, preflightBinary) && !o.Check.Framed:
		return done(o, finding.Skipped(gap.Proven("the error of the container runtime"), reasonNotProvided, "component %q has no check: its image has no %s", o.Check.Component, command)), true
	case missing:
		return unknown(o, cause{reason: reasonBinaryMissing, detail: checkresult.Sentence("the image does not have the program of the check", message), remedy: reportDefect}), true
	case !final:
		return Classification{}, false
	}
	return unknown(o, cause{reason: reasonNotExecutable, detail: checkresult.Sentence("the program of the check cannot be executed", message), remedy: reportDefect}), true
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
	if waiting := current.State.Waiting; waiting != nil && (waiting.Reason == "CreateContainerError" || waiting.Reason == "RunContainerError") {
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
