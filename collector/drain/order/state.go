package order

import (
	corev1 "k8s.io/api/core/v1"
)

// Annotations of the machine-config-daemon on nodes (machine-config-operator pkg/daemon/constants).
const (
	currentConfig = "machineconfiguration.openshift.io/currentConfig"
	desiredConfig = "machineconfiguration.openshift.io/desiredConfig"
	currentImage  = "machineconfiguration.openshift.io/currentImage"
	desiredImage  = "machineconfiguration.openshift.io/desiredImage"
	daemonState   = "machineconfiguration.openshift.io/state"
)

// Unavailability is why MCO takes a node for unavailable.
type Unavailability string

// The reasons (machine-config-operator pkg/controller/common/layered_node_state.go).
const (
	Available Unavailability = ""
	NotReady  Unavailability = "NotReady"
	Cordoned  Unavailability = "Cordoned"
	Pressure  Unavailability = "Pressure"
	// Configuring is a node that is being updated, and returns by itself: also one that is cordoned or not
	// ready for that.
	Configuring Unavailability = "Configuring"
	// Degraded is a node whose daemon failed, although it has the desired configuration. A node that failed to apply
	// another configuration is available: MCO gives it the configuration of the update.
	Degraded Unavailability = "Degraded"
)

// States of the daemon (machine-config-operator pkg/daemon/constants).
const (
	stateDone           = "Done"
	stateWorking        = "Working"
	stateRebooting      = "Rebooting"
	stateDegraded       = "Degraded"
	stateUnreconcilable = "Unreconcilable"
)

// StateOf is why a node is unavailable: in the middle of a configuration, not ready, unschedulable for any
// reason, with pressure on its disk or without network.
func StateOf(node *corev1.Node) Unavailability {
	if configuring(node) {
		return Configuring
	}
	if node.Spec.Unschedulable {
		return Cordoned
	}
	ready := false
	for i := range node.Status.Conditions {
		condition := &node.Status.Conditions[i]
		switch condition.Type { //nolint:exhaustive // MCO ignores other conditions
		case corev1.NodeReady:
			ready = condition.Status == corev1.ConditionTrue
		case corev1.NodeDiskPressure, corev1.NodeNetworkUnavailable:
			if condition.Status != corev1.ConditionFalse {
				return Pressure
			}
		default:
		}
	}
	if !ready {
		return NotReady
	}
	if state := node.Annotations[daemonState]; state != "" && state != stateDone && configured(node) {
		return Degraded
	}
	return Available
}

// configuring reports whether the daemon of a node applies a configuration, or is to do so, and has not failed.
func configuring(node *corev1.Node) bool {
	switch node.Annotations[daemonState] {
	case stateWorking, stateRebooting:
		return true
	case stateDegraded, stateUnreconcilable:
		return false
	}
	return !configured(node)
}

func configured(node *corev1.Node) bool {
	return node.Annotations[currentConfig] == node.Annotations[desiredConfig] &&
		node.Annotations[currentImage] == node.Annotations[desiredImage]
}

// managed reports whether the machine-config-daemon runs on a node: MCO updates no other.
func managed(node *corev1.Node) bool {
	return node.Annotations[desiredConfig] != "" || node.Annotations[currentConfig] != ""
}
