package jobs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/words"
	corev1 "k8s.io/api/core/v1"
)

const causeImagePull = "ImagePull"

// inTheWay is what keeps a pod from running.
func (o Observation) inTheWay(pod Pod) (obstacle, bool) {
	if pod.Gone {
		return obstacle{}, false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return obstacle{
				cause: "Unschedulable", patience: toTheEnd,
				detail: sentence("no node takes its pod", words.Line(condition.Message, maxLine)),
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
	message := words.Line(waiting.Message, maxLine)
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
// down or have no time are given some. A message may have both, about a mirror
// and about its source; then there is hope.
func imagePull(image, reason, message string) obstacle {
	why := obstacle{
		cause: causeImagePull, patience: grace,
		detail: sentence(fmt.Sprintf("image %q cannot be pulled (%s)", words.Line(image, maxLine), reason), message),
		remedy: "See whether the node reaches the registry, or its mirror, and whether the pull secret is good for it: oc get secret/pull-secret -n openshift-config; oc get imagedigestmirrorsets",
	}
	text := strings.ToLower(message)
	says := func(signs ...string) bool {
		return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(text, sign) })
	}
	switch {
	case slices.Contains([]string{"InvalidImageName", "ErrImageNeverPull", "SignatureValidationFailed"}, reason):
		why.patience = 0
	case says("too many requests", "toomanyrequests", "qps exceeded", "timeout", "timed out", "deadline exceeded", "connection refused",
		"connection reset", "unexpected eof", "no such host", "server misbehaving", "no route to host", "network is unreachable",
		"service unavailable", "bad gateway", "internal server error", "received unexpected http status: 5"):
	case says("not found", "manifest unknown", "name unknown", "unauthorized", "authorization failed", "authentication required",
		"access denied", "requested access to the resource is denied", "forbidden", "no match for platform", "no image found in"):
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

// missingObject is true for a ConfigMap or Secret that somebody has to create.
// Those that every namespace has are there as soon as a controller gets to a new
// namespace (Kubernetes' root-ca-certificate-publisher, OpenShift's service-ca).
func missingObject(message string) bool {
	for _, published := range []string{`"kube-root-ca.crt"`, `"openshift-service-ca.crt"`} {
		if strings.Contains(message, published) {
			return false
		}
	}
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
	message := words.Line(warning.Message, maxLine)
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
