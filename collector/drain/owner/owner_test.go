package owner_test

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/drain/owner"
)

func object(apiVersion, kind string, spec, status map[string]any) unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": "o"}, "spec": spec, "status": status,
	}}
}

func machine(strategy, migratable string) []unstructured.Unstructured {
	condition := map[string]any{"type": "LiveMigratable", "status": migratable}
	if migratable != "" {
		condition["reason"] = "HostDevice"
	}
	return []unstructured.Unstructured{object("kubevirt.io/v1", "VirtualMachineInstance", map[string]any{"evictionStrategy": strategy},
		map[string]any{
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}, condition},
		})}
}

func kubevirt(strategy string) []unstructured.Unstructured {
	return []unstructured.Unstructured{object("kubevirt.io/v1", "KubeVirt",
		map[string]any{"configuration": map[string]any{"evictionStrategy": strategy}}, nil)}
}

// cluster is a Cluster of CloudNativePG with that many instances, all ready, and these other fields of its
// spec.
func cluster(instances int64, spec map[string]any) []unstructured.Unstructured {
	all := map[string]any{"instances": instances}
	maps.Copy(all, spec)
	return []unstructured.Unstructured{object("postgresql.cnpg.io/v1", "Cluster", all, map[string]any{"readyInstances": instances})}
}

func window(fields map[string]any) map[string]any {
	return map[string]any{"nodeMaintenanceWindow": fields}
}

func TestOf(t *testing.T) {
	t.Parallel()
	broker := map[string]string{"strimzi.io/kind": "Kafka", "strimzi.io/name": "shop-kafka"}
	const machines, clusters = "kubevirt.io/v1 VirtualMachineInstance", "postgresql.cnpg.io/v1 Cluster"
	for name, tc := range map[string]struct {
		reason   string
		owner    string // apiVersion and kind
		labels   map[string]string
		objects  []unstructured.Unstructured
		webhooks []string
		want     owner.Behavior
		operator string
	}{
		"Deployment": {reason: "a pod without an operator", owner: "apps/v1 ReplicaSet"},
		"Other":      {reason: "an operator that is not in the table", owner: "db.example.com/v1 Database"},
		"Migratable": {
			reason: "the machine is migrated", owner: machines, objects: machine("LiveMigrate", "True"),
			webhooks: []string{"virt-launcher-eviction-interceptor.kubevirt.io"}, want: owner.Migrates, operator: "KubeVirt",
		},
		"NoWebhook": {
			reason: "nothing starts a migration", owner: machines, objects: machine("LiveMigrate", "True"), want: owner.Adjusts,
			operator: "KubeVirt",
		},
		"NotMigratable": {
			reason: "the webhook denies the eviction", owner: machines, objects: machine("LiveMigrate", "False"),
			want: owner.Stays, operator: "KubeVirt",
		},
		"IfPossible": {
			reason: "a machine that need not be migrated is shut down", owner: machines,
			objects: machine("LiveMigrateIfPossible", "False"), want: owner.Stops, operator: "KubeVirt",
		},
		"DefaultMigrated": {
			reason: "a machine without a strategy has that of the cluster", owner: machines, objects: append(machine("", "True"),
				kubevirt("LiveMigrate")...), webhooks: []string{"virt-launcher-eviction-interceptor.kubevirt.io"}, want: owner.Migrates,
			operator: "KubeVirt",
		},
		"DefaultStays": {
			reason: "a machine without a strategy has that of the cluster", owner: machines,
			objects: append(machine("", "False"), kubevirt("LiveMigrate")...), want: owner.Stays, operator: "KubeVirt",
		},
		"DefaultNone": {
			reason: "the cluster has no strategy either: the machine is shut down", owner: machines,
			objects: append(machine("", "True"), kubevirt("")...), want: owner.Stops, operator: "KubeVirt",
		},
		"DefaultUnread": {
			reason: "the strategy of the cluster is not known", owner: machines, objects: machine("", "False"),
			want: owner.Adjusts, operator: "KubeVirt",
		},
		"NoReason": {
			reason: "the condition gives no reason", owner: machines, objects: machine("LiveMigrate", ""), want: owner.Stays,
			operator: "KubeVirt",
		},
		"OtherKind": {reason: "the table has no row for what is no machine", owner: "export.kubevirt.io/v1 VirtualMachineExport"},
		"OtherGroup": {
			reason: "the end of a group is that after a dot", owner: "notkubevirt.io/v1 VirtualMachineInstance",
			objects: machine("LiveMigrate", "False"),
		},
		"OtherObject": {
			reason: "an object of another group has the name of the Cluster", owner: clusters,
			objects: []unstructured.Unstructured{object("cluster.x-k8s.io/v1beta1", "Cluster", nil, map[string]any{"readyInstances": int64(3)})},
			want:    owner.Adjusts, operator: "CloudNativePG",
		},
		"External": {
			reason: "another controller migrates it", owner: machines, objects: machine("External", "True"), want: owner.Adjusts,
			operator: "KubeVirt",
		},
		"MachineUnread": {reason: "the machine could not be read", owner: machines, want: owner.Adjusts, operator: "KubeVirt"},
		"Primary": {
			reason: "another instance becomes the primary", owner: clusters, objects: cluster(3, nil), want: owner.Moves,
			operator: "CloudNativePG",
		},
		"OnlyInstance": {
			reason: "there is no other instance, and its budget stays", owner: clusters, objects: cluster(1, nil),
			want: owner.Holds, operator: "CloudNativePG",
		},
		"Maintained": {
			reason: "a maintenance window removes the budget", owner: clusters,
			objects: cluster(1, window(map[string]any{"inProgress": true})), want: owner.Stops, operator: "CloudNativePG",
		},
		"VolumeLost": {
			reason: "a maintenance window keeps the budget of an instance whose volume is not reused", owner: clusters,
			objects: cluster(1, window(map[string]any{"inProgress": true, "reusePVC": false})), want: owner.Holds, operator: "CloudNativePG",
		},
		"MaintainedHA": {
			reason: "a maintenance window keeps the budget of a primary, which hands over", owner: clusters,
			objects: cluster(3, window(map[string]any{"inProgress": true})), want: owner.Moves, operator: "CloudNativePG",
		},
		"NoBudgets": {
			reason: "the budgets of the Cluster are disabled", owner: clusters,
			objects: cluster(1, map[string]any{"enablePDB": false}), want: owner.Stops, operator: "CloudNativePG",
		},
		"Replica": {
			reason: "the budget of replicas allows one", owner: clusters,
			labels: map[string]string{"cnpg.io/instanceRole": "replica"}, operator: "CloudNativePG",
		},
		"DrainCleaner": {
			reason: "the drain cleaner has the operator restart the pod", owner: "core.strimzi.io/v1beta2 StrimziPodSet",
			labels: broker, webhooks: []string{"strimzi-drain-cleaner.strimzi.io"}, want: owner.Moves, operator: "Strimzi",
		},
		"KafkaConnect": {
			reason: "the drain cleaner ignores what is not a broker", owner: "core.strimzi.io/v1beta2 StrimziPodSet",
			labels:   map[string]string{"strimzi.io/kind": "KafkaConnect", "strimzi.io/name": "shop-connect"},
			webhooks: []string{"strimzi-drain-cleaner.strimzi.io"}, operator: "Strimzi",
		},
		"NoCleaner": {
			reason: "without it the budget decides", owner: "core.strimzi.io/v1beta2 StrimziPodSet", labels: broker,
			operator: "Strimzi",
		},
		"Longhorn": {
			reason: "the operator removes its budget", owner: "longhorn.io/v1beta2 InstanceManager", want: owner.Adjusts,
			operator: "Longhorn",
		},
		"Portworx": {
			reason: "the operator sets its budget", owner: "core.libopenstorage.org/v1 StorageCluster", want: owner.Adjusts,
			operator: "Portworx",
		},
		"Rook": {
			reason: "recognized by a label", owner: "apps/v1 ReplicaSet", labels: map[string]string{"ceph-osd-id": "0"},
			want: owner.Adjusts, operator: "Rook",
		},
		"Elastic": {
			reason: "recognized by a label", owner: "apps/v1 StatefulSet",
			labels: map[string]string{"elasticsearch.k8s.elastic.co/cluster-name": "logs"}, want: owner.Adjusts,
			operator: "Elastic Cloud on Kubernetes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version, kind, _ := strings.Cut(tc.owner, " ")
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "p", Labels: tc.labels,
				OwnerReferences: []metav1.OwnerReference{
					{APIVersion: version, Kind: kind, Name: "o", Controller: new(true)},
				},
			}}
			got := owner.New(tc.objects, tc.webhooks).Of(pod)
			if got.Behavior != tc.want || got.Operator != tc.operator {
				t.Errorf("%s: got %+v, want %s of %s", tc.reason, got, tc.want, tc.operator)
			}
			if (got.Operator == "") != (got.Why == "") || strings.Contains(got.Why, "nil") || strings.HasSuffix(strings.TrimSpace(got.Why), ":") {
				t.Errorf("%s: the reason %q of %q is not a clause", tc.reason, got.Why, got.Operator)
			}
		})
	}
}

// TestPodsWithoutController has the pods that operators of OpenShift create without a controller.
func TestPodsWithoutController(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, namespace, pod, app string
		owner                       metav1.OwnerReference
		want                        owner.Behavior
	}{
		"Guard": {
			reason: "its controller creates it for each schedulable node", namespace: "openshift-kube-apiserver",
			pod: "kube-apiserver-guard-m0", app: "guard", want: owner.Returns,
		},
		"Installer": {
			reason: "the revision that owns it is no controller", namespace: "openshift-etcd", pod: "installer-7-m0", app: "installer",
			owner: metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "revision-status-7"}, want: owner.Returns,
		},
		"Pruner": {
			reason: "it is created for each node, too", namespace: "openshift-kube-scheduler", pod: "revision-pruner-7-m0",
			app: "pruner", want: owner.Returns,
		},
		"Deployment": {
			reason: "the guards of etcd were those of a Deployment", namespace: "openshift-etcd", pod: "etcd-quorum-guard-1",
			app: "guard", owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "etcd-quorum-guard", Controller: new(true)},
		},
		"OtherNode": {reason: "it is not the guard of its node", namespace: "openshift-etcd", pod: "etcd-guard-m1", app: "guard"},
		"Elsewhere": {reason: "the label means nothing in another namespace", namespace: "shop", pod: "etcd-guard-m0", app: "guard"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: tc.pod, Labels: map[string]string{"app": tc.app}},
				Spec:       corev1.PodSpec{NodeName: "m0"},
			}
			if tc.owner.Kind != "" {
				pod.OwnerReferences = []metav1.OwnerReference{tc.owner}
			}
			if got := owner.New(nil, nil).Of(pod); got.Behavior != tc.want {
				t.Errorf("%s: got %+v, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
