// Package owner answers: which operators move their pods themselves when a node is drained?
//
// [Owners.Of] returns what the operator of a pod does, according to a table of operators ([Table]) and the objects
// that they own.
package owner

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Behavior says how an operator treats its pod when its node is drained.
type Behavior string

// The behaviors.
const (
	// None is a pod that no operator of the table owns.
	None Behavior = ""
	// Moves is a pod that the operator makes evictable and creates again: a refusal by its budget is progress.
	Moves Behavior = "Moves"
	// Migrates is a pod that stays until the operator runs it on another node.
	Migrates Behavior = "Migrates"
	// Stops is a pod whose eviction interrupts its service.
	Stops Behavior = "Stops"
	// Stays is a pod whose eviction the operator denies until its settings change.
	Stays Behavior = "Stays"
	// Holds is a pod whose budget the operator keeps until its settings change: a refusal by
	// its budget does not end.
	Holds Behavior = "Holds"
	// Adjusts is a pod whose operator changes the budget by the health of its application, which the API does not
	// show.
	Adjusts Behavior = "Adjusts"
	// Returns is a pod that its budget lets go, and that the operator creates again on the same
	// node once that is schedulable.
	Returns Behavior = "Returns"
)

// Answer describes the reaction of a pod's operator to a drain.
type Answer struct {
	Behavior Behavior
	// Operator is its name in the table; empty for a pod that the table does not cover.
	Operator string
	// Why is a clause with its subject, such as "the machine is migrated to another node"; empty only
	// where Operator is.
	Why string
	// Remedy is an imperative sentence about the operator's settings; empty for Moves and Returns.
	Remedy string
}

type key struct {
	schema.GroupKind

	namespace, name string
}

// Owners finds the operators of pods.
type Owners struct {
	objects map[key]*unstructured.Unstructured
	webhook map[string]bool
	table   []Operator
}

// New indexes the objects of operators: VirtualMachineInstances, Clusters of CloudNativePG and
// others of the kinds in the table. Webhooks are the names of the webhooks that the API
// server calls for pods/eviction and that can respond.
func New(objects []unstructured.Unstructured, webhooks []string) *Owners {
	o := &Owners{objects: map[key]*unstructured.Unstructured{}, webhook: map[string]bool{}, table: table()}
	for i := range objects {
		o.objects[key{objects[i].GroupVersionKind().GroupKind(), objects[i].GetNamespace(), objects[i].GetName()}] = &objects[i]
	}
	for _, name := range webhooks {
		o.webhook[name] = true
	}
	return o
}

// The webhooks of operators of the table. They let pass what is not a pod of their operator.
const (
	kubevirtWebhook = "virt-launcher-eviction-interceptor.kubevirt.io"
	strimziWebhook  = "strimzi-drain-cleaner.strimzi.io"
)

// Answers reports whether the table has the answers of a webhook on pods/eviction.
func Answers(webhook string) bool { return webhook == kubevirtWebhook || webhook == strimziWebhook }

// Operator is a row of the table.
type Operator struct {
	Name string
	// Group is the API group of its objects, which own its pods, or the end of it after a dot; empty
	// for an operator whose pods are recognized by their labels.
	Group string

	recognizes func(*corev1.Pod) bool
	judge      func(*Owners, *corev1.Pod, *metav1.OwnerReference) Answer
}

// Of returns the reaction of the pod's operator to a drain.
func (o *Owners) Of(pod *corev1.Pod) Answer {
	if o == nil {
		return Answer{}
	}
	for i := range pod.OwnerReferences {
		reference := &pod.OwnerReferences[i]
		group := "." + KindOf(reference).Group
		for j := range o.table {
			if row := &o.table[j]; row.Group != "" && strings.HasSuffix(group, "."+row.Group) {
				return row.answer(o, pod, reference)
			}
		}
	}
	for i := range o.table {
		if row := &o.table[i]; row.recognizes != nil && row.recognizes(pod) {
			return row.answer(o, pod, nil)
		}
	}
	return Answer{}
}

func (row *Operator) answer(o *Owners, pod *corev1.Pod, reference *metav1.OwnerReference) Answer {
	answer := row.judge(o, pod, reference)
	if answer.Why != "" {
		answer.Operator = row.Name
	}
	return answer
}

// KindOf returns the kind of an owner with its API group: other groups than Kubernetes' own also have a
// StatefulSet and a DaemonSet.
func KindOf(reference *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
}

// object is the object that owns a pod; nil where it was not read.
func (o *Owners) object(pod *corev1.Pod, reference *metav1.OwnerReference) *unstructured.Unstructured {
	return o.objects[key{KindOf(reference), pod.Namespace, reference.Name}]
}

// table lists the known operators, those first whose pods are recognized by an owner.
func table() []Operator { return slices.Concat(owning(), labeling(), withoutOwner()) }

func owning() []Operator {
	return []Operator{{
		// Read: condition LiveMigratable and spec.evictionStrategy of the VirtualMachineInstance;
		// spec.configuration.evictionStrategy of the KubeVirt. Source: kubevirt docs/handling-eviction-requests.md; since
		// kubevirt#11286, the webhook itself refuses while it migrates, with or without a budget. Since the first release
		// with LiveMigrateIfPossible, of 2023 (kubevirt#9798); its number is not confirmed.
		Name: "KubeVirt", Group: "kubevirt.io",
		judge: virtualMachine,
	}, {
		// Read: spec.instances, status.readyInstances, spec.enablePDB and spec.nodeMaintenanceWindow of the Cluster; label
		// cnpg.io/instanceRole. Source: cloudnative-pg docs/src/kubernetes_upgrade.md and reconcilePodDisruptionBudget of
		// its controller. Since 1.23 (enablePDB, cloudnative-pg#3837).
		Name: "CloudNativePG", Group: "postgresql.cnpg.io",
		judge: postgres,
	}, {
		// Read: the webhook on pods/eviction; labels strimzi.io/kind and strimzi.io/name. Source: strimzi/drain-cleaner
		// README.md and src/main/java/io/strimzi/ValidatingWebhook.java. Since Strimzi 0.21; it denies evictions itself
		// since Drain Cleaner 1.1.
		Name: "Strimzi", Group: "strimzi.io",
		judge: kafka,
	}, {
		// Read: budgets of the instance managers, which exist while a node has volumes or last replicas. Source: longhorn-manager
		// controller, canDeleteInstanceManagerPDB. Since 1.4.2 and 1.3.3 (longhorn#5549).
		Name: "Longhorn", Group: "longhorn.io",
		judge: adjusts("it removes the budget of its instance manager once the node has no attached volume and no last replica",
			"Check the setting node-drain-policy of Longhorn and the replicas of its volumes."),
	}, {
		// Read: budget px-storage, or a budget for each node (px-NODE, which the operator deletes to let the pod go), and
		// budget px-kvdb. Source: libopenstorage/operator drivers/storage/portworx/component/disruption_budget.go.
		// Budgets for each node since 2024 (operator#1508, #1580); the number of the release is not confirmed.
		Name: "Portworx", Group: "libopenstorage.org",
		judge: adjusts("it sets its budgets by the number of storage nodes, and deletes the budget of a node to release its pod",
			"Check that all storage nodes are online in the StorageCluster."),
	}}
}

// labeling are the operators whose pods are of controllers of Kubernetes, and have a label.
func labeling() []Operator {
	return []Operator{{
		// Read: budgets rook-ceph-osd*, which the operator replaces while the data is not healthy. Source: rook
		// design/ceph/ceph-managed-disruptionbudgets.md. Since 1.5 (rook#6497), by default since 1.6 (rook#7082).
		Name:       "Rook",
		recognizes: labeled("ceph-osd-id"),
		judge: adjusts("it replaces its budgets while a node is drained, until all placement groups are clean",
			"Check that the CephCluster is healthy, and that spec.disruptionManagement.managePodBudgets is true."),
	}, {
		// Read: the default budget, which allows one pod while the cluster is green; with an Enterprise license one for
		// each role, of which some need yellow. Source: Elastic Cloud on Kubernetes documentation, Pod disruption budget.
		// Since 1.0, by role since 3.2.
		Name:       "Elastic Cloud on Kubernetes",
		recognizes: labeled("elasticsearch.k8s.elastic.co/cluster-name"),
		judge: adjusts("it allows one disruption while the health of Elasticsearch permits it",
			"Check status.health of the Elasticsearch, or set spec.podDisruptionBudget in it."),
	}}
}

func labeled(label string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		_, ok := pod.Labels[label]
		return ok
	}
}

// staticPods creates pods without a controller, one for each node of the control plane.
const staticPods = "the operator of static pods"

// withoutOwner are the operators of OpenShift that create pods without a controller.
func withoutOwner() []Operator {
	return []Operator{{
		// Read: pods PREFIX-guard-NODE with label app=guard; their budgets PREFIX-guard-pdb require all but one. Source:
		// library-go pkg/operator/staticpod/controller/guard/guard_controller.go. Since library-go of October 2021; etcd
		// 4.11 (cluster-etcd-operator#789), the first version of the others is not confirmed.
		Name: staticPods,
		recognizes: func(pod *corev1.Pod) bool {
			return ofStaticPods(pod, "guard") && strings.HasSuffix(pod.Name, "-guard-"+pod.Spec.NodeName)
		},
		judge: returns("it is recreated on its node once the node is schedulable"),
	}, {
		// Read: pods installer-REVISION-NODE with label app=installer and revision-pruner-REVISION-NODE with label
		// app=pruner, which end by themselves. Source: library-go pkg/operator/staticpod/controller/installer and prune.
		// Since 4.1 with several versions of these names.
		Name:       staticPods,
		recognizes: func(pod *corev1.Pod) bool { return ofStaticPods(pod, "installer") || ofStaticPods(pod, "pruner") },
		judge:      returns("it is recreated on its node until it has finished there"),
	}}
}

// ofStaticPods reports whether a pod without a controller has the label of an operator of static pods, in
// a namespace of these.
func ofStaticPods(pod *corev1.Pod, app string) bool {
	switch pod.Namespace {
	case "openshift-etcd", "openshift-kube-apiserver", "openshift-kube-controller-manager", "openshift-kube-scheduler":
		return pod.Labels["app"] == app && pod.Spec.NodeName != "" && metav1.GetControllerOfNoCopy(pod) == nil
	}
	return false
}

func returns(why string) func(*Owners, *corev1.Pod, *metav1.OwnerReference) Answer {
	return func(*Owners, *corev1.Pod, *metav1.OwnerReference) Answer { return Answer{Behavior: Returns, Why: why} }
}

func adjusts(why, remedy string) func(*Owners, *corev1.Pod, *metav1.OwnerReference) Answer {
	return func(*Owners, *corev1.Pod, *metav1.OwnerReference) Answer {
		return Answer{Behavior: Adjusts, Why: why, Remedy: remedy}
	}
}

// virtualMachine is a pod of KubeVirt. Its webhook on pods/eviction has a machine migrated that can
// be: the machine's own budget, or the webhook, answers 429 while the migration runs. The webhook
// denies the eviction of a machine that must be migrated and cannot be.
func virtualMachine(o *Owners, pod *corev1.Pod, reference *metav1.OwnerReference) Answer {
	const remedy = "Make the virtual machine migratable, set another evictionStrategy, or stop it before the update."
	if reference.Kind != "VirtualMachineInstance" {
		return Answer{}
	}
	machine := o.object(pod, reference)
	if machine == nil {
		return Answer{
			Behavior: Adjusts, Why: "the pod belongs to a VirtualMachineInstance that could not be read",
			Remedy: "Check condition LiveMigratable of the VirtualMachineInstance.",
		}
	}
	strategy, _, _ := unstructured.NestedString(machine.Object, "spec", "evictionStrategy")
	if strategy == "" {
		var known bool
		if strategy, known = o.kubevirtDefault(); !known {
			return Answer{
				Behavior: Adjusts, Why: "the machine has the evictionStrategy of the KubeVirt object, which could not be read",
				Remedy: "Check spec.configuration.evictionStrategy of the KubeVirt object.",
			}
		}
	}
	migratable, why := liveMigratable(machine)
	switch {
	case strategy == "External":
		return Answer{
			Behavior: Adjusts, Why: "a controller outside of KubeVirt moves the machine (evictionStrategy External)",
			Remedy: "Check that the external controller is running.",
		}
	case migratable && strings.HasPrefix(strategy, "LiveMigrate") && !o.webhook[kubevirtWebhook]:
		return Answer{
			Behavior: Adjusts, Why: "the machine is migrated only if the webhook " + kubevirtWebhook + " responds, which it cannot",
			Remedy: "Check that the pods of virt-api are ready.",
		}
	case migratable && (strategy == liveMigrate || strategy == "LiveMigrateIfPossible"):
		return Answer{Behavior: Migrates, Why: "the machine is migrated to another node"}
	case strategy == liveMigrate:
		return Answer{Behavior: Stays, Why: "the machine must be migrated (evictionStrategy LiveMigrate) and cannot be: " + why, Remedy: remedy}
	default:
		return Answer{Behavior: Stops, Why: "the machine is shut down with its node", Remedy: remedy}
	}
}

// kubevirtDefault returns the evictionStrategy of machines without one, from the KubeVirt object
// (spec.configuration.evictionStrategy). Without such an object it is unknown.
func (o *Owners) kubevirtDefault() (strategy string, known bool) {
	for _, object := range o.objects {
		if object.GetKind() == "KubeVirt" {
			strategy, _, _ = unstructured.NestedString(object.Object, "spec", "configuration", "evictionStrategy")
			known = true
		}
	}
	return strategy, known
}

// liveMigrate is the evictionStrategy of machines that must not be shut down.
const liveMigrate = "LiveMigrate"

func liveMigratable(machine *unstructured.Unstructured) (ok bool, why string) {
	conditions, _, _ := unstructured.NestedSlice(machine.Object, "status", "conditions")
	for _, item := range conditions {
		condition, isMap := item.(map[string]any)
		if !isMap || condition["type"] != "LiveMigratable" {
			continue
		}
		reason, _ := condition["reason"].(string)
		return condition["status"] == "True", cmp.Or(reason, "its condition LiveMigratable gives no reason")
	}
	return false, "it has no condition LiveMigratable"
}

// postgres is a pod of CloudNativePG. The operator makes another instance the primary when the
// node is unschedulable, and the budget of the primary then selects the other one.
func postgres(o *Owners, pod *corev1.Pod, reference *metav1.OwnerReference) Answer {
	if pod.Labels["cnpg.io/instanceRole"] == "replica" {
		return Answer{
			Why:    "the pod is a replica, which its budget keeps while too few others are ready",
			Remedy: "Check that all instances of the Cluster are ready.",
		}
	}
	cluster := o.object(pod, reference)
	if cluster == nil {
		return Answer{
			Behavior: Adjusts, Why: "the pod belongs to a Cluster of CloudNativePG that could not be read",
			Remedy: "Check that the Cluster has more than one ready instance.",
		}
	}
	if enabled, found, _ := unstructured.NestedBool(cluster.Object, "spec", "enablePDB"); found && !enabled {
		return Answer{Behavior: Stops, Why: "the pod belongs to a Cluster whose budgets are disabled (spec.enablePDB)"}
	}
	if ready, _, _ := unstructured.NestedInt64(cluster.Object, "status", "readyInstances"); ready > 1 {
		return Answer{Behavior: Moves, Why: "another instance becomes the primary when the node is cordoned"}
	}
	if instances, _, _ := unstructured.NestedInt64(cluster.Object, "spec", "instances"); instances == 1 && maintained(cluster) {
		return Answer{Behavior: Stops, Why: "the Cluster is in a maintenance window, in which it has no budget"}
	}
	return Answer{
		Behavior: Holds, Why: "the pod is the only ready instance of its Cluster",
		Remedy: "Give the Cluster more instances, open its maintenance window (spec.nodeMaintenanceWindow.inProgress), or set " +
			"spec.enablePDB to false.",
	}
}

// maintained reports whether a Cluster with one instance has no budget: in a maintenance window,
// unless its volume is not kept.
func maintained(cluster *unstructured.Unstructured) bool {
	inProgress, _, _ := unstructured.NestedBool(cluster.Object, "spec", "nodeMaintenanceWindow", "inProgress")
	reuse, found, _ := unstructured.NestedBool(cluster.Object, "spec", "nodeMaintenanceWindow", "reusePVC")
	return inProgress && (reuse || !found)
}

// kafka evaluates a pod of Strimzi. Its drain cleaner marks the pods of Kafka and of ZooKeeper, and the operator
// restarts them elsewhere; it ignores others, such as the pods of Kafka Connect. Its settings may exclude
// namespaces and one of the two, which the API shows only in its Deployment.
func kafka(o *Owners, pod *corev1.Pod, _ *metav1.OwnerReference) Answer {
	name := pod.Labels["strimzi.io/name"]
	broker := pod.Labels["strimzi.io/kind"] == "Kafka" && (strings.HasSuffix(name, "-kafka") || strings.HasSuffix(name, "-zookeeper"))
	if broker && o.webhook[strimziWebhook] {
		return Answer{Behavior: Moves, Why: "the operator restarts the pod on another node when the drain cleaner marks it"}
	}
	why := "the drain cleaner does not mark the pod, which is no broker"
	if broker {
		why = "no drain cleaner responds that marks the pod for its operator"
	}
	return Answer{Why: why, Remedy: "Check that all pods of the same budget are ready."}
}
