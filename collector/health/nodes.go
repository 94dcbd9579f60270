package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const ReasonNoNodes finding.Reason = "NoNodes"

const (
	// configState and configReason are what the machine-config-daemon says of
	// its node (machine-config-operator pkg/daemon/constants).
	configState  = "machineconfiguration.openshift.io/state"
	configReason = "machineconfiguration.openshift.io/reason"
)

// Nodes looks for nodes that are not ready, cordoned, short of memory, disk or
// process IDs, or that the machine-config-daemon cannot update: one finding for
// each of these, however many nodes there are. A node that is cordoned because
// it is being updated only warns.
func Nodes() check.Check {
	return check.Check{
		Name: "NodeHealth", Kind: finding.SourceHealth,
		Reads: []access.Request{check.List("", "nodes"), check.Get("config.openshift.io", "infrastructures", "", "cluster")},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			nodes, err := s.Cluster.Nodes(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not list the nodes: %w", err)
			}
			topology, err := s.Cluster.Topology(ctx)
			if err != nil {
				return judgeNodes(nodes, nodeDefects()), fmt.Errorf("could not read the Infrastructure \"cluster\": %w", err)
			}
			switch {
			case len(nodes) == 0:
				return noNodes(topology), nil
			case topology == snapshot.SelfManaged:
				return judgeNodes(nodes, append(nodeDefects(), unmanaged())), nil
			}
			return judgeNodes(nodes, nodeDefects()), nil
		},
	}
}

func noNodes(topology snapshot.Topology) []finding.Finding {
	if topology != snapshot.SelfManaged {
		return []finding.Finding{finding.Skipped(ReasonNoNodes, "the cluster has no nodes, so there is none to look at")}
	}
	return []finding.Finding{finding.Unknown(ReasonNoNodes, "the cluster runs its own control plane, but the API server knows no nodes").
		Remedy("See whether nodes come back: oc get nodes; oc get certificatesigningrequests")}
}

// defect is something that may be wrong with a node.
type defect struct {
	name, reason string
	outcome      preflight.Outcome
	// are says it of several nodes.
	are         string
	remediation string
	// of says whether a node has the defect, and what there is to say of it.
	of func(*corev1.Node) (detail string, has bool)
}

func judgeNodes(nodes []corev1.Node, defects []defect) []finding.Finding {
	var findings []finding.Finding
	for _, defect := range defects {
		if f, ok := defect.judge(nodes); ok {
			findings = append(findings, f)
		}
	}
	if len(findings) == 0 && len(nodes) > 0 {
		return []finding.Finding{finding.Pass(ReasonAsExpected,
			"all nodes, %d of them, are ready, take pods and have enough memory, disk and process IDs", len(nodes))}
	}
	return findings
}

// judge names the first few nodes that have the defect, and counts the others.
func (d defect) judge(nodes []corev1.Node) (finding.Finding, bool) {
	f := finding.Finding{Finding: preflight.Finding{
		Name:        d.name,
		Outcome:     d.outcome,
		Reason:      d.reason,
		Remediation: d.remediation,
	}}
	var named []string
	count := 0
	for i := range nodes {
		detail, has := d.of(&nodes[i])
		if !has {
			continue
		}
		if count++; count > maxNamed {
			continue
		}
		name := nodes[i].Name
		f.Objects = append(f.Objects, preflight.Object{APIVersion: "v1", Kind: "Node", Name: name})
		if detail != "" {
			name += " (" + detail + ")"
		}
		named = append(named, name)
	}
	f.Message = fmt.Sprintf("of %d nodes, %d %s: %s", len(nodes), count, d.are, someOf(named, count))
	return f, count > 0
}

func nodeDefects() []defect {
	const describe = "See what is wrong with each: oc describe node NAME"
	return []defect{
		{"NodesNotReady", "NotReady", preflight.Fail, "not ready", describe, notReady},
		{
			"NodesNotReported", "NoReadyCondition", preflight.Unknown, "without the condition Ready, so nobody can tell how they are",
			"See whether the kubelet runs, then: oc describe node NAME", notReported,
		},
		{
			"NodesCordoned", "Cordoned", preflight.Fail, "cordoned, and not by the machine-config-operator, so what is drained from others cannot go there",
			"Let each take pods again: oc adm uncordon NAME", cordoned,
		},
		pressure("NodesMemoryPressure", "short of memory", corev1.NodeMemoryPressure, corev1.TaintNodeMemoryPressure),
		pressure("NodesDiskPressure", "short of disk space", corev1.NodeDiskPressure, corev1.TaintNodeDiskPressure),
		pressure("NodesPIDPressure", "short of process IDs", corev1.NodePIDPressure, corev1.TaintNodePIDPressure),
		{
			"NodesPressureUnknown", "PressureNotReported", preflight.Unknown, "ready, but do not say whether they are short of memory, disk or process IDs",
			describe, pressureUnknown,
		},
		{
			"NodesDegraded", "MachineConfigDegraded", preflight.Fail, "in a state in which the machine-config-daemon does not update them",
			"See what the daemon of each complains about: oc get nodes -o wide; oc get machineconfigpools; " +
				"oc -n openshift-machine-config-operator logs -l k8s-app=machine-config-daemon -c machine-config-daemon", configDegraded,
		},
		{
			"NodesUpdating", "PoolUpdating", preflight.Warn, "being updated by the machine-config-operator now: their pool is updating",
			"Wait until it is done: oc get machineconfigpools", func(node *corev1.Node) (string, bool) {
				return node.Annotations[configState], updating(node)
			},
		},
	}
}

// unmanaged is the defect of a node that the machine-config-daemon has not
// looked at. It does not look after Windows.
func unmanaged() defect {
	return defect{
		"NodesNotManaged", "NoMachineConfigState", preflight.Unknown, "without a word from the machine-config-daemon, so nobody can tell whether it can update them",
		"See whether the daemon runs on each: oc -n openshift-machine-config-operator get pods -l k8s-app=machine-config-daemon -o wide",
		func(node *corev1.Node) (string, bool) {
			return "", node.Annotations[configState] == "" && node.Labels[corev1.LabelOSStable] != string(corev1.Windows)
		},
	}
}

func notReady(node *corev1.Node) (string, bool) {
	ready := nodeCondition(node, corev1.NodeReady)
	if ready.Status == "" || ready.Status == corev1.ConditionTrue {
		return "", false
	}
	detail := fmt.Sprintf("Ready=%s %s", ready.Status, short(cmp.Or(ready.Message, ready.Reason)))
	if updating(node) {
		detail += "; it is being updated"
	}
	return detail, true
}

func notReported(node *corev1.Node) (string, bool) {
	return "", nodeCondition(node, corev1.NodeReady).Status == ""
}

func cordoned(node *corev1.Node) (string, bool) {
	if !node.Spec.Unschedulable || updating(node) {
		return "", false
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeUnschedulable && taint.TimeAdded != nil {
			return "since " + taint.TimeAdded.UTC().Format(time.RFC3339), true
		}
	}
	return "", true
}

// pressure is the defect that a condition tells of, or the taint that keeps
// pods away for it.
func pressure(name, are string, kind corev1.NodeConditionType, taint string) defect {
	return defect{
		name, string(kind), preflight.Fail, are,
		"See what uses it up on each: oc describe node NAME; oc adm top nodes", func(node *corev1.Node) (string, bool) {
			if condition := nodeCondition(node, kind); condition.Status == corev1.ConditionTrue {
				return short(condition.Message), true
			}
			tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint && t.Effect == corev1.TaintEffectNoSchedule })
			return "it has the taint " + taint, tainted
		},
	}
}

// pressureUnknown is about ready nodes: of others nothing is known.
func pressureUnknown(node *corev1.Node) (string, bool) {
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
		return short(state + ": " + cmp.Or(node.Annotations[configReason], "it does not say why")), true
	}
}

// updating says that the machine-config-daemon is at work on the node, which it
// cordons for that.
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
