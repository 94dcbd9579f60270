package jobs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
)

const (
	// grace is how long to put up with what may pass by itself: a registry that
	// has no time, a quota that another pod is about to free.
	grace = 90 * time.Second
	// settleTime is how far the watch on pods may be behind that on Jobs.
	settleTime = 5 * time.Second
	// toTheEnd is the patience with what is worth waiting for until the time is
	// up.
	toTheEnd = time.Duration(-1)

	defect = "This is a defect of the check: report it to its owners."
)

// obstacle is what keeps a check from an answer.
type obstacle struct {
	// cause is a CamelCase word, detail a clause for people.
	cause, detail string
	remedy        string
	// patience is how long it may last; 0 is not at all.
	patience time.Duration
}

// held waits as long as there is patience with the obstacle.
func (o Observation) held(why obstacle) Reading {
	reading := Reading{State: Waiting, Detail: why.detail, Cause: why.cause, remedy: why.remedy}
	if why.patience == toTheEnd {
		return reading
	}
	waited := time.Duration(0)
	if o.Cause == why.cause {
		waited = o.Waited
	}
	if waited >= why.patience {
		return o.unknown(why)
	}
	reading.Recheck = why.patience - waited
	return reading
}

// doing says what the last attempt was about when it came to an end.
func (o Observation) doing() string {
	pod, ok := o.newest()
	if !ok {
		return o.unborn().detail
	}
	return o.underway(pod).Detail
}

// underway is about a Job whose last pod has not answered.
func (o Observation) underway(pod Pod) Reading {
	if why := o.failure(pod); why != nil {
		why.detail += "; the Job tries again"
		why.patience = toTheEnd
		return o.held(*why)
	}
	if why, ok := o.inTheWay(pod); ok {
		return o.held(why)
	}
	current := status(o.Check, pod)
	switch {
	case pod.Gone:
		return Reading{State: Waiting, Detail: "its pod is gone, and another one has not been seen yet"}
	case current != nil && current.State.Running != nil:
		return Reading{State: Running, Detail: "the check is running"}
	case ending(o.Check, pod) != nil:
		end := ending(o.Check, pod)
		return Reading{
			State: Waiting, Cause: "AttemptFailed", remedy: "Put right what the check says, or run the preflight again with a longer --timeout.",
			Detail: sentence(fmt.Sprintf("attempt %d ended with exit code %d, and the Job has not given up", o.job().Attempts, end.ExitCode), words(end, o.logOf(pod))),
		}
	case pod.Spec.NodeName == "":
		return Reading{State: Waiting, Detail: "its pod waits for the scheduler", Cause: "Unscheduled", remedy: "See whether the scheduler runs: oc -n openshift-kube-scheduler get pods"}
	}
	return Reading{State: Waiting, Detail: "its container is being created on node " + pod.Spec.NodeName}
}

// failure is why an attempt ended without any fault of the check; nil when it
// did not.
func (o Observation) failure(pod Pod) *obstacle {
	if why := disruption(pod); why != nil {
		return why
	}
	for _, container := range pod.Status.InitContainerStatuses {
		if end := container.State.Terminated; end != nil && end.ExitCode != 0 {
			return &obstacle{
				cause:  "InitFailed",
				detail: sentence(fmt.Sprintf("init container %q ended with exit code %d", container.Name, end.ExitCode), tail(end.Message)),
				remedy: fmt.Sprintf("Put right what it says, or report it to the owners of component %q.", o.Check.Component),
			}
		}
	}
	main := ending(o.Check, pod)
	for _, container := range pod.Status.ContainerStatuses {
		if end := container.State.Terminated; end != nil && end.ExitCode != 0 && main != nil && main.ExitCode == 0 {
			return &obstacle{
				cause:  "ContainerFailed",
				detail: sentence(fmt.Sprintf("container %q, beside the check, ended with exit code %d", container.Name, end.ExitCode), tail(end.Message)),
				remedy: defect,
			}
		}
	}
	return nil
}

// disruption is why a pod was put to an end by the cluster: an eviction, a
// drain, a preemption, a node that is lost. Not counted as an attempt by the
// Jobs we start (podFailurePolicy).
func disruption(pod Pod) *obstacle {
	remedy := "Wait until nodes are neither drained nor short of resources, then run the preflight again: oc get nodes"
	if pod.Status.Reason == "Evicted" {
		return &obstacle{cause: "Evicted", remedy: remedy, detail: sentence("its pod was evicted from node "+pod.Spec.NodeName, line(pod.Status.Message, maxLine))}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return &obstacle{
				cause: "Disrupted", remedy: remedy,
				detail: sentence("its pod was put to an end by "+condition.Reason, line(condition.Message, maxLine)),
			}
		}
	}
	return nil
}

// interrupted is true for a pod that did not come to its own end.
func interrupted(pod Pod) bool {
	return pod.DeletionTimestamp != nil || disruption(pod) != nil
}

// inTheWay is what keeps a pod from running.
func (o Observation) inTheWay(pod Pod) (obstacle, bool) {
	if pod.Gone {
		return obstacle{}, false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return obstacle{
				cause: "Unschedulable", patience: toTheEnd,
				detail: sentence("no node takes its pod", line(condition.Message, maxLine)),
				remedy: "Make room on a node that the check may run on, or have its nodes back: oc get nodes",
			}, true
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, container := range statuses {
			if waiting := container.State.Waiting; waiting != nil {
				if why, ok := o.containerWaits(container.Name, container.Image, waiting); ok {
					return why, true
				}
			}
		}
	}
	return o.notCreated(pod)
}

// containerWaits knows the reasons of pkg/kubelet/images/types.go,
// pkg/kubelet/container/sync_result.go and kuberuntime's.
func (o Observation) containerWaits(name, image string, waiting *corev1.ContainerStateWaiting) (obstacle, bool) {
	message := line(waiting.Message, maxLine)
	switch waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		return imagePull(image, waiting.Reason, message), true
	case "CreateContainerConfigError":
		return containerConfig(name, message), true
	case "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError", "PostStartHookError":
		return obstacle{
			cause: "ContainerError", patience: grace, remedy: defect,
			detail: sentence(fmt.Sprintf("container %q cannot be started", name), message),
		}, true
	}
	return obstacle{}, false
}

// imagePull tells what will not get better from what may: registries that are
// down or have no time are given some.
func imagePull(image, reason, message string) obstacle {
	why := obstacle{
		cause: "ImagePull", patience: grace,
		detail: sentence(fmt.Sprintf("image %q cannot be pulled (%s)", line(image, maxLine), reason), message),
		remedy: "See whether the node reaches the registry, or its mirror, and whether the pull secret is good for it: oc get secret/pull-secret -n openshift-config; oc get imagedigestmirrorsets",
	}
	permanent := map[string]bool{"InvalidImageName": true, "ErrImageNeverPull": true, "SignatureValidationFailed": true}
	text := strings.ToLower(message)
	for _, sign := range []string{
		"not found", "manifest unknown", "name unknown", "unauthorized", "authorization failed", "authentication required",
		"access denied", "requested access to the resource is denied", "forbidden", "no match for platform", "no image found in",
	} {
		permanent[reason] = permanent[reason] || strings.Contains(text, sign)
	}
	if permanent[reason] {
		why.patience = 0
	}
	return why
}

// containerConfig is about ConfigMaps and Secrets that a container's
// environment names, and security contexts that contradict the image.
func containerConfig(name, message string) obstacle {
	why := obstacle{
		cause: "ContainerConfig", patience: grace,
		detail: sentence(fmt.Sprintf("container %q cannot be configured", name), message),
		remedy: "Put right what the message names, then run the preflight again.",
	}
	switch {
	case missingObject(message):
		why.cause, why.patience = "ConfigMissing", 0
		why.remedy = "The release expects what the message names to be in the cluster already: create it, then run the preflight again."
	case strings.Contains(message, "runAsNonRoot"), strings.Contains(message, "couldn't find key"):
		why.patience = 0
	}
	return why
}

func missingObject(message string) bool {
	return strings.Contains(message, "not found") && (strings.Contains(message, "configmap") || strings.Contains(message, "secret"))
}

// notCreated is what events say about a pod whose containers are not there.
func (o Observation) notCreated(pod Pod) (obstacle, bool) {
	if current := status(o.Check, pod); current != nil && current.State.Waiting == nil {
		return obstacle{}, false
	}
	warning := o.warning("Pod", pod.Name)
	if warning == nil {
		return obstacle{}, false
	}
	message := line(warning.Message, maxLine)
	switch warning.Reason {
	case "FailedMount", "FailedAttachVolume":
		why := obstacle{
			cause: "VolumeNotReady", detail: sentence("a volume of its pod cannot be mounted", message), patience: toTheEnd,
			remedy: "Put right what the message names, then run the preflight again.",
		}
		if missingObject(message) {
			why = containerConfig(mainContainer(o.Check), message)
			why.detail = sentence("a volume of its pod cannot be mounted", message)
		}
		return why, true
	case "FailedCreatePodSandBox", "NetworkNotReady":
		return obstacle{
			cause: "SandboxFailed", detail: sentence("the network of its pod cannot be set up", message), patience: toTheEnd,
			remedy: "See whether node and network are well: oc get nodes; oc get clusteroperator network",
		}, true
	}
	return obstacle{}, false
}

// unborn is about a Job without a pod.
func (o Observation) unborn() obstacle {
	warning := o.warning("Job", o.Check.Job.Name)
	switch {
	case warning != nil && warning.Reason == "FailedCreate":
		return o.podRefused(line(warning.Message, maxLine))
	case o.Job == nil:
		return obstacle{cause: "JobNotSeen", detail: "the API server has not shown the Job yet", patience: toTheEnd, remedy: "See whether the API server is well: oc get --raw /readyz?verbose"}
	}
	return obstacle{
		cause: "PodNotCreated", detail: "the Job has no pod yet", patience: toTheEnd,
		remedy: "See whether the Job controller runs: oc -n openshift-kube-controller-manager get pods",
	}
}

// podRefused sorts the API server's answers to the Job controller. They differ
// in their text only.
func (o Observation) podRefused(message string) obstacle {
	namespace := o.Check.Job.Namespace
	why := obstacle{cause: "PodNotCreated", detail: sentence("the pod of the Job is refused", message), remedy: "Put right what the message names, then run the preflight again."}
	switch {
	case strings.Contains(message, "exceeded quota"), strings.Contains(message, "failed quota"):
		why.cause, why.patience = "QuotaExceeded", grace
		why.remedy = fmt.Sprintf("Make room in the quota of the namespace: oc -n %s describe quota", namespace)
	case strings.Contains(message, "serviceaccount") && strings.Contains(message, "not found"):
		why.cause = "ServiceAccountMissing"
		why.remedy = fmt.Sprintf("The release expects the ServiceAccount to be in the cluster already. See: oc -n %s get serviceaccounts", namespace)
	case strings.Contains(message, "violates PodSecurity"):
		why.cause = "PodSecurity"
		why.remedy = fmt.Sprintf("The namespace allows less than the check asks for: oc get namespace %s --show-labels. Report it to the owners of component %q.", namespace, o.Check.Component)
	case strings.Contains(message, "security context constraint"):
		why.cause = "SecurityContextConstraints"
		why.remedy = fmt.Sprintf("No SCC that the check's account may use allows what it asks for. Report it to the owners of component %q.", o.Check.Component)
	case strings.Contains(message, "failed calling webhook"), strings.Contains(message, "Internal error"):
		why.patience = grace
		why.remedy = "See whether the admission webhook that the message names is well."
	case strings.Contains(message, "denied"):
		why.cause = "AdmissionDenied"
		why.remedy = "See the policy or webhook that the message names: oc get validatingadmissionpolicies,validatingwebhookconfigurations"
	case !strings.Contains(message, "forbidden") && !strings.Contains(message, "invalid"):
		why.patience = grace
	}
	return why
}

// warning is the last one about an object.
func (o Observation) warning(kind, name string) *corev1.Event {
	for _, event := range slices.Backward(o.Warnings) {
		if event.InvolvedObject.Kind == kind && event.InvolvedObject.Name == name {
			return event
		}
	}
	return nil
}

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
		return o.done(preflight.Finding{
			Outcome: preflight.Skipped, Reason: "NotProvided",
			Message: fmt.Sprintf("component %q has no check: its image has no %s", o.Check.Component, command),
		}), true
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
		return line(end.Message, maxLine), true
	}
	if waiting := current.State.Waiting; waiting != nil && (waiting.Reason == "CreateContainerError" || waiting.Reason == "RunContainerError") {
		return line(waiting.Message, maxLine), false
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

func outOfMemory(container string) obstacle {
	return obstacle{
		cause:  reasonOOM,
		detail: fmt.Sprintf("container %q was killed because it ran out of memory", container),
		remedy: "Report it to the owners of the check: it needs a higher memory limit. If the node was short of memory, make room and run the preflight again.",
	}
}

func badResult(problem string) obstacle {
	return obstacle{cause: "BadResult", detail: sentence("the result that the check left cannot be used", line(problem, maxLine)), remedy: defect}
}

func (o Observation) noResult(exitCode int32) obstacle {
	detail := fmt.Sprintf("the check ended with exit code %d%s and left no final result", exitCode, o.attempts())
	if o.Log != nil && o.Log.Problem != "" {
		detail += "; its log could not be read: " + line(o.Log.Problem, maxLine)
	}
	return obstacle{cause: "NoResult", detail: detail, remedy: defect}
}
