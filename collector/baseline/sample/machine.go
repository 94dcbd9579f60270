package sample

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/words"
)

var _ = catalog.Reasons("A node, or a pool or set of nodes, has a problem after the update that it did not have before.", `
ConfigDegraded | The machine-config daemon could not apply the configuration of the pool, or the disk differs from it. | Read the reason on the node. | oc describe node NAME
DiskPressure | Its disk is nearly full, so that it evicts pods. | Free space on the node, or give it a larger disk.
Draining | The drain before its update hangs: a PodDisruptionBudget permits no eviction, or a pod does not end. | Find what is not evicted in the log of the
	machine-config controller. | oc logs -n openshift-machine-config-operator deployments/machine-config-controller
MachinesNotReady | Fewer machines of a MachineSet or a NodePool are ready nodes than it should have. | Read the state of its machines, for a NodePool in the
	namespace of the control plane. | oc get machines -n openshift-machine-api -o wide
MemoryPressure | It has little memory, so that it evicts pods. | Find the pods with the most memory. | oc adm top pods -A --sort-by=memory
NetworkUnavailable | Its network is not configured. | Check the pods of the network plugin on the node. | oc get pods -n openshift-ovn-kubernetes -o wide
NotReady | Its kubelet reports that it is not ready, or reports nothing. | Read its conditions, then the log of its kubelet. | oc adm node-logs NAME -u kubelet
NotUpdated | Not all nodes of a pool have the new configuration, or a HostedCluster does not stop Progressing. | Read which nodes are left, and why. | oc adm upgrade status
OutdatedConfig | It has another configuration than its pool wants. | Read the log of its machine-config daemon, and whether its pool is paused.
OutdatedSoftware | It has the configuration of its pool, and another kubelet or kernel than the other nodes with it. | Read the log of its
	machine-config daemon. | oc get nodes -o wide
StaysCordoned | The update has requested that it be uncordoned, which was not done. | Read the log of the machine-config controller, then uncordon it. | oc adm uncordon NAME
Tainted | A controller keeps pods from the node, such as the one of the cloud, which has not initialized it. | Read the log of the controller that the taint
	names. | oc describe node NAME
PIDPressure | It has too many processes. | Find the workload with too many processes, and restrict it.`)

// Annotations of nodes by the machine-config-operator, the machine-api-operator and Cluster API.
const (
	configState    = "machineconfiguration.openshift.io/state"
	configReason   = "machineconfiguration.openshift.io/reason"
	currentConfig  = "machineconfiguration.openshift.io/currentConfig"
	desiredConfig  = "machineconfiguration.openshift.io/desiredConfig"
	desiredDrain   = "machineconfiguration.openshift.io/desiredDrain"
	appliedDrain   = "machineconfiguration.openshift.io/lastAppliedDrain"
	machineOfNode  = "machine.openshift.io/machine"
	clusterMachine = "cluster.x-k8s.io/machine" // of a NodePool, by Cluster API
	drainRequested = "drain-"
)

// paused is the Detail of a pool that an administrator has paused.
const paused = "paused"

// machinery are the nodes, and what they belong to.
type machinery struct{ sampler *sampler }

func (m machinery) machines(ctx context.Context) {
	s := m.sampler
	pools := read(ctx, s, s.cluster.MachineConfigPools, "MachineConfigPools", baseline.MachineConfigPool)
	for i := range pools {
		object := poolOf(&pools[i])
		s.describe(&object, &pools[i], "machineconfiguration.openshift.io", "machineconfigpools")
		s.keep(baseline.Key{Kind: baseline.MachineConfigPool, Name: pools[i].Name}, object)
	}
	sets := read(ctx, s, s.cluster.MachineSets, "MachineSets", baseline.MachineSet)
	for i := range sets {
		set := &sets[i]
		object := baseline.Object{Desired: 1, Ready: set.Status.ReadyReplicas, Generation: set.Generation}
		if set.Spec.Replicas != nil {
			object.Desired = *set.Spec.Replicas
		}
		if object.Ready < object.Desired {
			object.Add(baseline.Problem{Reason: "MachinesNotReady", Message: fmt.Sprintf("%d of %s ready", object.Ready, words.Count(int64(object.Desired), "machine"))})
		}
		s.describe(&object, set, "machine.openshift.io", "machinesets")
		s.keep(baseline.Key{Kind: baseline.MachineSet, Namespace: set.Namespace, Name: set.Name}, object)
	}
}

// poolOf is a pool. One that was paused is not updated for long, but is being updated only since then.
func poolOf(pool *machineconfigurationv1.MachineConfigPool) baseline.Object {
	status := &pool.Status
	object := baseline.Object{Desired: status.MachineCount, Ready: status.ReadyMachineCount} // every update changes the generation
	states := conditionsOf(status.Conditions, ofPool)
	for _, kind := range []string{"NodeDegraded", "RenderDegraded", "Degraded"} { // the last one repeats the others, with fewer words
		if of := states.of(kind); of.Status == conditionTrue {
			object.Add(of.problem("Degraded"))
		}
	}
	switch {
	case pool.Spec.Paused:
		object.Detail = paused
	case status.UpdatedMachineCount < status.MachineCount:
		object.Add(baseline.Problem{Reason: "NotUpdated", Since: latest(states.of("Updated").since(conditionFalse), states.of("Updating").since(conditionTrue)), Message: fmt.Sprintf("%d of %s updated", status.UpdatedMachineCount, words.Count(int64(status.MachineCount), "node"))})
	}
	return object
}

func (m machinery) nodes(ctx context.Context) {
	s := m.sampler
	nodes := read(ctx, s, s.cluster.Nodes, "nodes", baseline.Node)
	old := outdatedNodes(nodes)
	for i := range nodes {
		object := nodeOf(&nodes[i])
		s.describe(&object, &nodes[i], "", "nodes")
		object.Release = isControlPlane(&nodes[i])
		if of, odd := old[nodes[i].Name]; odd {
			object.Add(of)
		}
		s.keep(baseline.Key{Kind: baseline.Node, Name: nodes[i].Name}, object)
	}
	drivers := readAs[storagev1.CSINode](ctx, s, csiNodes(), baseline.CSINode)
	for i := range drivers {
		var names []string
		for _, driver := range drivers[i].Spec.Drivers {
			names = append(names, driver.Name)
		}
		slices.Sort(names)
		s.keep(baseline.Key{Kind: baseline.CSINode, Name: drivers[i].Name}, baseline.Object{Detail: fact(strings.Join(names, ",")), Refs: []baseline.Key{{Kind: baseline.Node, Name: drivers[i].Name}}})
	}
	m.requests(ctx)
}

func nodeOf(node *corev1.Node) baseline.Object {
	notes := node.Annotations
	object := baseline.Object{Detail: fact(node.Status.NodeInfo.BootID), Revision: fact(cmp.Or(notes[machineOfNode], notes[clusterMachine]))}
	object.Cordoned = node.Spec.Unschedulable && !strings.HasPrefix(notes[desiredDrain], drainRequested)
	states := conditionsOf(node.Status.Conditions, ofNode)
	object.Recovered = recovered(states.of(string(corev1.NodeReady)).since(conditionTrue), node.CreationTimestamp)
	addTaints(&object, node)
	if of := states.of(string(corev1.NodeReady)); of.Status != conditionTrue {
		object.Add(of.problem("NotReady"))
	}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeNetworkUnavailable, corev1.NodeDiskPressure, corev1.NodeMemoryPressure, corev1.NodePIDPressure} {
		if of := states.of(string(kind)); of.Status == conditionTrue {
			object.Add(of.problem(string(kind)))
		}
	}
	if state := notes[configState]; state == "Degraded" || state == "Unreconcilable" {
		object.Add(baseline.Problem{Reason: "ConfigDegraded", Message: clause(state, notes[configReason])})
	}
	if wanted := notes[desiredDrain]; node.Spec.Unschedulable && wanted != notes[appliedDrain] {
		if strings.HasPrefix(wanted, drainRequested) {
			object.Add(baseline.Problem{Reason: "Draining", Message: "its drain for an update is not complete"})
		} else if wanted != "" {
			object.Add(baseline.Problem{Reason: "StaysCordoned", Message: "the update has requested that it be uncordoned, and it is not"})
		}
	}
	if current, desired := notes[currentConfig], notes[desiredConfig]; current != desired {
		object.Add(baseline.Problem{Reason: "OutdatedConfig", Message: fmt.Sprintf("it has configuration %s instead of %s", cmp.Or(words.External(current), "none"), cmp.Or(words.External(desired), "none"))})
	}
	return object
}

// settlesIn is how long a new object takes to be good for the first time, which is no recovery.
const settlesIn = 20 * time.Minute

// recovered is since when an object is good again; zero for one that has been good since it was new.
func recovered(since time.Time, created metav1.Time) time.Time {
	if since.Before(created.Add(settlesIn)) {
		return time.Time{}
	}
	return since
}

// addTaints adds the problem of a node that a controller of Kubernetes keeps pods from. The taints of a cordon and of what the node
// states as a condition are no problems by themselves, nor are those of its role.
func addTaints(object *baseline.Object, node *corev1.Node) {
	for _, taint := range node.Spec.Taints {
		domain, name, _ := strings.Cut(taint.Key, "/")
		ofKubernetes := strings.HasSuffix(domain, ".kubernetes.io") && domain != "node-role.kubernetes.io" && domain != "node.kubernetes.io"
		if ofKubernetes && taint.Effect != corev1.TaintEffectPreferNoSchedule {
			object.Add(baseline.Problem{Reason: "Tainted", Message: fmt.Sprintf("it has the taint %s of a controller", words.External(domain+"/"+name))})
		}
	}
}

func isControlPlane(node *corev1.Node) bool {
	for label := range node.Labels {
		if label == "node-role.kubernetes.io/master" || label == "node-role.kubernetes.io/control-plane" {
			return true
		}
	}
	return false
}

// outdatedNodes are the nodes that have another kubelet or kernel than most others of one configuration.
func outdatedNodes(nodes []corev1.Node) map[string]baseline.Problem {
	type software struct{ config, kubelet, kernel string }
	of := func(node *corev1.Node) software {
		return software{node.Annotations[currentConfig], node.Status.NodeInfo.KubeletVersion, node.Status.NodeInfo.KernelVersion}
	}
	counts, total := map[software]int{}, map[string]int{}
	for i := range nodes {
		counts[of(&nodes[i])]++
		total[of(&nodes[i]).config]++
	}
	found := map[string]baseline.Problem{}
	for i := range nodes {
		is := of(&nodes[i])
		for most, count := range counts {
			if is.config != "" && most.config == is.config && most != is && 2*count > total[is.config] {
				found[nodes[i].Name] = baseline.Problem{Reason: "OutdatedSoftware", Message: fmt.Sprintf(
					"it has kubelet %s and kernel %s, and others of its configuration have %s and %s",
					words.External(is.kubelet), words.External(is.kernel), words.External(most.kubelet), words.External(most.kernel))}
			}
		}
	}
	return found
}

// latest is the later of two times.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
