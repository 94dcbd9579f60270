package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	nameNodeHealth = finding.NewName("NodeHealth",
		"Checks for nodes that are not ready, are cordoned, are short of memory, disk space or process IDs, or cannot be updated by "+
			"the machine-config-daemon. Each of these problems has a finding with the first few nodes. A node that is cordoned while "+
			"it is being updated is a warning. It concerns every update.")

	reasonNoNodes = finding.NewReason("NoNodes", finding.Explanation{
		Meaning: "The cluster has no nodes.",
		Cause:   "A hosted cluster can be scaled to zero. On a cluster with its own control plane, the nodes were deleted.",
		Remedy:  "Check whether nodes register again: `oc get certificatesigningrequests`.",
	})
	reasonNotReady = finding.NewReason("NotReady", finding.Explanation{
		Meaning: "Nodes are not ready.",
		Cause:   "The kubelet reports an error, or has stopped reporting its status.",
		Remedy:  "Fix the cause in the message: `oc describe node NAME`.",
	})
	reasonNoReadyCondition = finding.NewReason("NoReadyCondition", finding.Explanation{
		Meaning: "Nodes have no condition Ready, so their state is unknown.",
		Cause:   "The kubelet has never run.",
		Remedy:  "Check that the kubelet is running: `oc describe node NAME`.",
	})
	reasonCordoned = finding.NewReason("Cordoned", finding.Explanation{
		Meaning: "Nodes are cordoned while the machine-config-daemon is not updating them, so pods drained from other nodes cannot be " +
			"scheduled there.",
		Cause:  "An administrator or a tool cordoned the nodes, not the machine-config-operator.",
		Remedy: "Uncordon the nodes: `oc adm uncordon NAME`.",
	})
	reasonDrainIncomplete = finding.NewReason("DrainIncomplete", finding.Explanation{
		Meaning: "The machine-config-operator cordoned nodes and has not completed their drain or uncordon, while the " +
			"machine-config-daemon reports no update in progress, for instance because it is degraded.",
		Cause: "A drain cannot complete, or the machine-config-controller is not running.",
		Remedy: "Do not uncordon the nodes, which undoes the drain. Fix what blocks it: `oc -n openshift-machine-config-operator logs " +
			"-l k8s-app=machine-config-controller -c machine-config-controller`.",
	})
	reasonUpdateIncomplete = finding.NewReason("NodeUpdateIncomplete", finding.Explanation{
		Meaning: "The machine-config-operator drained nodes, but the machine-config-daemon neither updates them nor has requested to " +
			"uncordon them.",
		Cause: "The update of the node failed after its drain, or the daemon is not running.",
		Remedy: "Do not uncordon the nodes, because their update is not complete. Fix the cause that the daemon reports: `oc -n " +
			"openshift-machine-config-operator logs -l k8s-app=machine-config-daemon -c machine-config-daemon`.",
	})
	reasonMemoryPressure = finding.NewReason("MemoryPressure", finding.Explanation{
		Meaning: "Nodes are short of memory, so pods are evicted and none are scheduled there.",
		Cause:   "The pods on the nodes use too much memory.",
		Remedy:  "Check what uses the memory: `oc adm top nodes`.",
	})
	reasonDiskPressure = finding.NewReason("DiskPressure", finding.Explanation{
		Meaning: "Nodes are short of disk space, so pods are evicted and none are scheduled there.",
		Cause:   "Images, logs or volumes use too much disk space.",
		Remedy:  "Check what uses the disk space: `oc describe node NAME`.",
	})
	reasonPIDPressure = finding.NewReason("PIDPressure", finding.Explanation{
		Meaning: "Nodes are short of process IDs, so pods are evicted and none are scheduled there.",
		Cause:   "The pods on the nodes have too many processes.",
		Remedy:  "Check what starts the processes: `oc describe node NAME`.",
	})
	reasonPressureNotReported = finding.NewReason("PressureNotReported", finding.Explanation{
		Meaning: "Ready nodes do not report whether they are short of memory, disk space or process IDs.",
		Cause:   "A condition of the nodes is absent or Unknown.",
		Remedy:  "Check the conditions of the nodes: `oc describe node NAME`.",
	})
	reasonMachineConfigDegraded = finding.NewReason("MachineConfigDegraded", finding.Explanation{
		Meaning: "Nodes are in a state in which the machine-config-daemon does not update them.",
		Cause:   "The daemon failed to apply a configuration; the message contains its reason.",
		Remedy: "Fix the cause in the message: `oc -n openshift-machine-config-operator logs -l k8s-app=machine-config-daemon -c " +
			"machine-config-daemon`.",
	})
	reasonPoolUpdating = finding.NewReason("PoolUpdating", finding.Explanation{
		Meaning: "Nodes are being updated.",
		Cause:   "An earlier update or a configuration change is rolling out.",
		Remedy:  "Wait until the pools are updated: `oc get machineconfigpools`.",
	})
	reasonNoMachineConfigState = finding.NewReason("NoMachineConfigState", finding.Explanation{
		Meaning: "Nodes do not report a state of the machine-config-daemon, so whether it can update them is unknown.",
		Cause:   "The daemon has never run on the nodes.",
		Remedy: "Check that the daemon is running on each node: `oc -n openshift-machine-config-operator get pods -l " +
			"k8s-app=machine-config-daemon -o wide`.",
	})

	reasonNodesHeld = finding.NewReason("NodesHeldByProgram", finding.Explanation{
		Meaning: "A program other than the machine-config-operator drains or reboots nodes, or has paused their pool.",
		Cause: "An operator such as the SR-IOV operator, or a reboot manager, changes the nodes. An annotation of the node says so " +
			"with the value drain, reboot or pause.",
		Remedy:  "Wait until that program has finished, and read its log if it does not. Do not unpause the pool before.",
		Command: "oc describe node NAME",
	})

	nameNodesNotReady        = reasonNotReady.Names("NodesNotReady")
	nameNodesNotReported     = reasonNoReadyCondition.Names("NodesNotReported")
	nameNodesCordoned        = reasonCordoned.Names("NodesCordoned")
	nameNodesDraining        = reasonDrainIncomplete.Names("NodesDraining")
	nameNodesDrained         = reasonUpdateIncomplete.Names("NodesDrained")
	nameNodesPressureUnknown = reasonPressureNotReported.Names("NodesPressureUnknown")
	nameNodesDegraded        = reasonMachineConfigDegraded.Names("NodesDegraded")
	nameNodesHeld            = reasonNodesHeld.Names("NodesHeld")
	nameNodesUpdating        = reasonPoolUpdating.Names("NodesUpdating")
	nameNodesNotManaged      = reasonNoMachineConfigState.Names("NodesNotManaged")
	nameNodesMemoryPressure  = reasonMemoryPressure.Names("NodesMemoryPressure")
	nameNodesDiskPressure    = reasonDiskPressure.Names("NodesDiskPressure")
	nameNodesPIDPressure     = reasonPIDPressure.Names("NodesPIDPressure")
)

const (
	// configState and configReason are annotations of the machine-config-daemon on its
	// node (machine-config-operator pkg/daemon/constants).
	configState  = "machineconfiguration.openshift.io/state"
	configReason = "machineconfiguration.openshift.io/reason"
	// desiredDrain is the annotation by which the daemon requests a drain or an
	// uncordon of its node, and appliedDrain the last of these requests that the
	// machine-config-controller has completed. Their values are the prefixes, followed
	// by the name of a configuration.
	desiredDrain   = "machineconfiguration.openshift.io/desiredDrain"
	appliedDrain   = "machineconfiguration.openshift.io/lastAppliedDrain"
	drainPrefix    = "drain-"
	uncordonPrefix = "uncordon-"
)

// Nodes is the check NodeHealth.
func Nodes() check.Check {
	return check.Check{
		Name: nameNodeHealth, Kind: finding.SourceHealth,
		Reads: append(check.ReadsTopology(), check.List("", "nodes")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			ctx, missing := gap.Watch(ctx)
			nodes, err := s.Cluster.Nodes(ctx)
			if err == nil && len(nodes) == 0 {
				err = missing.Err()
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the nodes: %w", err)
			}
			topology, err := s.Topology(ctx)
			if err != nil {
				return judgeNodes(gap.ExtentOf(ctx), nodes, nodeRules()), err
			}
			switch {
			case len(nodes) == 0:
				return noNodes(gap.ExtentOf(ctx), topology), nil
			case topology == snapshot.SelfManaged:
				return judgeNodes(gap.ExtentOf(ctx), nodes, append(nodeRules(), managedRule())), nil
			}
			return judgeNodes(gap.ExtentOf(ctx), nodes, nodeRules()), nil
		},
	}
}

func noNodes(read gap.Extent, topology snapshot.Topology) []finding.Finding {
	if topology != snapshot.SelfManaged {
		return []finding.Finding{finding.Skipped(read, reasonNoNodes, "the cluster has no nodes")}
	}
	return []finding.Finding{finding.Unknown(reasonNoNodes, "the cluster runs its own control plane, but the API server has no nodes").
		Remedy("Check whether nodes register again.").
		Do(finding.Read("oc get nodes"), finding.Read("oc get certificatesigningrequests"))}
}

type nodeRule struct {
	name      string
	reason    finding.Reason
	outcome   preflight.Outcome
	violation string
	remedy    string
	// actions are the steps of the remedy for nodes, by their names.
	actions func(nodes []string) []finding.Action
	// violatedBy returns a detail, which may be empty, of a node's violation.
	violatedBy func(*corev1.Node) (detail string, violated bool)
}

func judgeNodes(read gap.Extent, nodes []corev1.Node, rules []nodeRule) []finding.Finding {
	var findings []finding.Finding
	for _, rule := range rules {
		if f, violated := rule.evaluate(nodes); violated {
			findings = append(findings, f)
		}
	}
	if len(findings) == 0 && len(nodes) > 0 {
		return []finding.Finding{finding.Pass(read, check.ReasonAsExpected,
			"ready and schedulable, with enough memory, disk space and process IDs: %s", words.Count(len(nodes), "node"))}
	}
	return findings
}

// evaluate returns the finding about the nodes that violate the rule. The message names the first few.
func (r nodeRule) evaluate(nodes []corev1.Node) (finding.Finding, bool) {
	var names, details []string
	var objects []finding.Object
	for i := range nodes {
		detail, violated := r.violatedBy(&nodes[i])
		if !violated {
			continue
		}
		name := nodes[i].Name
		objects = append(objects, finding.Object{APIVersion: "v1", Kind: "Node", Name: name})
		if len(objects) > maxNamed {
			continue
		}
		names = append(names, name)
		if detail != "" {
			name += " (" + detail + ")"
		}
		details = append(details, name)
	}
	count := len(objects)
	if count == 0 {
		return finding.Finding{}, false
	}
	return finding.New(r.outcome, r.reason, "%d of %s %s: %s", count, words.Count(len(nodes), "node"), r.violation,
		words.ListOf(details, count)).
		Named(r.name).
		Remedy("%s", r.remedy).
		Do(r.actions(names)...).
		About(objects...), true
}

func nodeRules() []nodeRule {
	return []nodeRule{
		{
			name: nameNodesNotReady, reason: reasonNotReady, outcome: preflight.Fail, violation: "not ready",
			remedy: "Check what is wrong with each node.", actions: describeNodes, violatedBy: notReady,
		},
		{
			name: nameNodesNotReported, reason: reasonNoReadyCondition, outcome: preflight.Unknown,
			violation: "without the condition Ready, so their state is unknown",
			remedy:    "Check that the kubelet is running on each node.", actions: describeNodes, violatedBy: notReported,
		},
		{
			name: nameNodesCordoned, reason: reasonCordoned, outcome: preflight.Fail,
			violation: "cordoned, and not by the machine-config-operator, so pods drained from other nodes cannot be scheduled there",
			remedy:    "Uncordon the nodes.",
			actions: func(nodes []string) []finding.Action {
				return []finding.Action{finding.Change("oc adm uncordon %s", nodes)}
			},
			violatedBy: cordoned,
		},
		{
			name: nameNodesDraining, reason: reasonDrainIncomplete, outcome: preflight.Fail,
			violation:  "cordoned by the machine-config-operator, which has not completed the last request to drain or uncordon them",
			remedy:     "Do not uncordon the nodes, which undoes the drain. Fix what blocks it.",
			actions:    inspectDrains,
			violatedBy: beingDrained,
		},
		{
			name: nameNodesDrained, reason: reasonUpdateIncomplete, outcome: preflight.Fail,
			violation: "drained by the machine-config-operator, and neither updated nor uncordoned since",
			remedy:    "Do not uncordon the nodes. Fix the cause that the daemon of each node reports.",
			actions:   inspectDaemons, violatedBy: drained,
		},
		pressureRule(nameNodesMemoryPressure, "short of memory", reasonMemoryPressure, corev1.NodeMemoryPressure, corev1.TaintNodeMemoryPressure),
		pressureRule(nameNodesDiskPressure, "short of disk space", reasonDiskPressure, corev1.NodeDiskPressure, corev1.TaintNodeDiskPressure),
		pressureRule(nameNodesPIDPressure, "short of process IDs", reasonPIDPressure, corev1.NodePIDPressure, corev1.TaintNodePIDPressure),
		{
			name: nameNodesPressureUnknown, reason: reasonPressureNotReported, outcome: preflight.Unknown,
			violation: "ready, but not reporting whether they are short of memory, disk space or process IDs",
			remedy:    "Check the conditions of each node.", actions: describeNodes, violatedBy: pressureNotReported,
		},
		{
			name: nameNodesDegraded, reason: reasonMachineConfigDegraded, outcome: preflight.Fail,
			violation: "in a state in which the machine-config-daemon does not update them",
			remedy:    "Fix the cause that the daemon of each node reports.", actions: inspectDaemons, violatedBy: configDegraded,
		},
		{
			name: nameNodesUpdating, reason: reasonPoolUpdating, outcome: preflight.Warn,
			violation: "being updated by the machine-config-operator, since their pool is updating",
			remedy:    "Wait until the pools are updated.",
			actions:   func([]string) []finding.Action { return []finding.Action{finding.Read("oc get machineconfigpools")} },
			violatedBy: func(node *corev1.Node) (string, bool) {
				return node.Annotations[configState], updating(node)
			},
		},
		heldRule(),
	}
}

// heldRule is the rule that no other program drains or reboots a node.
func heldRule() nodeRule {
	return nodeRule{
		name: nameNodesHeld, reason: reasonNodesHeld, outcome: preflight.Warn,
		violation: "drained, rebooted or held by a program other than the machine-config-operator, according to an annotation",
		remedy: "Wait until that program has finished, and read its log if it does not. Do not uncordon the nodes, and do not unpause " +
			"their pool, before.",
		actions: describeNodes,
		violatedBy: func(node *corev1.Node) (string, bool) {
			by, state := snapshot.HeldBy(node)
			return by + " says " + state, by != ""
		},
	}
}

// managedRule is the rule that the machine-config-daemon runs on every node, except on Windows.
func managedRule() nodeRule {
	return nodeRule{
		name: nameNodesNotManaged, reason: reasonNoMachineConfigState, outcome: preflight.Unknown,
		violation: "without a state of the machine-config-daemon, so whether it can update them is unknown",
		remedy:    "Check that the daemon is running on each node.",
		actions: func([]string) []finding.Action {
			return []finding.Action{finding.Read("oc -n openshift-machine-config-operator get pods -l k8s-app=machine-config-daemon -o wide")}
		},
		violatedBy: func(node *corev1.Node) (string, bool) {
			return "", node.Annotations[configState] == "" && node.Labels[corev1.LabelOSStable] != string(corev1.Windows)
		},
	}
}

func describeNodes(nodes []string) []finding.Action {
	return []finding.Action{finding.Read("oc describe node %s", nodes)}
}

func inspectDaemons(nodes []string) []finding.Action {
	return []finding.Action{
		finding.Read("oc describe node %s", nodes),
		finding.Read("oc get machineconfigpools"),
		finding.Read("oc -n openshift-machine-config-operator logs -l k8s-app=machine-config-daemon -c machine-config-daemon"),
	}
}

func inspectDrains(nodes []string) []finding.Action {
	return append(describeNodes(nodes),
		finding.Read("oc -n openshift-machine-config-operator logs -l k8s-app=machine-config-controller -c machine-config-controller"))
}

func notReady(node *corev1.Node) (string, bool) {
	ready := nodeCondition(node, corev1.NodeReady)
	if ready.Status == "" || ready.Status == corev1.ConditionTrue {
		return "", false
	}
	detail := fmt.Sprintf("Ready=%s %s", ready.Status, words.Line(cmp.Or(ready.Message, ready.Reason), maxQuoted))
	if updating(node) {
		detail += "; it is being updated"
	}
	return detail, true
}

func notReported(node *corev1.Node) (string, bool) {
	return "", nodeCondition(node, corev1.NodeReady).Status == ""
}

func cordoned(node *corev1.Node) (string, bool) {
	if !node.Spec.Unschedulable || updating(node) || drainRequested(node) {
		return "", false
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeUnschedulable && taint.TimeAdded != nil {
			return "since " + words.Time(taint.TimeAdded.Time), true
		}
	}
	return "", true
}

// beingDrained is about cordoned nodes whose drain or uncordon the machine-config-operator has not
// completed. Those that it is updating have their own rule.
func beingDrained(node *corev1.Node) (string, bool) {
	if !node.Spec.Unschedulable || updating(node) || !drainRequested(node) ||
		node.Annotations[desiredDrain] == node.Annotations[appliedDrain] {
		return "", false
	}
	return fmt.Sprintf("requested %s, completed %s", words.Line(node.Annotations[desiredDrain], maxQuoted),
		words.Line(cmp.Or(node.Annotations[appliedDrain], "none"), maxQuoted)), true
}

// drained is about cordoned nodes whose drain is complete, and that the machine-config-daemon does not
// update: it requests the uncordon when the update of the node is complete.
func drained(node *corev1.Node) (string, bool) {
	if !node.Spec.Unschedulable || updating(node) || !drainRequested(node) ||
		node.Annotations[desiredDrain] != node.Annotations[appliedDrain] {
		return "", false
	}
	return fmt.Sprintf("%s is complete, the daemon is %s", words.Line(node.Annotations[desiredDrain], maxQuoted),
		cmp.Or(words.Line(node.Annotations[configState], maxQuoted), "without a state")), true
}

// drainRequested reports whether the machine-config-operator keeps the node cordoned: from the request of a drain
// until it has completed the request of an uncordon.
func drainRequested(node *corev1.Node) bool {
	desired := node.Annotations[desiredDrain]
	return strings.HasPrefix(desired, drainPrefix) ||
		(strings.HasPrefix(desired, uncordonPrefix) && desired != node.Annotations[appliedDrain])
}

// pressureRule is the rule that a condition is False, and that the taint which repels pods for it is absent.
func pressureRule(name, violation string, reason finding.Reason, kind corev1.NodeConditionType, taint string) nodeRule {
	return nodeRule{
		name: name, reason: reason, outcome: preflight.Fail, violation: violation,
		remedy: "Check what uses the resource on each node.",
		actions: func(nodes []string) []finding.Action {
			return append(describeNodes(nodes), finding.Read("oc adm top nodes"))
		},
		violatedBy: func(node *corev1.Node) (string, bool) {
			if condition := nodeCondition(node, kind); condition.Status == corev1.ConditionTrue {
				return words.Line(condition.Message, maxQuoted), true
			}
			tainted := slices.ContainsFunc(node.Spec.Taints,
				func(t corev1.Taint) bool { return t.Key == taint && t.Effect == corev1.TaintEffectNoSchedule })
			return "it has the taint " + taint, tainted
		},
	}
}

// pressureNotReported is about ready nodes: others report nothing.
func pressureNotReported(node *corev1.Node) (string, bool) {
	if nodeCondition(node, corev1.NodeReady).Status != corev1.ConditionTrue {
		return "", false
	}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		if status := nodeCondition(node, kind).Status; status != corev1.ConditionTrue && status != corev1.ConditionFalse {
			return string(kind), true
		}
	}
	return "", false
}

func configDegraded(node *corev1.Node) (string, bool) {
	switch state := node.Annotations[configState]; state {
	case "", "Done", "Working", "Rebooting":
		return "", false
	default:
		return words.Line(state+": "+cmp.Or(node.Annotations[configReason], "no reason given"), maxQuoted), true
	}
}

// updating reports whether the machine-config-daemon is updating the node, which it cordons for that.
func updating(node *corev1.Node) bool {
	state := node.Annotations[configState]
	return state == "Working" || state == "Rebooting"
}

// nodeCondition returns a condition; its status is empty where there is none.
func nodeCondition(node *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, condition := range node.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return corev1.NodeCondition{Type: kind}
}
