package drain_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/eviction"
)

// mostUnavailable makes a budget one of maxUnavailable, whose expected pods are a scale.
func mostUnavailable(budget *policyv1.PodDisruptionBudget, number int32) {
	budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = nil, new(intstr.FromInt32(number))
}

// deployed gives the ReplicaSets a Deployment with that many replicas.
func deployed(w *world, replicas string) {
	for i := range w.workloads.ReplicaSets {
		set := &w.workloads.ReplicaSets[i]
		set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "cart", Controller: new(true)}}
		set.Annotations = map[string]string{"deployment.kubernetes.io/desired-replicas": replicas}
	}
}

// canary adds a Deployment of two pods that is paused in the middle: its second ReplicaSet cannot create a pod.
func canary(w *world) {
	w.deploy("cart", corev1.PodSpec{}, "w1")
	w.deploy("next", corev1.PodSpec{}, "w0")
	deployed(w, "2")
	w.pods[1].Labels["app"], w.workloads.ReplicaSets[1].Spec.Template.Labels["app"] = "cart", "cart"
	w.workloads.ReplicaSets[1].Status.Conditions = []appsv1.ReplicaSetCondition{{
		Type:   appsv1.ReplicaSetReplicaFailure,
		Status: corev1.ConditionTrue, Message: "the registry refuses it",
	}}
	mostUnavailable(w.budget("cart", 1, 2, 1, 2), 1)
}

// crowded has two pods of a budget on w0, of which one may be away, full nodes beside it, and an autoscaler.
func crowded(w *world) {
	w.deploy("cart", corev1.PodSpec{NodeSelector: map[string]string{"role": "worker"}, Containers: []corev1.Container{{
		Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
	}}}, "w0", "w0")
	w.fill("next", "w1", "w2")
	w.budget("cart", 1, 2, 1, 2)
	w.room = []drain.Room{{MachineSet: drain.Reference{Namespace: "openshift-machine-api", Name: "a"}, Node: "w0", Machines: 2}}
}

// TestReported has the states of clusters that were really drained, and predicted wrongly once.
func TestReported(t *testing.T) {
	t.Parallel()
	deleted := metav1.NewTime(now)
	for name, tc := range map[string]stateOf{
		"OwnerIsBeingDeleted": {
			reason: "a ReplicaSet with a deletionTimestamp waits for its finalizers, and creates nothing", outcome: drain.Sticks,
			cause: eviction.TooFewHealthy,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1", "w2")
				w.workloads.ReplicaSets[0].DeletionTimestamp = &deleted
				w.budget("cart", 1, 3, 2, 3)
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Lost) == 1 },
		},
		"StatefulSetIsBeingDeleted": {
			reason: "so does a StatefulSet", outcome: drain.Clear,
			build: func(w *world) {
				w.claiming("db", "w0")
				w.workloads.StatefulSets[0].DeletionTimestamp = &deleted
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Lost) == 1 && !r.Lost[0].Uncertain },
		},
		"Canary": {
			reason: "the budget expects the scale of the Deployment, and not that of the ReplicaSets with pods", outcome: drain.Sticks,
			cause: eviction.TooFewHealthy,
			build: canary,
		},
		"CanaryOfThree": {
			reason: "a Deployment with one more replica allows one more pod to be away", outcome: drain.Clear,
			build: func(w *world) {
				canary(w)
				mostUnavailable(&w.budgets[0], 2)
				w.budgets[0].Status.DisruptionsAllowed, w.budgets[0].Status.DesiredHealthy = 2, 0
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Pending) == 1 },
		},
		"SharedClaim": {
			reason:  "a node has a ReadWriteOnce volume at a time: the replacement waits for its sibling, which its budget keeps",
			outcome: drain.Sticks, cause: eviction.TooFewHealthy,
			build: func(w *world) {
				w.deploy("cart", w.shared("data", corev1.ReadWriteOnce), "w0", "w0")
				w.budget("cart", 1, 2, 1, 2)
			},
		},
		"SharedClaimOfATypeBeforeCSI": {
			reason: "a volume of the type before CSI is attached, too", outcome: drain.Sticks, cause: eviction.TooFewHealthy,
			build: func(w *world) {
				w.deploy("cart", w.shared("data", corev1.ReadWriteOnce), "w0", "w0")
				w.volumes[0].Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
					VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "data"},
				}
				w.budget("cart", 1, 2, 1, 2)
			},
		},
		"SharedClaimOfNFS": {
			reason: "a volume that is only mounted may be on any number of nodes, whatever its claim asks for", outcome: drain.Clear,
			build: func(w *world) {
				w.deploy("cart", w.shared("data", corev1.ReadWriteOnce), "w0", "w0")
				w.volumes[0].Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "192.0.2.1"}}
				w.budget("cart", 1, 2, 1, 2)
			},
		},
		"SharedClaimWithoutBudget": {
			reason: "both leave the node, and the volume with them", outcome: drain.Clear,
			build:   func(w *world) { w.deploy("cart", w.shared("data", corev1.ReadWriteOnce), "w0", "w0") },
			reports: nothingLost,
		},
		"SharedFiles": {
			reason: "the volumes of this driver are not attached", outcome: drain.Clear,
			build: func(w *world) {
				w.deploy("cart", w.shared("data", corev1.ReadWriteOnce), "w0", "w0")
				w.drivers = []storagev1.CSIDriver{{
					ObjectMeta: metav1.ObjectMeta{Name: "ebs.csi.aws.com"},
					Spec:       storagev1.CSIDriverSpec{AttachRequired: new(false)},
				}}
				w.budget("cart", 1, 2, 1, 2)
			},
		},
		"SharedByTwoNodes": {
			reason: "pods run on two nodes with it, whatever the claim asks for", outcome: drain.Clear,
			build: func(w *world) {
				w.deploy("cart", w.shared("data", corev1.ReadWriteOnce), "w0", "w1")
				w.budget("cart", 1, 2, 1, 2)
			},
		},
		"SharedByMany": {
			reason: "a ReadWriteMany volume may be anywhere", outcome: drain.Clear,
			build: func(w *world) {
				w.deploy("cart", w.shared("data", corev1.ReadWriteMany), "w0", "w0")
				w.budget("cart", 1, 2, 1, 2)
			},
		},
		"VolumeOfManyPods": {
			reason: "a node attaches a volume once, for all of its pods", outcome: drain.Clear,
			build: func(w *world) {
				w.deploy("cart", w.shared("data", corev1.ReadWriteMany), "w0", "w0", "w1", "w1")
				for _, node := range w.nodes {
					w.limits = append(w.limits, storagev1.CSINode{
						ObjectMeta: metav1.ObjectMeta{Name: node.Name},
						Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
							Name: "ebs.csi.aws.com", Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(1))},
						}}},
					})
				}
			},
			reports: nothingLost,
		},
		"TooManyVolumes": {
			reason: "no other node attaches one more volume", outcome: drain.Clear,
			build: func(w *world) {
				for _, app := range []string{"a", "b", "c"} {
					w.deploy(app, w.shared(app, corev1.ReadWriteOnce), map[string]string{"a": "w0", "b": "w1", "c": "w2"}[app])
				}
				for _, node := range w.nodes {
					w.limits = append(w.limits, storagev1.CSINode{
						ObjectMeta: metav1.ObjectMeta{Name: node.Name},
						Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
							Name: "ebs.csi.aws.com", Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(1))},
						}}},
					})
				}
				w.nodes = w.nodes[:3]
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Lost) == 0 && r.Pools[0].Nodes[0].Evicted == 1 },
		},
		"ClaimIsBeingDeleted": {
			reason: "the claim goes with its pod, the StatefulSet makes both again, and a spare volume is there", outcome: drain.Clear,
			build: func(w *world) {
				w.claiming("db", "w0", "w1")
				w.claims[0].DeletionTimestamp = &deleted
				w.spare("other")
				w.budget("db", 1, 2, 1, 2)
			},
			reports: nothingLost,
		},
		"ClaimIsBeingDeletedWithoutSpare": {
			reason: "whether a volume is provisioned for the new claim is not known", outcome: drain.Undetermined, cause: eviction.TooFewHealthy,
			build: func(w *world) {
				w.claiming("db", "w0", "w1")
				w.claims[0].DeletionTimestamp = &deleted
				w.budget("db", 1, 2, 1, 2)
			},
		},
		"ClaimOfADeploymentIsBeingDeleted": {
			reason: "nothing makes the claim of a Deployment again", outcome: drain.Sticks, cause: eviction.TooFewHealthy,
			build: func(w *world) {
				w.deploy("cart", w.shared("data", corev1.ReadWriteMany), "w0", "w1")
				w.claims[0].DeletionTimestamp = &deleted
				w.budget("cart", 1, 2, 1, 2)
			},
		},
		"GateComesAgain": {
			reason: "the gate of the template was lifted from the pod, and who lifts it again is not known", outcome: drain.Undetermined,
			cause: eviction.TooFewHealthy,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1")
				deployed(w, "2")
				w.workloads.ReplicaSets[0].Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
				w.budget("cart", 1, 2, 1, 2)
			},
		},
		"NamespaceSelectsOthers": {
			reason: "the namespace selects nodes since the pods were made, and there are none", outcome: drain.Sticks, cause: eviction.TooFewHealthy,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1")
				deployed(w, "2")
				w.workloads.Namespaces = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
					Name:        "shop",
					Annotations: map[string]string{"openshift.io/node-selector": "role=gpu"},
				}}}
				w.budget("cart", 1, 2, 1, 2)
			},
		},
		"FinalizerComesAgain": {
			reason:  "the finalizer of the template was removed from the pod: the next one has it when its node is drained",
			outcome: drain.Undetermined, cause: drain.Terminating,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{NodeSelector: map[string]string{"role": "worker"}}, "w0")
				deployed(w, "1")
				w.workloads.ReplicaSets[0].Spec.Template.Finalizers = []string{"example.com/keep"}
			},
		},
		"SyncFailedByThePod": {
			reason: "the budget fails by a pod without a scale, which the drain removes before the others", outcome: drain.Clear,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w1", "w2")
				w.workloads.Jobs = []batchv1.Job{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}}
				ended := w.pod("cart-other", "cart", "w0", "Job", corev1.PodSpec{})
				ended.OwnerReferences[0].APIVersion, ended.Status = "batch/v1", corev1.PodStatus{Phase: corev1.PodSucceeded}
				budget := w.budget("cart", 0, 2, 1, 2)
				mostUnavailable(budget, 1)
				budget.Status.Conditions = []metav1.Condition{{
					Type: policyv1.DisruptionAllowedCondition, Reason: policyv1.SyncFailedReason,
					Message: "found no controllers",
				}}
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Never) == 0 },
		},
		"Task": {
			reason: "the pod of a task of another API group runs to completion: whether it is repeated is not known", outcome: drain.Clear,
			build: func(w *world) {
				w.pod("build", "build", "w0", "TaskRun",
					corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}).OwnerReferences[0].APIVersion = "tekton.dev/v1"
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Lost) == 1 && r.Lost[0].Uncertain && r.Lost[0].Why != "" },
		},
		"LastTryOfAnIndex": {
			reason: "the index of the Job may not fail again", outcome: drain.Clear,
			build: func(w *world) {
				w.workloads.Jobs = []batchv1.Job{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "train"},
					Spec:       batchv1.JobSpec{BackoffLimitPerIndex: new(int32(0))},
				}}
				w.pod("train-0", "train", "w0", "Job",
					corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}).OwnerReferences[0].APIVersion = "batch/v1"
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Lost) == 1 && !r.Lost[0].Uncertain },
		},
		"TryOfAnIndex": {
			reason: "the index of the Job may fail once more", outcome: drain.Clear,
			build: func(w *world) {
				w.workloads.Jobs = []batchv1.Job{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "train"},
					Spec:       batchv1.JobSpec{BackoffLimitPerIndex: new(int32(1))},
				}}
				w.pod("train-0", "train", "w0", "Job",
					corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}).OwnerReferences[0].APIVersion = "batch/v1"
			},
			reports: nothingLost,
		},
		"Preempts": {
			reason: "a pod of a higher priority gets the place of another one on each node", outcome: drain.Clear,
			build: func(w *world) {
				whole := corev1.PodSpec{
					NodeSelector: map[string]string{"role": "worker"},
					Containers: []corev1.Container{{
						Name:      "c",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: w.nodes[0].Status.Allocatable[corev1.ResourceCPU]}},
					}},
				}
				high := *whole.DeepCopy()
				high.Priority = new(int32(1000))
				w.deploy("high", high, "w0")
				w.deploy("low", whole, "w1", "w2")
				w.budget("high", 1, 1, 0, 1)
			},
			reports: func(r drain.Rehearsal) bool { return nothingLost(r) && r.Preempted > 0 },
		},
		"MissingReplica": {
			reason: "the quota is used up: one of the replicas is without a node before and after, whichever it is", outcome: drain.Clear,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1")
				w.lack(0)
				w.limit("2")
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Pending) == 1 && !r.Pending[0].Uncertain },
		},
		"MissingReplicaTakesTheRoom": {
			reason: "the replica that another workload lacks may take the room in the quota of an evicted pod", outcome: drain.Undetermined,
			cause: eviction.TooFewHealthy,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1")
				w.deploy("next", corev1.PodSpec{}, "w2")
				w.lack(1)
				w.limit("3")
				w.budget("cart", 1, 2, 1, 2)
			},
		},
		"MissingReplicaWithoutAReason": {
			reason: "why the replica does not exist is not known, so that it helps no budget for certain", outcome: drain.Undetermined,
			cause: eviction.TooFewHealthy,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1")
				w.lack(0)
				w.budget("cart", 0, 2, 2, 3)
			},
		},
		"MissingReplicaIsRefused": {
			reason: "the ReplicaSet reports that its creation fails", outcome: drain.Sticks, cause: eviction.TooFewHealthy,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1")
				w.lack(0)
				w.workloads.ReplicaSets[0].Status.Conditions = []appsv1.ReplicaSetCondition{{
					Type:   appsv1.ReplicaSetReplicaFailure,
					Status: corev1.ConditionTrue, Message: "denied",
				}}
				w.budget("cart", 0, 2, 2, 3)
			},
		},
		"Autoscaler": {
			reason: "no other node has room for the first of two pods, and the cluster autoscaler adds one", outcome: drain.Clear,
			build:   crowded,
			reports: func(r drain.Rehearsal) bool { return nothingLost(r) && len(r.Expanded) > 0 },
		},
		"AutoscalerWithoutRoom": {
			reason: "the MachineSet may have no other machine", outcome: drain.Sticks, cause: eviction.TooFewHealthy,
			build: func(w *world) {
				crowded(w)
				w.room = nil
			},
		},
		"AutoscalerOfOtherNodes": {
			reason: "the new machine has none of the labels that the pods select", outcome: drain.Sticks, cause: eviction.TooFewHealthy,
			build: func(w *world) {
				crowded(w)
				w.room[0].Node = "i0"
			},
		},
		"AutoscalerForImportantPods": {
			reason: "the autoscaler adds no machine for pods of this priority", outcome: drain.Clear,
			build: func(w *world) {
				w.fill("cart", "w0", "w1", "w2")
				w.deploy("debug", corev1.PodSpec{NodeSelector: map[string]string{"role": "infra"}, Priority: new(int32(-20))}, "w0")
				w.nodes[3].Spec.Unschedulable = true
				w.room = []drain.Room{{Node: "i0", Machines: 1, Priority: -10}}
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Expanded) == 0 && len(r.Pending) == 1 },
		},
		"AutoscalerOfOneZone": {
			reason: "whether the zone of the new machine has too many pods is not known", outcome: drain.Undetermined, cause: eviction.TooFewHealthy,
			build: func(w *world) {
				w.inZones("a", "a", "b")
				crowded(w)
				template := &w.workloads.ReplicaSets[0].Spec.Template
				template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
					MaxSkew: 2, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
					LabelSelector: &metav1.LabelSelector{MatchLabels: template.Labels},
				}}
				for i := range 2 {
					w.pods[i].Spec.TopologySpreadConstraints = template.Spec.TopologySpreadConstraints
				}
			},
		},
		"AutoscalerOfOneMachine": {
			reason: "two nodes are drained at a time, and one new machine has room for one pod", outcome: drain.Clear,
			build: func(w *world) {
				w.pools[0].Spec.MaxUnavailable = new(intstr.FromInt32(3))
				w.fill("cart", "w0", "w1")
				w.fill("next", "w2")
				w.room = []drain.Room{{Node: "w0", Machines: 1}}
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Expanded) == 1 && nothingLost(r) },
		},
		"Together": {
			reason: "all nodes with a pod of the workload are drained at the same time", outcome: drain.Clear,
			build: func(w *world) {
				w.pools[0].Spec.MaxUnavailable = new(intstr.FromInt32(2))
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1")
				deployed(w, "2")
			},
			reports: func(r drain.Rehearsal) bool {
				return len(r.Together) == 1 && r.Together[0].Kind == "Deployment" && r.Together[0].Replicas == 2
			},
		},
		"TogetherByOneNode": {
			reason: "both pods are on one node, whose drain interrupts them alone, too", outcome: drain.Clear,
			build: func(w *world) {
				w.pools[0].Spec.MaxUnavailable = new(intstr.FromInt32(2))
				w.deploy("cart", corev1.PodSpec{}, "w0", "w0")
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Together) == 0 },
		},
		"TogetherBehindABudget": {
			reason: "the budget keeps one of them ready", outcome: drain.Clear,
			build: func(w *world) {
				w.pools[0].Spec.MaxUnavailable = new(intstr.FromInt32(2))
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1")
				w.budget("cart", 1, 2, 1, 2)
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Together) == 0 },
		},
		"SticksByTwoNodes": {
			reason:  "of two nodes that are drained at a time, each may keep a pod of which the other has lost one; one node at a time does not",
			outcome: drain.Undetermined, cause: eviction.TooFewHealthy,
			build: func(w *world) {
				w.pools[0].Spec.MaxUnavailable = new(intstr.FromInt32(2))
				for _, app := range []string{"cart", "next"} {
					w.deploy(app, corev1.PodSpec{NodeSelector: map[string]string{"role": "worker"}}, "w0", "w1")
					w.budget(app, 1, 2, 1, 2)
				}
				w.nodes[2].Labels["role"] = "gpu"
			},
			reports: func(r drain.Rehearsal) bool { return r.Pools[0].Single },
		},
		"AddressOfOneNode": {
			reason: "one node can have the address", outcome: drain.Clear,
			build: func(w *world) {
				w.addresses = []drain.Address{{Kind: "EgressIP", Name: "one", Nodes: []string{"w0"}}, {
					Kind: "EgressIP", Name: "two",
					Nodes: []string{"w0", "w1"},
				}, {Kind: "EgressIP", Name: "kept", Nodes: []string{"i0"}}, {Kind: "EgressIP", Name: "none"}}
			},
			reports: func(r drain.Rehearsal) bool { return len(r.Addresses) == 1 && r.Addresses[0].Name == "one" },
		},
		"PolicyIsNewer": {
			reason: "the policy came after the pods, and whether it denies the next one is not known", outcome: drain.Undetermined,
			cause: eviction.TooFewHealthy,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1")
				deployed(w, "2")
				w.budget("cart", 1, 2, 1, 2)
				w.denied(now)
			},
		},
		"PolicyIsOlder": {
			reason: "the policy has admitted a pod of the template", outcome: drain.Clear,
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1")
				deployed(w, "2")
				w.pods[1].CreationTimestamp = metav1.NewTime(now.Add(time.Minute))
				w.budget("cart", 1, 2, 1, 2)
				w.denied(now)
			},
			reports: nothingLost,
		},
		"SharedClaimOfThree": {
			reason: "of the pods that wait for the volume on other nodes, one has it once the last one has left the node", outcome: drain.Clear,
			build: func(w *world) {
				w.deploy("cart", w.shared("data", corev1.ReadWriteOnce), "w0", "w0", "w0")
				w.budget("cart", 3, 3, 0, 3)
			},
			reports: nothingLost,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.expect(t)
		})
	}
}
