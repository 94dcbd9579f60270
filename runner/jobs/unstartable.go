package jobs

import (
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/launch"
)

const ReasonNotProvided finding.Reason = "NotProvided"

// unstartable is about a program that the runtime could not execute: no retry
// makes that better. The enhancement allows /bin/preflight to be missing from
// an image; one that was promised may not be.
func (o Observation) unstartable(pod Pod) (Reading, bool) {
	message, certain := startError(o.Check, pod)
	if message == "" {
		return Reading{}, false
	}
	command := command(o.Check)
	missing := strings.Contains(message, command) && (strings.Contains(message, "no such file or directory") || strings.Contains(message, "not found"))
	switch {
	case missing && strings.HasPrefix(command, preflightBinary) && !o.Check.Framed:
		return o.done(finding.Skipped(ReasonNotProvided, "component %q has no check: its image has no %s", o.Check.Component, command)), true
	case missing:
		return o.unknown(obstacle{cause: "BinaryMissing", detail: sentence("the image does not have the program of the check", message), remedy: defect}), true
	case !certain:
		return Reading{}, false
	}
	return o.unknown(obstacle{cause: "NotExecutable", detail: sentence("the program of the check cannot be executed", message), remedy: defect}), true
}

// startError is what the runtime said when it could not start the check's
// container. containerd has the container end with StartError, CRI-O has it
// wait; only the former is certain not to be tried again in the same pod.
func startError(check launch.Check, pod Pod) (message string, certain bool) {
	current := status(check, pod)
	if current == nil {
		return "", false
	}
	if end := current.State.Terminated; end != nil && (end.Reason == "StartError" || end.Reason == "ContainerCannotRun") {
		return words.Line(end.Message, maxLine), true
	}
	if waiting := current.State.Waiting; waiting != nil && (waiting.Reason == "CreateContainerError" || waiting.Reason == "RunContainerError") {
		return words.Line(waiting.Message, maxLine), false
	}
	return "", false
}

const preflightBinary = "/bin/preflight"

// command is the program of the check. Where the manifest names none it is the
// image's, which the enhancement wants to be /bin/preflight.
func command(check launch.Check) string {
	containers := check.Job.Spec.Template.Spec.Containers
	if len(containers) > 0 && len(containers[0].Command) > 0 {
		return containers[0].Command[0]
	}
	return preflightBinary
}
