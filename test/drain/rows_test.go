package drain_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	product "github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/test/drain"
	"github.com/openshift/update-preflight/test/drain/lab"
)

// row is a cluster whose drains a rehearsal without its kind of object predicts wrongly.
type row struct {
	reason string
	build  func(*lab.Cluster)
	// pool is the pool that matters; empty for that of the workers.
	pool string
	// predicted are the outcomes of the pool that the program may state, and pending is how many pods stay without
	// a node for certain, where the pool is clear; lost is how many pods may not be created again.
	predicted     []product.Outcome
	pending, lost int
	// sticks and absent are what happens: whether the drains of the pool stick, and the pods without a node, by
	// controller, where they do not.
	sticks bool
	absent string
	// counted says that a quota decides about the pods. Its controller counts what it has seen, so that a pod too many
	// is admitted where one is evicted while another one is created.
	counted bool
}

func rows() map[string]row {
	return map[string]row{
		"guards": {
			reason: "the controller of guards creates them again once their node is schedulable", pool: "master",
			build: func(c *lab.Cluster) {
				workers(c, 2, 4)
				for i := range 3 {
					c.AddNode(lab.NodeOf{Name: fmt.Sprintf("%s-m%d", c.Namespace, i), Pool: "master", CPU: 4})
				}
				c.AddPool("master")
				for _, component := range []string{"etcd", "kube-apiserver"} {
					c.Guard(component, c.Namespace+"-m0", c.Namespace+"-m1", c.Namespace+"-m2")
				}
			},
			predicted: []product.Outcome{product.Clear},
		},
		"ordered": {
			reason: "an OrderedReady StatefulSet creates no pod while one with a lower ordinal is not ready",
			build: func(c *lab.Cluster) {
				workers(c, 4, 4)
				stateful(c, 3).Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
				c.Sicken("db", 0)
				protect(c, policyv1.PodDisruptionBudgetSpec{MinAvailable: one()})
			},
			predicted: []product.Outcome{product.Sticks}, sticks: true,
		},
		"quota": {
			reason: "a quota below its use costs one pod, and not each that is evicted",
			build: func(c *lab.Cluster) {
				workers(c, 4, 4)
				of := dbTemplate("100m")
				of.Spec.Affinity = nil
				of.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
					MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: db(),
				}}
				c.Deployments = append(c.Deployments, appsv1.Deployment{
					ObjectMeta: of.named(c),
					Spec:       appsv1.DeploymentSpec{Replicas: new(int32(4)), Selector: db(), Template: of.PodTemplateSpec},
				})
				c.Quotas = append(c.Quotas, corev1.ResourceQuota{
					ObjectMeta: of.named(c),
					Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")}},
				})
				protect(c, policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(2))})
			},
			predicted: []product.Outcome{product.Clear}, pending: 1, absent: "1", counted: true,
		},
		"template-selector": {
			reason: "the replacement is made from the template of now, whose nodes there are not",
			build: func(c *lab.Cluster) {
				workers(c, 4, 4)
				set := stateful(c, 3)
				set.Spec.UpdateStrategy.Type, set.Spec.PodManagementPolicy = appsv1.OnDeleteStatefulSetStrategyType, appsv1.ParallelPodManagement
				c.Changes = append(c.Changes, lab.Change{
					GroupVersionKind: lab.StatefulSet(), Namespace: c.Namespace, Name: "db",
					Patch: `{"spec":{"template":{"spec":{"nodeSelector":{"disk":"nvme"}}}}}`,
				})
				protect(c, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: one()})
			},
			predicted: []product.Outcome{product.Sticks}, sticks: true,
		},
		"template-requests": {
			reason: "the replacement is made from the template of now, which requests more than a node has",
			build: func(c *lab.Cluster) {
				workers(c, 3, 2)
				of := dbTemplate("100m")
				c.ReplicaSets = append(c.ReplicaSets, appsv1.ReplicaSet{
					ObjectMeta: of.named(c),
					Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(2)), Selector: db(), Template: of.PodTemplateSpec},
				})
				c.Changes = append(c.Changes, lab.Change{
					GroupVersionKind: lab.ReplicaSet(), Namespace: c.Namespace, Name: "db",
					Patch: `{"spec":{"template":{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"3"}}}]}}}}`,
				})
				protect(c, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: one()})
			},
			predicted: []product.Outcome{product.Sticks}, sticks: true,
		},
		"finalizer": {
			reason: "the eviction is granted, and the pod stays until its finalizer is removed",
			build: func(c *lab.Cluster) {
				workers(c, 4, 4)
				of := dbTemplate("100m")
				of.Finalizers = []string{lab.Foreign}
				c.Deployments = append(c.Deployments, appsv1.Deployment{
					ObjectMeta: of.named(c),
					Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: db(), Template: of.PodTemplateSpec},
				})
			},
			predicted: []product.Outcome{product.Sticks, product.Undetermined}, sticks: true,
		},
		"other-statefulset": {
			reason: "a StatefulSet of another API group creates its pods again",
			build: func(c *lab.Cluster) {
				workers(c, 4, 4)
				c.Operate(lab.KruiseStatefulSet(), lab.Operand{Name: "db", Replicas: 3, Template: dbTemplate("100m").PodTemplateSpec})
				protect(c, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: one()})
			},
			predicted: []product.Outcome{product.Clear, product.Undetermined},
		},
		"configuring": {
			reason: "a node in the middle of its configuration is available after it",
			build: func(c *lab.Cluster) {
				workers(c, 3, 4)
				c.Nodes[1].Annotations[lab.DaemonState], c.Nodes[1].Annotations[lab.DesiredConfig] = lab.Working, "b"
			},
			predicted: []product.Outcome{product.Clear, product.Undetermined},
		},
		"job": {
			reason: "a budget of the pods of a Job is never computed, whose status has no generation",
			build: func(c *lab.Cluster) {
				workers(c, 4, 4)
				of := dbTemplate("100m")
				delete(of.Annotations, lab.AnnotationReady)
				of.Annotations[lab.AnnotationTakes], of.Spec.Affinity, of.Spec.RestartPolicy = "1h", nil, corev1.RestartPolicyNever
				c.Jobs = append(c.Jobs, batchv1.Job{
					ObjectMeta: of.named(c),
					Spec:       batchv1.JobSpec{Parallelism: new(int32(2)), Completions: new(int32(2)), Template: of.PodTemplateSpec},
				})
				protect(c, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: one()})
			},
			predicted: []product.Outcome{product.Sticks}, sticks: true,
		},
		"instances": {
			reason: "CloudNativePG has another instance, and the budget of its replicas allows one to be evicted",
			build: func(c *lab.Cluster) {
				workers(c, 4, 4)
				owner := c.Operate(lab.PostgresCluster(), lab.Operand{Name: "db", Replicas: 3, Template: dbTemplate("100m").PodTemplateSpec})
				owner.Object["spec"] = map[string]any{"instances": int64(3)}
				owner.Object["status"] = map[string]any{"instances": int64(3), "readyInstances": int64(3)}
				for i := range c.Operated {
					pod := &c.Operated[i]
					role := "replica"
					if i == 0 {
						role = "primary"
					}
					pod.Labels = maps.Clone(pod.Labels)
					pod.Labels["cnpg.io/cluster"], pod.Labels["cnpg.io/instanceRole"] = "db", role
				}
				protect(c, policyv1.PodDisruptionBudgetSpec{MinAvailable: one()})
				c.LateBudgets[0].OwnerReferences = c.Operated[0].OwnerReferences
				c.LateBudgets[0].Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"cnpg.io/instanceRole": "replica"}}
			},
			predicted: []product.Outcome{product.Clear},
		},
		"runtime-gone": {
			reason: "the API server refuses the replacement, whose RuntimeClass was deleted",
			build: func(c *lab.Cluster) {
				kata := c.Namespace + "-kata"
				c.Objects = append(c.Objects, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: kata}, Handler: "runc"})
				guarded(c).Spec.Template.Spec.RuntimeClassName = &kata
				c.Changes = append(c.Changes, lab.Change{GroupVersionKind: nodev1.SchemeGroupVersion.WithKind("RuntimeClass"), Name: kata})
			},
			predicted: []product.Outcome{product.Sticks}, sticks: true,
		},
		"owner-leaves": {
			reason: "a StatefulSet with a deletionTimestamp waits for its finalizer, and creates no pod",
			build: func(c *lab.Cluster) {
				workers(c, 4, 4)
				set := stateful(c, 3)
				set.Finalizers, set.Spec.PodManagementPolicy = []string{lab.Removed}, appsv1.ParallelPodManagement
				c.Changes = append(c.Changes, lab.Change{GroupVersionKind: lab.StatefulSet(), Namespace: c.Namespace, Name: "db"})
				protect(c, policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(2))})
			},
			predicted: []product.Outcome{product.Sticks}, lost: 1, sticks: true,
		},
		"limit-ratio": {
			reason: "a LimitRange that is newer than the pods refuses the ratio of their limits",
			build: func(c *lab.Cluster) {
				guarded(c).Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
				c.Limits = append(c.Limits, corev1.LimitRange{
					ObjectMeta: podTemplate{}.named(c),
					Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
						Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
					}}},
				})
			},
			predicted: []product.Outcome{product.Sticks}, sticks: true,
		},
		"canary": {
			reason: "two ReplicaSets of a Deployment are paused, and the budget expects the scale of the Deployment",
			build: func(c *lab.Cluster) {
				set := guarded(c)
				set.Spec.Template.Spec.ServiceAccountName = "web"
				set.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(0)), MaxUnavailable: one()}
				c.LateBudgets[0].Spec.MinAvailable, c.LateBudgets[0].Spec.MaxUnavailable = nil, one()
				c.Objects = append(c.Objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "web"}})
				deployment := lab.Change{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: c.Namespace, Name: "db"}
				next, paused := deployment, deployment
				next.Patch, next.Settles = fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, lab.AnnotationReady,
					lab.NeverReady), true
				paused.Patch = `{"spec":{"paused":true}}`
				c.Changes = append(c.Changes, next, paused,
					lab.Change{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), Namespace: c.Namespace, Name: "web"})
			},
			predicted: []product.Outcome{product.Sticks}, sticks: true,
		},
		"claim-leaves": {
			reason: "a claim that is being deleted goes with its pod, and the StatefulSet creates both again, for a spare volume",
			build: func(c *lab.Cluster) {
				workers(c, 4, 4)
				class := c.Namespace + "-spare"
				c.Objects = append(c.Objects, &storagev1.StorageClass{
					ObjectMeta:  metav1.ObjectMeta{Name: class},
					Provisioner: "kubernetes.io/no-provisioner",
				})
				size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
				for i := range 6 {
					c.Spare(fmt.Sprintf("%s-%d", c.Namespace, i), class)
				}
				set := stateful(c, 3)
				set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
				set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
					ObjectMeta: metav1.ObjectMeta{Name: "data"},
					Spec: corev1.PersistentVolumeClaimSpec{
						AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
						Resources: corev1.VolumeResourceRequirements{Requests: size},
					},
				}}
				c.Changes = append(c.Changes, lab.Change{
					GroupVersionKind: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
					Namespace:        c.Namespace, Name: "data-db-0",
				})
				protect(c, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: one()})
			},
			predicted: []product.Outcome{product.Clear},
		},
		"shared-claim": {
			reason: "two pods share a ReadWriteOnce volume on one node: the replacement cannot attach it elsewhere, " +
				"and the budget keeps the sibling",
			build: func(c *lab.Cluster) {
				set := guarded(c)
				of := &set.Spec.Template
				of.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
					Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: db(), TopologyKey: corev1.LabelHostname},
				}}}}
				c.Share("data", of)
			},
			predicted: []product.Outcome{product.Sticks}, sticks: true,
		},
		"tolerates": {
			reason: "the pod comes again to the cordoned node, and the budget refuses its eviction in the next try",
			build: func(c *lab.Cluster) {
				workers(c, 2, 4)
				of := dbTemplate("100m")
				of.Annotations[lab.AnnotationReady] = "3s"
				of.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
				of.Spec.NodeSelector = map[string]string{corev1.LabelHostname: c.Namespace + "-w0"}
				of.Spec.Affinity = nil
				c.Deployments = append(c.Deployments, appsv1.Deployment{
					ObjectMeta: of.named(c),
					Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: db(), Template: of.PodTemplateSpec},
				})
				protect(c, policyv1.PodDisruptionBudgetSpec{MinAvailable: one()})
			},
			predicted: []product.Outcome{product.Clear, product.Undetermined},
		},
		"attach-limit": {
			reason: "a node attaches a volume once, for all of its pods",
			build: func(c *lab.Cluster) {
				workers(c, 2, 4)
				for i := range c.Nodes {
					c.Objects = append(c.Objects, &storagev1.CSINode{
						ObjectMeta: metav1.ObjectMeta{Name: c.Nodes[i].Name},
						Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
							Name: "ebs.csi.aws.com", NodeID: c.Nodes[i].Name, Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(1))},
						}}},
					})
				}
				of := dbTemplate("100m")
				of.Spec.Affinity = nil
				c.Share("data", &of.PodTemplateSpec)
				of.Annotations[lab.AnnotationReady] = "300ms"
				many := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
				c.Claims[0].Spec.AccessModes, c.Volumes[0].Spec.AccessModes = many, many
				c.Deployments = append(c.Deployments, appsv1.Deployment{
					ObjectMeta: of.named(c),
					Spec:       appsv1.DeploymentSpec{Replicas: new(int32(4)), Selector: db(), Template: of.PodTemplateSpec},
				})
			},
			predicted: []product.Outcome{product.Clear},
		},
		"missing-replica": {
			reason: "the quota was used up before the drains, so that one replica is without a node, whichever it is",
			build: func(c *lab.Cluster) {
				guarded(c)
				c.Quotas = append(c.Quotas, corev1.ResourceQuota{
					ObjectMeta: podTemplate{}.named(c),
					Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
				})
				c.Changes = append(c.Changes, lab.Change{
					GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: c.Namespace,
					Name: "db", Patch: `{"spec":{"replicas":3}}`,
				})
			},
			predicted: []product.Outcome{product.Clear}, pending: 1, absent: "1", counted: true,
		},
		"preempts": {
			reason: "the important pod takes the place of another one each time",
			build: func(c *lab.Cluster) {
				workers(c, 3, 2)
				important := c.Namespace + "-important"
				c.Priorities = append(c.Priorities, schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: important}, Value: 1000})
				of, low := dbTemplate("1500m"), dbTemplate("1500m")
				of.Spec.PriorityClassName = important
				c.Deployments = append(c.Deployments, appsv1.Deployment{
					ObjectMeta: of.named(c),
					Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: db(), Template: of.PodTemplateSpec},
				})
				low.Labels, low.Spec.Affinity = map[string]string{"app": "low"}, nil
				c.Deployments = append(c.Deployments, appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "low"},
					Spec: appsv1.DeploymentSpec{
						Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: low.Labels}, Template: low.PodTemplateSpec,
					},
				})
				protect(c, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: one()})
			},
			predicted: []product.Outcome{product.Clear},
		},
		"indexed-job": {
			reason: "the index of the Job may not fail again, and nothing creates its pod",
			build: func(c *lab.Cluster) {
				workers(c, 4, 4)
				of := dbTemplate("100m")
				delete(of.Annotations, lab.AnnotationReady)
				of.Annotations[lab.AnnotationTakes], of.Spec.Affinity, of.Spec.RestartPolicy = "1h", nil, corev1.RestartPolicyNever
				c.Jobs = append(c.Jobs, batchv1.Job{ObjectMeta: of.named(c), Spec: batchv1.JobSpec{
					Parallelism: new(int32(1)), Completions: new(int32(1)), CompletionMode: new(batchv1.IndexedCompletion),
					BackoffLimitPerIndex: new(int32(0)), Template: of.PodTemplateSpec,
				}})
			},
			predicted: []product.Outcome{product.Clear}, lost: 1, absent: "1",
		},
		"gate": {
			reason: "the gate of the template was lifted from the pods, and comes again",
			build: func(c *lab.Cluster) {
				workers(c, 4, 4)
				set := stateful(c, 2)
				set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
				set.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "drain.test/gate"}}
				for i := range 2 {
					c.Changes = append(c.Changes, lab.Change{
						GroupVersionKind: lab.Pod(), Namespace: c.Namespace, Name: fmt.Sprintf("db-%d", i),
						Patch: `{"spec":{"schedulingGates":null}}`, Settles: i == 1,
					})
				}
				protect(c, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: one()})
			},
			predicted: []product.Outcome{product.Undetermined}, sticks: true,
		},
		"taskrun": {
			reason: "nothing creates the pod of a TaskRun again",
			build: func(c *lab.Cluster) {
				workers(c, 4, 4)
				of := dbTemplate("100m")
				of.Spec.RestartPolicy = corev1.RestartPolicyNever
				c.Operate(lab.TaskRun(), lab.Operand{Name: "db", Replicas: 1, Template: of.PodTemplateSpec})
				c.Confine()
				c.Pods, c.Operated = c.Operated, nil // nothing creates it again
			},
			predicted: []product.Outcome{product.Clear}, lost: 1, absent: "1",
		},
	}
}

// guarded adds four workers, and a Deployment of two pods, of which one has to be available.
func guarded(c *lab.Cluster) *appsv1.Deployment {
	workers(c, 4, 4)
	of := dbTemplate("100m")
	c.Deployments = append(c.Deployments, appsv1.Deployment{
		ObjectMeta: of.named(c),
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: db(), Template: of.PodTemplateSpec},
	})
	protect(c, policyv1.PodDisruptionBudgetSpec{MinAvailable: one()})
	return &c.Deployments[0]
}

// workers adds that many workers of that many processors, with their pool.
func workers(c *lab.Cluster, count int, processors int64) {
	for i := range count {
		c.AddNode(lab.NodeOf{Name: fmt.Sprintf("%s-w%d", c.Namespace, i), Pool: "worker", CPU: processors})
	}
	c.AddPool("worker")
}

func db() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
}

type podTemplate struct{ corev1.PodTemplateSpec }

func (podTemplate) named(c *lab.Cluster) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.Namespace, Name: "db"}
}

// dbTemplate makes pods that are on different nodes.
func dbTemplate(processors string) podTemplate {
	return podTemplate{corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"app": "db"},
			Annotations: map[string]string{lab.AnnotationReady: "300ms", lab.AnnotationEnds: "500ms"},
		},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(2)),
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: db(), TopologyKey: corev1.LabelHostname,
			}}}},
			Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/nothing", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(processors)},
			}}},
		},
	}}
}

func stateful(c *lab.Cluster, replicas int32) *appsv1.StatefulSet {
	of := dbTemplate("100m")
	c.StatefulSets = append(c.StatefulSets, appsv1.StatefulSet{
		ObjectMeta: of.named(c),
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, Selector: db(), Template: of.PodTemplateSpec},
	})
	return &c.StatefulSets[0]
}

func protect(c *lab.Cluster, spec policyv1.PodDisruptionBudgetSpec) {
	spec.Selector = db()
	c.LateBudgets = append(c.LateBudgets, policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "db"},
		Spec:       spec,
	})
}

// TestRows has clusters with one kind of object each: what the program predicts, and what happens.
func TestRows(t *testing.T) {
	var clusters []lab.Cluster
	all := rows()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := lab.Cluster{Namespace: "row-" + name}
		all[name].build(&c)
		c.Confine()
		clusters = append(clusters, c)
	}
	var mutex sync.Mutex
	err := oracle.Batch(t.Context(), clusters, drain.Report{Log: t.Logf, Ended: func(trial *drain.Trial) {
		mutex.Lock()
		defer mutex.Unlock()
		check(t, all[strings.TrimPrefix(trial.Created.Namespace, "row-")], trial)
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, want row, trial *drain.Trial) {
	t.Helper()
	name := trial.Created.Namespace
	t.Logf("%s: drained in %s", name, trial.Took)
	if trial.Err != nil {
		t.Errorf("%s: %v", name, trial.Err)
		return
	}
	if want.pool == "" {
		want.pool = "worker"
	}
	pool := trial.Created.PoolOf(want.pool)
	var predicted product.Outcome
	for _, of := range trial.Predicted.Pools {
		if of.Name == pool {
			predicted = of.Outcome
		}
	}
	if !slices.Contains(want.predicted, predicted) || len(trial.Predicted.Lost) != want.lost {
		t.Errorf("%s: %s: predicted %s, want one of %v; pods that nothing creates again: %v", name, want.reason, predicted, want.predicted,
			trial.Predicted.Lost)
	}
	if sticks := len(trial.Ended.Stuck[pool]) > 0; sticks != want.sticks || !sticks && trial.Ended.Waiting[pool] > 0 {
		t.Errorf("%s: %s: it sticks at %v with %d nodes that wait, want %t\n%s", name, want.reason, trial.Ended.Stuck[pool],
			trial.Ended.Waiting[pool], want.sticks, trial)
	}
	if want.sticks {
		return
	}
	certain := 0
	for _, pending := range trial.Predicted.Pending {
		if !pending.Uncertain {
			certain++
		}
	}
	if predicted == product.Clear && certain != want.pending {
		t.Errorf("%s: %s: predicted %d pods without a node, want %d", name, want.reason, certain, want.pending)
	}
	var absent []string
	for _, owner := range slices.Sorted(maps.Keys(trial.Ended.Absent)) {
		absent = append(absent, fmt.Sprint(trial.Ended.Absent[owner]))
	}
	if want.counted && len(absent) == 0 {
		return
	}
	if diff := cmp.Diff(want.absent, strings.Join(absent, ", ")); diff != "" {
		t.Errorf("%s: %s: pods without a node: -want +got:\n%s\n%s", name, want.reason, diff, trial)
	}
}
