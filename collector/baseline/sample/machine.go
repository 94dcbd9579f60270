package sample

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/words"
)

var _ = catalog.Reasons("A node, or a pool or set of nodes, has a problem after the update that it did not have before.", `
ConfigDegraded | The machine-config-daemon could not apply the configuration of the pool, or the disk differs from it. | Read the reason on the node. | oc describe node NAME
DiskPressure | Its disk is nearly full, so it evicts pods. | Free space on the node, or give it a larger disk.
Draining | The drain before its update hangs: a PodDisruptionBudget permits no eviction, or a pod does not terminate. | Find the pods that are not evicted in the
	log of the machine-config-controller. | oc logs -n openshift-machine-config-operator deployments/machine-config-controller
MachinesNotReady | Fewer machines of a MachineSet or a NodePool are ready nodes than requested. | Read the state of its machines, for a NodePool in the
	namespace of the control plane. | oc get machines -n openshift-machine-api -o wide
MemoryPressure | It is short of memory, so it evicts pods. | Find the pods that use the most memory. | oc adm top pods -A --sort-by=memory
NetworkUnavailable | Its network is not configured. | Check the pods of the network plugin on the node. | oc get pods -n openshift-ovn-kubernetes -o wide
NotReady | Its kubelet reports that it is not ready, or reports nothing. | Read its conditions, then the log of its kubelet. | oc adm node-logs NAME -u kubelet
NotUpdated | Some nodes of a pool do not have the new configuration, or a HostedCluster does not stop Progressing. | Read which nodes are left, and why.
	| oc adm upgrade status
OutdatedConfig | Its configuration differs from the one that its pool wants. | Read the log of its machine-config-daemon, and whether its pool is paused.
OutdatedSoftware | It has the configuration of its pool, but another kubelet or kernel than the other nodes with it. | Read the log of its
	machine-config-daemon. | oc get nodes -o wide
StaysCordoned | The update requested to uncordon it, but it is still cordoned. | Read the log of the machine-config-controller, then uncordon it.
	| oc adm uncordon NAME
Tainted | A controller, such as the cloud controller that has not initialized the node, keeps pods off it. | Read the log of the controller that the taint
	names. | oc describe node NAME
PIDPressure | It runs too many processes. | Find the workload with too many processes, and restrict it.`)

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
			object.Add(baseline.Problem{
				Reason:  "MachinesNotReady",
				Message: fmt.Sprintf("%d of %s ready", object.Ready, words.Count(int64(object.Desired), "machine")),
			})
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
		object.Add(baseline.Problem{Reason: "NotUpdated", Since: latest(states.of("Updated").since(conditionFalse), states.of("Updating").since(
			conditionTrue)), Message: fmt.Sprintf("%d of %s updated", status.UpdatedMachineCount, words.Count(int64(status.MachineCount), "node"))})
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
		s.keep(baseline.Key{Kind: baseline.CSINode, Name: drivers[i].Name},
			baseline.Object{Detail: fact(strings.Join(names, ",")), Refs: []baseline.Key{{Kind: baseline.Node, Name: drivers[i].Name}}})
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
	for _, kind := range []corev1.NodeConditionType{
		corev1.NodeNetworkUnavailable, corev1.NodeDiskPressure, corev1.NodeMemoryPressure,
		corev1.NodePIDPressure,
	} {
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
			object.Add(baseline.Problem{Reason: "StaysCordoned", Message: "the update requested to uncordon it, but it is still " +
				"cordoned"})
		}
	}
	if current, desired := notes[currentConfig], notes[desiredConfig]; current != desired {
		object.Add(baseline.Problem{Reason: "OutdatedConfig", Message: fmt.Sprintf("it has configuration %s instead of %s",
			cmp.Or(words.External(current), "none"), cmp.Or(words.External(desired), "none"))})
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

// addTaints adds the problem of a node that a controller of Kubernetes keeps pods from. The taints of a cordon, of
// a condition of the node, and of its role are not problems by themselves.
func addTaints(object *baseline.Object, node *corev1.Node) {
	for _, taint := range node.Spec.Taints {
		domain, name, _ := strings.Cut(taint.Key, "/")
		ofKubernetes := strings.HasSuffix(domain, ".kubernetes.io") && domain != "node-role.kubernetes.io" && domain != "node.kubernetes.io"
		if ofKubernetes && taint.Effect != corev1.TaintEffectPreferNoSchedule {
			object.Add(baseline.Problem{
				Reason:  "Tainted",
				Message: fmt.Sprintf("it has the taint %s of a controller", words.External(domain+"/"+name)),
			})
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

var _ = catalog.Reasons("The ClusterVersion, a ClusterOperator or a certificate request has a problem after the update that it "+
	"did not have before.", `
Degraded | Its condition Degraded is True; for a NodePool, the in-place update of a node failed. | Read the message of the condition. | oc describe KIND NAME
Failing | The cluster-version operator cannot apply the release. | Read the message of the condition. | oc describe clusterversion
ImplicitlyEnabledCapabilities | The new release enabled a capability that was not requested, because the cluster uses a part of it. | Add the capability to
	spec.capabilities of ClusterVersion, or leave it enabled.
Invalid | The new release rejects the spec of the ClusterVersion. | Correct the field that the condition's message names. | oc describe clusterversion
OutdatedVersion | It reports another version than the release, although the update is complete. | Read its conditions. | oc describe clusteroperator NAME
Pending | The request of a kubelet or a user is neither approved nor denied, often because the cluster-machine-approver does not know the node. | Check it, then
	approve it. | oc adm certificate approve NAME`)

func (s *sampler) clusterVersion(version *configv1.ClusterVersion) {
	object := baseline.Object{Release: true} // the request of an update changes the generation
	states := conditionsOf(version.Status.Conditions, ofOperator)
	for _, kind := range []string{"Failing", "Invalid", "ImplicitlyEnabledCapabilities"} {
		if of := states.of(kind); of.Status == conditionTrue {
			object.Add(of.problem(kind))
		}
	}
	s.keep(baseline.Key{Kind: baseline.ClusterVersion, Name: version.Name}, object)
}

// operators are the ClusterOperators except the preflight's own.
func (s *sampler) operators(found []configv1.ClusterOperator, version *configv1.ClusterVersion) {
	history := version.Status.History
	completed := len(history) > 0 && history[0].State == configv1.CompletedUpdate
	for i := range found {
		operator := &found[i]
		if operator.Name == ownsignal.ClusterOperator {
			continue
		}
		object := operatorOf(operator)
		s.describe(&object, operator, configv1.GroupName, "clusteroperators")
		object.Release = true
		if completed && object.Detail != "" && object.Detail != version.Status.Desired.Version {
			object.Add(baseline.Problem{
				Reason:  "OutdatedVersion",
				Message: fmt.Sprintf("it has version %s instead of %s", object.Detail, words.External(version.Status.Desired.Version)),
			})
		}
		s.keep(baseline.Key{Kind: baseline.ClusterOperator, Name: operator.Name}, object)
	}
}

func operatorOf(operator *configv1.ClusterOperator) baseline.Object {
	object := baseline.Object{Generation: operator.Generation}
	states := conditionsOf(operator.Status.Conditions, ofOperator)
	if of := states.of("Available"); of.Status != conditionTrue {
		object.Add(of.problem("Unavailable"))
	}
	for _, kind := range []string{"Degraded", "Progressing"} {
		if of := states.of(kind); of.Status == conditionTrue {
			object.Add(of.problem(kind))
		}
	}
	object.Recovered = recovered(latest(states.of("Available").since(conditionTrue), states.of("Degraded").since(conditionFalse)),
		operator.CreationTimestamp)
	for _, reported := range operator.Status.Versions {
		if reported.Name == "operator" {
			object.Detail = fact(reported.Version)
		}
	}
	return object
}

// requests are the CertificateSigningRequests that no user or controller has decided about. The others are deleted after an hour or a day.
func (m machinery) requests(ctx context.Context) {
	s := m.sampler
	found := read(ctx, s, s.cluster.CertificateSigningRequests, "CertificateSigningRequests", baseline.CertificateSigningRequest)
	for i := range found {
		request := &found[i]
		if isDecided(request) {
			continue
		}
		object := baseline.Object{Detail: fact(requestedNode(request))}
		object.Add(baseline.Problem{
			Reason: "Pending", Since: at(request.CreationTimestamp),
			Message: fmt.Sprintf("the request of %s for %s is neither approved nor denied", words.External(request.Spec.Username),
				words.External(request.Spec.SignerName)),
		})
		s.keep(baseline.Key{Kind: baseline.CertificateSigningRequest, Name: request.Name}, object)
	}
}

// nodeUser begins the user name of a kubelet, which the name of its node follows.
const nodeUser = "system:node:"

// requestedNode is the node for which a kubelet requests a certificate; empty for another request. The first request of a kubelet,
// which has no certificate, is by a user that all nodes share.
func requestedNode(request *certificatesv1.CertificateSigningRequest) string {
	if node, ok := strings.CutPrefix(request.Spec.Username, nodeUser); ok {
		return node
	}
	if request.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName {
		return baseline.AnyNode
	}
	return ""
}

func isDecided(request *certificatesv1.CertificateSigningRequest) bool {
	for _, each := range request.Status.Conditions {
		switch each.Type {
		case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return true
		}
	}
	return false
}

var _ = catalog.Reasons("An alert of severity warning or critical fires after the update, and did not before.", `
Firing | The alert was not firing before the update. | Follow the runbook in its annotations. | oc get prometheusrules -A -o yaml`)

// watchdog always fires, so that its absence is noticed.
const watchdog = "Watchdog"

var errNoMonitoring = errors.New("the monitoring was not read")

// readAlerts reads those that fire, the instances of one name, severity and namespace as one object, since the first of them.
func readAlerts(ctx context.Context, s *sampler, client *monitoring.Client) {
	if client == nil {
		s.unread(errNoMonitoring, baseline.Alert)
		return
	}
	active, err := client.Alerts(ctx)
	if err != nil {
		s.unread(err, baseline.Alert)
		return
	}
	for _, each := range active {
		if !counts(each) {
			continue
		}
		severity, alertName := string(each.Labels["severity"]), string(each.Labels[model.AlertNameLabel])
		namespace := fact(string(each.Labels["namespace"]))
		key := baseline.Key{Kind: baseline.Alert, Namespace: namespace, Name: fact(alertName+"/"+severity) + others(each.Labels)}
		firing := baseline.Problem{Reason: "Firing", Since: each.ActiveAt.UTC(), Message: message(each)}
		object, exists := s.state.Objects[key]
		if !exists || firing.Since.Before(object.Problems[0].Since) {
			object.Problems = []baseline.Problem{firing}
		}
		object.Desired++
		object.Release = namespace == "" || s.owners.Namespace(namespace)
		object.Refs = s.about(each.Labels, namespace)
		if !s.state.Leaving[namespace] {
			s.state.Objects[key] = object
		}
	}
}

// instances are the labels that name one of the instances that an alert fires for: the others stay the same for all of them.
func instances() []string { return []string{"pod", "pod_name", "instance", "uid", "container_id"} }

// others are the labels of an alert beside its name, severity, namespace and instance, as they are in a query; empty for none.
func others(all model.LabelSet) string {
	kept := maps.Clone(all)
	for _, name := range append(instances(), model.AlertNameLabel, "severity", "namespace", "prometheus") {
		delete(kept, model.LabelName(name))
	}
	if len(kept) == 0 {
		return ""
	}
	return fact(kept.String())
}

// about are the objects that the labels of an alert name, such as the label "deployment".
func (s *sampler) about(all model.LabelSet, namespace string) []baseline.Key {
	var refs []baseline.Key
	for _, kind := range []baseline.Kind{
		baseline.Deployment, baseline.StatefulSet, baseline.DaemonSet, baseline.PersistentVolumeClaim,
		baseline.Service, baseline.Node,
	} {
		named := string(all[model.LabelName(strings.ToLower(string(kind)))])
		key := baseline.Key{Kind: kind, Namespace: namespace, Name: named}
		if kind == baseline.Node {
			key.Namespace = ""
		}
		if named != "" {
			refs = append(refs, key)
		}
	}
	if pod := string(all["pod"]); pod != "" {
		if key, known := s.podController(namespace, pod); known {
			refs = append(refs, key)
		}
	}
	return refs
}

// counts reports whether an alert is about the state of the cluster, and not one of the preflight itself.
func counts(alert prometheusv1.Alert) bool {
	named, namespace := string(alert.Labels[model.AlertNameLabel]), string(alert.Labels["namespace"])
	own := ownsignal.Alert(named, namespace) || alert.Labels["name"] == ownsignal.ClusterOperator
	serious := slices.Contains([]model.LabelValue{"warning", "critical"}, alert.Labels["severity"])
	return alert.State == prometheusv1.AlertStateFiring && serious && !own && named != "" && named != watchdog
}

func message(alert prometheusv1.Alert) string {
	text := cmp.Or(string(alert.Annotations["summary"]), string(alert.Annotations["message"]), string(alert.Annotations["description"]),
		"it is firing")
	return words.External(text)
}
