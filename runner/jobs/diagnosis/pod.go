package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/jobs/checkresult"
)

var (
	reasonUnschedulable = finding.NewReason("Unschedulable", finding.Explanation{
		Meaning: "The pod of the check cannot be scheduled on any node.",
		Cause:   "No node has enough resources, or matches the constraints of the pod.",
		Remedy:  "Free resources on a node that the pod may run on, or add nodes: `oc get nodes`.",
	})
	reasonNoSchedulableNode = finding.NewReason("NoSchedulableNode", finding.Explanation{
		Meaning: "All nodes on which the pod of the check may run are cordoned, or the cluster has no nodes.",
		Cause:   "An administrator or an update cordoned all nodes, or a hosted cluster has no NodePool.",
		Remedy:  "Make a node schedulable, or add one: `oc adm uncordon NODE`.",
	})
	reasonImagePull = finding.NewReason("ImagePull", finding.Explanation{
		Meaning: "The image of the check cannot be pulled.",
		Cause: "The registry or its mirror is unreachable, the image does not exist there, or the pull secret does " +
			"not grant access.",
		Remedy: "Check the pull secret with `oc get secret/pull-secret -n openshift-config` and the mirrors with `oc get " +
			"imagedigestmirrorsets`.",
	})
	reasonContainerError = finding.NewReason("ContainerError", finding.Explanation{
		Meaning: "The container runtime cannot create the container of the check.",
		Cause:   "The message contains the error of the container runtime.",
		Remedy:  "Report it to the owners of the check.",
	})
	reasonContainerConfig = finding.NewReason("ContainerConfig", finding.Explanation{
		Meaning: "The kubelet cannot configure the container of the check.",
		Cause:   "A key of a ConfigMap or Secret is missing, or the security context contradicts the image.",
		Remedy:  "Fix the problem in the message, then run the preflight again.",
	})
	reasonConfigMissing = finding.NewReason("ConfigMissing", finding.Explanation{
		Meaning: "The check refers to a missing ConfigMap or Secret.",
		Cause:   "The release expects the object to exist in the cluster.",
		Remedy:  "Create the object that the message names, then run the preflight again.",
	})
	reasonVolumeNotReady = finding.NewReason("VolumeNotReady", finding.Explanation{
		Meaning: "A volume of the check cannot be mounted.",
		Cause:   "The storage or the node is failing; the message contains the cause.",
		Remedy:  "Fix the problem in the message, then run the preflight again.",
	})
	reasonSandboxFailed = finding.NewReason("SandboxFailed", finding.Explanation{
		Meaning: "The network of the check's pod cannot be set up.",
		Cause:   "The message contains the error of the network plugin.",
		Remedy:  "Check the nodes and the network: `oc get nodes` and `oc get clusteroperator network`.",
	})
)

// podBlocked is the cause for a pod that cannot run; false if none is reported.
func podBlocked(o Observation, pod Pod) (cause, bool) {
	if pod.Gone {
		return cause{}, false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return unschedulable(words.Line(condition.Message, checkresult.MaxLine)), true
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, container := range statuses {
			if waiting := container.State.Waiting; waiting != nil {
				if why, ok := containerWaiting(container.Name, container.Image, waiting); ok {
					return why, true
				}
			}
		}
	}
	return podNotSetUp(o, pod)
}

// unschedulable is the cause for a message of the scheduler. A node with resources may become
// free, and an autoscaler may add one; but a cordon is not lifted by waiting.
func unschedulable(message string) cause {
	why := cause{
		reason: reasonUnschedulable, timeout: untilDeadline,
		detail:  checkresult.Sentence("its pod cannot be scheduled", message),
		remedy:  "Free resources on a node that the pod may run on, or add nodes.",
		actions: []finding.Action{finding.Read("oc get nodes")},
	}
	if strings.HasPrefix(message, noNodes) {
		why.reason, why.timeout = reasonNoSchedulableNode, TransientTimeout
		why.detail = "its pod cannot be scheduled: the cluster has no node"
		why.remedy = "Add a node; to a hosted cluster, a NodePool."
	}
	if allCordoned(message) {
		why.reason, why.timeout = reasonNoSchedulableNode, TransientTimeout
		why.detail = checkresult.Sentence("every node that its pod may run on is cordoned", message)
		why.remedy = "Make a node schedulable with `oc adm uncordon NODE`, then run the preflight again. While an " +
			"update drains nodes, wait until it has finished."
	}
	return why
}

// noNodes begins the message of the scheduler in a cluster without nodes (Kubernetes pkg/scheduler,
// ErrNoNodesAvailable).
const noNodes = "no nodes available to schedule pods"

// allCordoned is true for a message of the scheduler, such as "0/3 nodes are available: 1 node(s)
// had untolerated taint {node-role.kubernetes.io/master: }, 2 node(s) were unschedulable.", with
// a cordoned node and no reason that ends by itself (Kubernetes pkg/scheduler/framework/types.go,
// and the plugins nodeunschedulable, tainttoleration and nodeaffinity). Since 1.37 a message does
// not name the taint: a node that becomes ready then may come too late for the check, which is
// Unknown.
func allCordoned(message string) bool {
	_, reasons, ok := strings.Cut(message, " nodes are available: ")
	if !ok || !strings.HasPrefix(message, "0/") {
		return false
	}
	reasons, _, _ = strings.Cut(reasons, ". ")
	some := false
	for reason := range strings.SplitSeq(strings.TrimSuffix(reasons, "."), ", ") {
		_, what, _ := strings.Cut(reason, " ")
		cordoned := what == "node(s) were unschedulable"
		if !cordoned && !stays(what) {
			return false
		}
		some = some || cordoned
	}
	return some
}

// stays is true for a reason that waiting does not change. Kubernetes removes taints of
// node.kubernetes.io and of the cloud provider by itself.
func stays(reason string) bool {
	switch {
	case strings.Contains(reason, "{node.kubernetes.io/"), strings.Contains(reason, "{node.cloudprovider.kubernetes.io/"):
		return false
	}
	return strings.HasPrefix(reason, "node(s) had untolerated taint") ||
		strings.HasPrefix(reason, "node(s) didn't match Pod's node affinity/selector") ||
		strings.HasPrefix(reason, "node(s) didn't satisfy plugin")
}

// containerWaiting classifies the reasons of pkg/kubelet/images/types.go,
// pkg/kubelet/container/sync_result.go and pkg/kubelet/kuberuntime.
func containerWaiting(name, image string, waiting *corev1.ContainerStateWaiting) (cause, bool) {
	message := words.Line(waiting.Message, checkresult.MaxLine)
	switch waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable",
		"SignatureValidationFailed":
		return imagePull(image, waiting.Reason, message), true
	case "CreateContainerConfigError":
		return containerConfig(name, message), true
	case "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError", "PostStartHookError":
		return cause{
			reason: reasonContainerError, timeout: TransientTimeout, remedy: reportDefect,
			detail: checkresult.Sentence(fmt.Sprintf("container %q cannot be started", name), message),
		}, true
	}
	return cause{}, false
}

// imagePull distinguishes permanent from transient errors. A message may have
// both, about a mirror and about its source; it is transient then.
func imagePull(image, reason, message string) cause {
	why := cause{
		reason: reasonImagePull, timeout: TransientTimeout,
		detail: checkresult.Sentence(fmt.Sprintf("image %q cannot be pulled (%s)", words.Line(image, checkresult.MaxLine), reason), message),
		remedy: "Check that the node reaches the registry or its mirror, and that the pull secret grants access to it.",
		actions: []finding.Action{
			finding.Read("oc get secret/pull-secret -n openshift-config"), finding.Read("oc get imagedigestmirrorsets"),
		},
	}
	text := strings.ToLower(message)
	contains := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	switch {
	case slices.Contains([]string{"InvalidImageName", "ErrImageNeverPull", "SignatureValidationFailed"}, reason):
		why.timeout = 0
	case contains("too many requests", "toomanyrequests", "qps exceeded", "timeout", "timed out", "deadline exceeded", "connection refused",
		"connection reset", "unexpected eof", "no such host", "server misbehaving", "no route to host", "network is unreachable",
		"service unavailable", "bad gateway", "internal server error", "received unexpected http status: 5"):
	case contains("not found", "manifest unknown", "name unknown", "unauthorized", "authorization failed", "authentication required",
		"access denied", "requested access to the resource is denied", "forbidden", "no match for platform", "no image found in"):
		why.timeout = 0
	}
	return why
}

// containerConfig is about the ConfigMaps and Secrets of a container's
// environment, and a security context that contradicts the image.
func containerConfig(name, message string) cause {
	why := cause{
		reason: reasonContainerConfig, timeout: TransientTimeout,
		detail: checkresult.Sentence(fmt.Sprintf("container %q cannot be configured", name), message), remedy: fixMessage,
	}
	switch {
	case missingObject(message):
		why.reason, why.timeout = reasonConfigMissing, 0
		why.remedy = "Create the object in the message, which the release expects to exist, then run the preflight again."
	case strings.Contains(message, "runAsNonRoot"), strings.Contains(message, "couldn't find key"):
		why.timeout = 0
	}
	return why
}

// missingObject is true for a missing ConfigMap or Secret that an administrator must create. A controller publishes the
// objects that every namespace has (Kubernetes' root-ca-certificate-publisher, OpenShift's service-ca).
func missingObject(message string) bool {
	for _, published := range []string{`"kube-root-ca.crt"`, `"openshift-service-ca.crt"`} {
		if strings.Contains(message, published) {
			return false
		}
	}
	return strings.Contains(message, "not found") && (strings.Contains(message, "configmap") || strings.Contains(message, "secret"))
}

// podNotSetUp is the cause, from events, for a pod without running containers.
func podNotSetUp(o Observation, pod Pod) (cause, bool) {
	if current := checkresult.Status(o.Check, pod.Pod); current != nil && current.State.Waiting == nil {
		return cause{}, false
	}
	warning := o.warning("Pod", pod.Name)
	if warning == nil {
		return cause{}, false
	}
	message := words.Line(warning.Message, checkresult.MaxLine)
	switch warning.Reason {
	case "FailedMount", "FailedAttachVolume":
		why := cause{reason: reasonVolumeNotReady, timeout: untilDeadline, remedy: fixMessage}
		if missingObject(message) {
			why = containerConfig(checkresult.MainContainer(o.Check), message)
		}
		why.detail = checkresult.Sentence("a volume of its pod cannot be mounted", message)
		return why, true
	case "FailedCreatePodSandBox", "NetworkNotReady":
		return cause{
			reason: reasonSandboxFailed, detail: checkresult.Sentence("the network of its pod cannot be set up", message), timeout: untilDeadline,
			remedy:  "Check the nodes and the network.",
			actions: []finding.Action{finding.Read("oc get nodes"), finding.Read("oc get clusteroperator network")},
		}, true
	}
	return cause{}, false
}

// PullFailure is why a node cannot pull an image.
type PullFailure struct {
	// Detail is a clause about the cause, Remedy an imperative sentence.
	Detail, Remedy string
	Actions        []finding.Action
	// Final is true when a retry cannot succeed.
	Final bool
}

// FailedPull returns why the image of a container cannot be pulled; false if no failure is reported.
func FailedPull(container corev1.ContainerStatus) (PullFailure, bool) {
	if container.State.Waiting == nil {
		return PullFailure{}, false
	}
	why, ok := containerWaiting(container.Name, container.Image, container.State.Waiting)
	if !ok || why.reason != reasonImagePull {
		return PullFailure{}, false
	}
	return PullFailure{Detail: why.detail, Remedy: why.remedy, Actions: why.actions, Final: why.timeout == 0}, true
}
