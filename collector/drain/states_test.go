package drain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/eviction"
)

// machine adds a virtual machine of KubeVirt, that is, its objects: KubeVirt does not run.
func machine(w *world, strategy, migratable string) {
	w.webhooks = []string{"virt-launcher-eviction-interceptor.kubevirt.io"}
	w.machines = append(w.machines, unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": map[string]any{"namespace": "shop", "name": "vm"},
		"spec": map[string]any{"evictionStrategy": strategy},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "LiveMigratable", "status": migratable,
			"reason": "DisksNotLiveMigratable",
		}}},
	}})
	launcher := w.pod("virt-launcher-vm", "vm", "w0", "VirtualMachineInstance", corev1.PodSpec{})
	launcher.OwnerReferences[0].APIVersion = "kubevirt.io/v1"
}

func owned(budget *policyv1.PodDisruptionBudget, apiVersion, kind, name string) {
	budget.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: new(true)}}
}

// stateOf is a state with the right answer about pool worker.
type stateOf struct {
	reason  string
	build   func(*world)
	outcome drain.Outcome
	cause   eviction.Cause // of the first obstacle
	// reports is what else the rehearsal has.
	reports func(drain.Rehearsal) bool
}

func (tc stateOf) expect(t *testing.T) {
	t.Helper()
	w := small()
	tc.build(w)
	found := w.rehearse(t)
	at := slices.IndexFunc(found.Pools, func(pool drain.Pool) bool { return pool.Name == "worker" })
	if at < 0 {
		t.Fatalf("%s: pool worker is not drained: %+v", tc.reason, found)
	}
	pool := found.Pools[at]
	var cause eviction.Cause
	if len(pool.Stuck) > 0 && len(pool.Stuck[0].Obstacles) > 0 {
		cause = pool.Stuck[0].Obstacles[0].Cause
	}
	if pool.Outcome != tc.outcome || cause != tc.cause {
		t.Errorf("%s: got %s %q, want %s %q\n%+v", tc.reason, pool.Outcome, cause, tc.outcome, tc.cause, found)
	}
	complete(t, found)
	if tc.reports != nil && !tc.reports(found) {
		t.Errorf("%s: the rehearsal does not report it: %+v", tc.reason, found)
	}
}

// TestStates has the states that public reports describe, with the right answer.
func TestStates(t *testing.T) {
	t.Parallel()
	unready := func(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }
	for name, tc := range map[string]stateOf{
		"DaemonSet": {
			reason: "a drain does not evict pods of DaemonSets, whatever their budget (DataDog/datadog-operator#401)", outcome: drain.Clear,
			build: func(w *world) {
				w.pod("agent-0", "agent", "w0", "DaemonSet", corev1.PodSpec{})
				w.budget("agent", 0, 1, 1, 1)
			},
		},
		"Tolerating": {
			reason: "a pod that tolerates unschedulable nodes comes back to the node, and the drain does not wait for it", outcome: drain.Clear,
			build: func(w *world) {
				w.pod("agent-0", "agent", "w0", "ReplicaSet", corev1.PodSpec{
					NodeSelector: map[string]string{corev1.LabelHostname: "w0"}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				})
			},
		},
		"Pending": {
			reason: "a pod on no node is not evicted (gravitational/gravity#1277)", outcome: drain.Clear,
			build: func(w *world) {
				pod := w.pod("cart-0", "cart", "", "ReplicaSet", corev1.PodSpec{NodeSelector: map[string]string{"gpu": ""}})
				pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
				w.budget("cart", 0, 0, 1, 1)
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Pending) == 1 && !r.Pending[0].Uncertain },
		},
		"PendingOnNode": {
			reason: "a pod that has not started is deleted without a look at its budget", outcome: drain.Clear,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0")
				w.pods[0].Status = corev1.PodStatus{Phase: corev1.PodPending}
				w.budget("cart", 0, 0, 0, 1)
			},
		},
		"AlwaysAllow": {
			reason: "the only pod is unready, and AlwaysAllow lets it go (berops/claudie#1508)", outcome: drain.Clear,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0")
				unready(&w.pods[0])
				w.budget("cart", 0, 0, 1, 1).Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
			},
		},
		"PausedPool": {
			reason: "all pods of the budget are on a node that this update does not drain", outcome: drain.Clear,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "i0")
				w.budget("cart", 0, 1, 1, 1)
			},
		},
		"Migratable": {
			reason: "the eviction of the pod of a virtual machine starts its migration (kubevirt/kubevirt#6982)", outcome: drain.Clear,
			build: func(w *world) {
				machine(w, "LiveMigrate", "True")
				owned(w.budget("vm", 0, 1, 1, 1), "kubevirt.io/v1", "VirtualMachineInstance", "vm")
			},
		},
		"MigratesAtOnce": {
			reason: "the pod of a machine that was migrated ends without the grace period of the machine", outcome: drain.Clear,
			build: func(w *world) {
				machine(w, "LiveMigrate", "True")
				w.pods[0].Spec.TerminationGracePeriodSeconds = new(int64(3600))
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Graces) == 0 && r.Pools[0].Nodes[0].GraceSeconds == 0 },
		},
		"NotMigratable": {
			reason: "without a budget the webhook of KubeVirt denies the eviction, for ever", outcome: drain.Sticks, cause: drain.Operator,
			build: func(w *world) { machine(w, "LiveMigrate", "False") },
		},
		"ShutDown": {
			reason: "a machine that need not be migrated is shut down", outcome: drain.Clear,
			build: func(w *world) { machine(w, "None", "False") },
		},
		"Postgres": {
			reason: "CloudNativePG makes another instance the primary when the node is cordoned", outcome: drain.Clear,
			build:   func(w *world) { postgres(w, 3) },
			reports: func(r drain.Rehearsal) bool { return len(r.Pending) == 0 },
		},
		"PostgresAlone": {
			reason: "the only instance of a Cluster has no other instance to hand over to", outcome: drain.Sticks, cause: drain.Operator,
			build: func(w *world) { postgres(w, 1) },
		},
		"PostgresWithoutBudget": {
			reason: "the only instance of a Cluster without budgets is evicted", outcome: drain.Clear,
			build: func(w *world) {
				postgres(w, 1)
				w.budgets = nil
			},
		},
		"Strimzi": {
			reason: "the drain cleaner has the operator of Kafka move the pod", outcome: drain.Clear,
			build: func(w *world) {
				kafka(w)
				w.webhooks = []string{"strimzi-drain-cleaner.strimzi.io"}
			},
		},
		"StrimziAlone": {
			reason: "without the drain cleaner it is not known whether the operator moves the pod", outcome: drain.Undetermined,
			cause: drain.Operator,
			build: kafka,
		},
		"CustomOwner": {
			reason: "an operator that is not in the table may move its pods: never a block for sure", outcome: drain.Undetermined,
			cause: drain.Operator,
			build: func(w *world) {
				w.pod("db-0", "db", "w0", "Database", corev1.PodSpec{}).OwnerReferences[0].APIVersion = "db.example.com/v1"
				owned(w.budget("db", 0, 1, 1, 1), "db.example.com/v1", "Database", "db")
			},
		},
		"Guards": {
			reason: "the guard of a static pod is created again on its node, which lets that of the next node go", outcome: drain.Clear,
			build:   guards,
			reports: func(r drain.Rehearsal) bool { return len(r.Lost)+len(r.Pending) == 0 && len(r.Pools[0].Nodes) == 3 },
		},
		"GuardsOfTwoNodes": {
			reason: "of two nodes that are drained together, the second one waits until the first one returns", outcome: drain.Clear,
			build: func(w *world) {
				w.pools[0].Spec.MaxUnavailable = new(intstr.FromInt32(2))
				guards(w)
			},
			reports: nothingLost,
		},
		"GuardIsNotReady": {
			reason: "the static pod of another node is not healthy: no guard is evicted", outcome: drain.Sticks, cause: eviction.TooFewHealthy,
			build: func(w *world) {
				guards(w)
				unready(&w.pods[2])
				w.budgets[0].Status.DisruptionsAllowed, w.budgets[0].Status.CurrentHealthy = 0, 2
			},
		},
		"GuardIsMissing": {
			reason:  "the guard of a node that is being updated is created again, although the budget expects as many pods as it requires",
			outcome: drain.Undetermined,
			build: func(w *world) {
				guards(w)
				w.nodes[2].Annotations["machineconfiguration.openshift.io/state"], w.nodes[2].Spec.Unschedulable = "Rebooting", true
				w.pods = w.pods[:2]
				w.budgets[0].Status = policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 2, DesiredHealthy: 2, ExpectedPods: 2}
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Never) == 0 },
		},
		"GuardOfAStuckNode": {
			reason: "the guard waits for its node, which does not return", outcome: drain.Sticks, cause: eviction.RequiresAll,
			build: func(w *world) {
				guards(w)
				w.deploy("cart", corev1.PodSpec{}, "w0")
				w.budget("cart", 0, 1, 1, 1)
			},
			reports: func(r drain.Rehearsal) bool {
				return len(r.Pending) == 1 && r.Pending[0].Why == "it is recreated on its node once the node is schedulable"
			},
		},
		"ForeignGuard": {
			reason: "another pod of that label is not created again", outcome: drain.Clear,
			build:   func(w *world) { w.pod("cart-guard-w1", "guard", "w1", "", corev1.PodSpec{}) },
			reports: func(r drain.Rehearsal) bool { return len(r.Lost) == 1 },
		},
		"OtherStatefulSet": {
			reason: "a StatefulSet of another API group creates its pods again, one after the other", outcome: drain.Clear,
			build: func(w *world) {
				custom(w, "apps.kruise.io/v1beta1", "StatefulSet", "w0", "w1", "w2")
				w.budget("db", 1, 3, 2, 3)
			},
			reports: nothingLost,
		},
		"CustomWithoutBudget": {
			reason: "nothing refuses its eviction, and its operator creates it again", outcome: drain.Clear,
			build:   func(w *world) { custom(w, "db.example.com/v1", "Database", "w0", "w1") },
			reports: nothingLost,
		},
		"CustomTwice": {
			reason: "two pods on a node leave one after the other, so that the Service always has one", outcome: drain.Clear,
			build: func(w *world) {
				custom(w, "apps.kruise.io/v1alpha1", "CloneSet", "w0", "w0")
				w.budget("db", 1, 2, 1, 2)
				w.services = []corev1.Service{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
					Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "db"}},
				}}
			},
			reports: func(r drain.Rehearsal) bool { return nothingLost(r) && len(r.Interrupted) == 0 },
		},
		"CustomWithoutRoom": {
			reason: "the replacement has the needs of the pod, and no node has room", outcome: drain.Clear,
			build: func(w *world) {
				custom(w, "db.example.com/v1", "Database", "w0")
				w.pods[0].Spec.NodeSelector = map[string]string{"gpu": ""}
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Pending) == 1 && !r.Pending[0].Uncertain },
		},
		"PostgresReplicas": {
			reason: "the budget of the replicas allows one, and the operator creates it again", outcome: drain.Clear,
			build: func(w *world) {
				custom(w, "postgresql.cnpg.io/v1", "Cluster", "w0", "w1", "w2")
				for i := range w.pods {
					w.pods[i].Labels["cnpg.io/instanceRole"] = "replica"
				}
				owned(w.budget("db", 1, 3, 2, 3), "postgresql.cnpg.io/v1", "Cluster", "db")
			},
			reports: nothingLost,
		},
		"PostgresReplicaIsNotReady": {
			reason: "the budget of the replicas allows none now, and only the operator knows when it does", outcome: drain.Undetermined,
			cause: drain.Operator,
			build: func(w *world) {
				custom(w, "postgresql.cnpg.io/v1", "Cluster", "w0", "w1")
				for i := range w.pods {
					w.pods[i].Labels["cnpg.io/instanceRole"] = "replica"
				}
				unready(&w.pods[1])
				owned(w.budget("db", 0, 1, 1, 2), "postgresql.cnpg.io/v1", "Cluster", "db")
			},
		},
		"OtherKindOfAnOperator": {
			reason: "the table says nothing about a pod of this kind", outcome: drain.Undetermined, cause: drain.Operator,
			build: func(w *world) {
				custom(w, "export.kubevirt.io/v1", "VirtualMachineExport", "w0")
				w.budget("db", 0, 1, 1, 1)
			},
		},
		"RequiresAll": {
			reason: "a budget of the user that requires its only pod", outcome: drain.Sticks, cause: eviction.RequiresAll,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0")
				w.budget("cart", 0, 1, 1, 1)
			},
		},
		"Several": {
			reason: "two budgets select the pod, although both allow", outcome: drain.Sticks, cause: eviction.SeveralBudgets,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1", "w2")
				w.budget("cart", 1, 3, 2, 3)
				w.budget("cart", 1, 3, 2, 3)
			},
		},
		"Quota": {
			reason: "the quota refuses the recreated pod, which has no requests (operate-first/operations#400)", outcome: drain.Clear,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0")
				hard := corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("10")}
				w.workloads.Quotas = []corev1.ResourceQuota{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "compute"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
					Status: corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("0")}},
				}}
			},
			reports: func(r drain.Rehearsal) bool {
				return len(r.Pending) == 1 && r.Pending[0].Why == `ResourceQuota "compute" refuses it: it does not specify requests.cpu`
			},
		},
		"Grace": {
			reason: "a pod may take a day to end (Azure/AKS#3008)", outcome: drain.Clear,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(86400))}, "w0")
			},
			reports: func(r drain.Rehearsal) bool {
				return len(r.Graces) == 1 && r.Graces[0].Period() == 24*time.Hour && r.Pools[0].Nodes[0].Grace() == 24*time.Hour
			},
		},
		"Terminating": {
			reason: "a pod with a finalizer has been terminating for an hour", outcome: drain.Sticks, cause: drain.Terminating,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0")
				w.pods[0].DeletionTimestamp, w.pods[0].Finalizers = new(metav1.NewTime(now.Add(-time.Hour))), []string{"example.com/keep"}
			},
		},
		"NoController": {
			reason: "nothing creates the pod again", outcome: drain.Clear,
			build:   func(w *world) { w.pod("debug", "debug", "w1", "", corev1.PodSpec{}) },
			reports: func(r drain.Rehearsal) bool { return len(r.Lost) == 1 && r.Lost[0].Node == "w1" },
		},
		"Unmanaged": {
			reason: "a budget with a percentage expects no pods without a controller", outcome: drain.Sticks, cause: eviction.Unmanaged,
			build: func(w *world) {
				w.pod("debug", "debug", "w1", "", corev1.PodSpec{})
				w.budget("debug", 0, 1, 0, 0)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.expect(t)
		})
	}
}

// complete checks that all that the rehearsal cannot say by a budget is said by a clause.
func complete(t *testing.T, found drain.Rehearsal) {
	t.Helper()
	incomplete := func(text string) bool { return text == "" || strings.HasSuffix(strings.TrimSpace(text), ":") }
	obstacles := slices.Clone(found.Never)
	for _, pool := range found.Pools {
		for _, node := range pool.Stuck {
			obstacles = append(obstacles, node.Obstacles...)
		}
		if (pool.Outcome == drain.Undetermined || pool.Outcome == drain.Blocked) && incomplete(pool.Why) {
			t.Errorf("pool %s is %s without a reason: %q", pool.Name, pool.Outcome, pool.Why)
		}
	}
	for _, each := range obstacles {
		if explained := len(each.Budgets) > 0 && each.Cause != drain.Operator && each.Outcome != eviction.Unknown; !explained &&
			incomplete(each.By) {
			t.Errorf("nothing explains the obstacle %+v", each)
		}
	}
}

func nothingLost(r drain.Rehearsal) bool { return len(r.Lost)+len(r.Pending) == 0 }

// custom adds the pods of an object of another API group on these nodes.
func custom(w *world, apiVersion, kind string, nodes ...string) {
	for i, node := range nodes {
		w.pod(fmt.Sprintf("db-%d", i), "db", node, kind, corev1.PodSpec{}).OwnerReferences[0].APIVersion = apiVersion
	}
}

// guards adds the guards of a static pod, one on each worker.
func guards(w *world) {
	for _, node := range []string{"w0", "w1", "w2"} {
		w.pod("etcd-guard-"+node, "guard", node, "", corev1.PodSpec{}).Namespace = "openshift-etcd"
	}
	w.budget("guard", 1, 3, 2, 3).Namespace = "openshift-etcd"
}

// postgres adds a Cluster of CloudNativePG with that many instances, by its objects.
func postgres(w *world, instances int64) {
	w.machines = append(w.machines, unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": map[string]any{"namespace": "shop", "name": "db"},
		"spec": map[string]any{"instances": instances}, "status": map[string]any{"readyInstances": instances},
	}})
	primary := w.pod("db-1", "db", "w0", "Cluster", corev1.PodSpec{})
	primary.OwnerReferences[0].APIVersion = "postgresql.cnpg.io/v1"
	primary.Labels["cnpg.io/instanceRole"] = "primary"
	owned(w.budget("db", 0, 1, 1, 1), "postgresql.cnpg.io/v1", "Cluster", "db")
}

// kafka adds a pod of Strimzi, by its objects.
func kafka(w *world) {
	broker := w.pod("kafka-0", "kafka", "w0", "StrimziPodSet", corev1.PodSpec{})
	broker.OwnerReferences[0].APIVersion = "core.strimzi.io/v1beta2"
	broker.Labels["strimzi.io/kind"], broker.Labels["strimzi.io/name"] = "Kafka", "shop-kafka"
	owned(w.budget("kafka", 0, 1, 1, 1), "core.strimzi.io/v1beta2", "StrimziPodSet", "kafka")
}

// TestOtherDaemonSet evicts the pod of a DaemonSet of another API group: kubectl compares only the kind, and
// finds no such DaemonSet in apps. Its controller creates it again on its node.
func TestOtherDaemonSet(t *testing.T) {
	t.Parallel()
	w := small()
	w.pod("agent-0", "agent", "w0", "DaemonSet", corev1.PodSpec{
		NodeSelector: map[string]string{corev1.LabelHostname: "w0"}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}).OwnerReferences[0].APIVersion = "apps.kruise.io/v1alpha1"
	input := w.input(t)
	input.DaemonSet = func(string, string) bool { return false }
	if found := drain.Rehearse(input); found.Pools[0].Outcome != drain.Clear || !nothingLost(found) {
		t.Errorf("got %+v, want a pool that is clear, and no pod that is lost", found)
	}
}
