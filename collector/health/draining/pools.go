package draining

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// pools are the pools that are drained. Those of a hosted cluster are NodePools.
type pools struct {
	all []order.Pool
	// limits are the times after which the nodes of NodePools are deleted, by node.
	limits map[string]time.Duration
}

func poolsOf(all []order.Pool) pools {
	found := pools{all: all, limits: map[string]time.Duration{}}
	for i := range all {
		for _, node := range all[i].Nodes {
			if all[i].Timeout > 0 {
				found.limits[node] = all[i].Timeout
			}
		}
	}
	return found
}

// limit is after what time a node is deleted although its drain has not ended; 0 for never.
func (p pools) limit(node string) time.Duration { return p.limits[node] }

func (p pools) kind(name string) string {
	if slices.ContainsFunc(p.all, func(pool order.Pool) bool { return pool.Name == name && pool.Unordered }) {
		return "NodePool"
	}
	return "MachineConfigPool"
}

// about names the pool in a finding, with the command to look at one that is in the cluster.
func (p pools) about(name string, f finding.Finding) finding.Finding {
	if p.kind(name) == "NodePool" {
		return f.About(finding.Object{APIVersion: "hypershift.openshift.io/v1beta1", Kind: "NodePool", Name: name})
	}
	return f.About(finding.Object{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: name}).
		Do(finding.Read("oc get machineconfigpool %s", name))
}

// daemonState is what the machine-config-daemon reports of its node (machine-config-operator
// pkg/daemon/constants). The check NodeHealth reports each state but this one.
const (
	daemonState = "machineconfiguration.openshift.io/state"
	stateDone   = "Done"
)

// unreached warns of nodes that this update does not reach: those of a paused pool, of several pools and of
// none, and those that get another configuration before it. Reported are the reasons that another check has.
func (r *rehearsed) unreached(reported ...order.Skip) []finding.Finding {
	type group struct {
		why  order.Skip
		pool string
	}
	nodes := map[group][]string{}
	var groups []group
	var objects []finding.Object
	for _, each := range r.read.Order.Skipped {
		key := group{why: each.Why, pool: each.Pool}
		if slices.Contains(reported, each.Why) || !r.concerns(each) {
			continue
		}
		if nodes[key] == nil {
			groups = append(groups, key)
		}
		nodes[key] = append(nodes[key], each.Node)
		objects = append(objects, finding.Object{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: each.Node})
	}
	if len(groups) == 0 {
		return nil
	}
	var texts []string
	for _, each := range groups {
		texts = append(texts, fmt.Sprintf("%s: %s", unreachedSince(each.why, each.pool), words.List(nodes[each], maxNamed)))
	}
	f := finding.Warn(reasonUnreached, "as of now, this update does not reach %s; %s", words.Count(len(objects), "node"), words.List(texts, maxNamed))
	if by := r.heldBy(objects); by != "" {
		f = f.Remedy("Wait until %s, which holds the nodes, has ended its work. If it does not, read its log.", by)
	}
	return []finding.Finding{f.Named(nameUnreached).
		Do(finding.Read("oc get machineconfigpools"), finding.Read("oc get nodes --show-labels")).
		About(objects...)}
}

// heldBy is the program that drains or reboots one of the nodes; empty for none.
func (r *rehearsed) heldBy(nodes []finding.Object) string {
	for i := range r.read.Cluster.Nodes {
		node := &r.read.Cluster.Nodes[i]
		if by, _ := snapshot.HeldBy(node); by != "" && slices.ContainsFunc(nodes, func(of finding.Object) bool { return of.Name == node.Name }) {
			return by
		}
	}
	return ""
}

// concerns reports whether the reason of a node is none that the check NodeHealth reports.
func (r *rehearsed) concerns(skipped order.Skipped) bool {
	at := slices.IndexFunc(r.read.Cluster.Nodes, func(node corev1.Node) bool { return node.Name == skipped.Node })
	if at < 0 {
		return false
	}
	node := &r.read.Cluster.Nodes[at]
	state := node.Annotations[daemonState]
	switch skipped.Why { //nolint:exhaustive // the others are of clusters without pools, or reported
	case order.Paused, order.SeveralPools:
		return true
	case order.NoPool:
		return !r.missing.Lacks("machineconfigpools") && state != "" && node.Labels[corev1.LabelOSStable] != string(corev1.Windows)
	case order.Unavailable:
		return skipped.State == order.Configuring && state == stateDone && !r.waits(skipped.Pool)
	}
	return false
}

// waits reports whether the rehearsal of a pool waits for nodes that are being updated, which the finding of
// the pool names.
func (r *rehearsed) waits(pool string) bool {
	return slices.ContainsFunc(r.read.Order.Pools, func(each order.Pool) bool { return each.Name == pool && each.Waits() })
}

func unreachedSince(why order.Skip, pool string) string {
	switch why { //nolint:exhaustive // the others are reached, or reported
	case order.Paused:
		return fmt.Sprintf("MachineConfigPool %q is paused", pool)
	case order.SeveralPools:
		return "several custom MachineConfigPools select the node, and none updates it"
	case order.NoPool:
		return "no MachineConfigPool selects the node"
	}
	return "the node gets another configuration before, with a drain that was not rehearsed"
}
