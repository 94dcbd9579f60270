package order

import (
	corev1 "k8s.io/api/core/v1"
)

// Annotations of the machine-config-daemon on nodes (machine-config-operator
// pkg/daemon/constants).
const (
	currentConfig = "machineconfiguration.openshift.io/currentConfig"
	desiredConfig = "machineconfiguration.openshift.io/desiredConfig"
	daemonState   = "machineconfiguration.openshift.io/state"
)

// Unavailability is why MCO takes a node for unavailable.
type Unavailability string

// The reasons (machine-config-operator pkg/controller/node, layered_node_state.go).
const (
	Available   Unavailability = ""
	NotReady    Unavailability = "NotReady"
	Cordoned    Unavailability = "Cordoned"
	Pressure    Unavailability = "Pressure"
	Configuring Unavailability = "Configuring"
)

// StateOf is why a node is unavailable: not ready, unschedulable for any reason, with pressure
// on its disk or without network, or in the middle of a configuration.
func StateOf(node *corev1.Node) Unavailability {
	if node.Spec.Unschedulable {
		return Cordoned
	}
	ready := false
	for i := range node.Status.Conditions {
		condition := &node.Status.Conditions[i]
		switch condition.Type { //nolint:exhaustive // MCO reads no other condition
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
	state := node.Annotations[daemonState]
	if node.Annotations[currentConfig] != node.Annotations[desiredConfig] || (state != "" && state != "Done") {
		return Configuring
	}
	return Available
}

// managed reports whether the machine-config-daemon runs on a node: MCO updates no other.
func managed(node *corev1.Node) bool {
	return node.Annotations[desiredConfig] != "" || node.Annotations[currentConfig] != ""
}
