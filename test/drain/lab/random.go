package lab

import (
	"fmt"
	"math/rand/v2"
	"time"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ClusterLabel is the label of the nodes of one cluster, with its namespace: several are on one control
// plane.
const ClusterLabel = "drain.test/cluster"

const (
	poolLabel = "drain.test/pool"
	important = "drain-test-important"
	// everyLarge is of how many clusters one is large.
	everyLarge = 20
)

// generator makes one cluster.
type generator struct {
	cluster Cluster
	seed    uint64
	random  *rand.Rand
}

// Random is the cluster of a seed.
func Random(seed uint64) Cluster {
	g := &generator{seed: seed, random: rand.New(rand.NewPCG(seed, 1)), cluster: Cluster{ //nolint:gosec // reproducible
		Namespace:  fmt.Sprintf("cluster-%d", seed),
		Priorities: []schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: important}, Value: 1000}},
	}}
	workers, infra := g.between(3, 8), 0
	workloads := g.between(4, 12)
	if seed%everyLarge == 0 {
		workers, workloads = g.between(12, 40), g.between(20, 60)
	}
	if g.chance(30) {
		infra = g.between(1, 3)
	}
	g.nodes("worker", workers)
	g.nodes("infra", infra)
	for i := range workloads {
		g.workload(fmt.Sprintf("app%d", i), workers, infra)
	}
	if g.chance(10) {
		g.quota()
	}
	for _, name := range []string{"infra", "worker"} {
		g.pool(name)
	}
	return g.cluster
}

// chance is true in that many of a hundred cases.
func (g *generator) chance(percent int) bool { return g.random.IntN(100) < percent }

// between is a number from least to most.
func (g *generator) between(least, most int) int { return least + g.random.IntN(most-least+1) }

// nodes adds the nodes of a pool, in three zones.
func (g *generator) nodes(pool string, count int) {
	for i := range count {
		g.node(fmt.Sprintf("c%d-%s%d", g.seed, pool[:1], i), pool, fmt.Sprintf("z%d", i%3))
	}
}

func (g *generator) node(name, pool, zone string) {
	room := corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(int64(g.between(4, 8)), resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods: resource.MustParse("250"),
	}
	node := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				ClusterLabel: g.cluster.Namespace, poolLabel: pool, corev1.LabelHostname: name, corev1.LabelTopologyZone: zone, corev1.LabelOSStable: "linux",
			},
			Annotations: map[string]string{"machineconfiguration.openshift.io/currentConfig": "a", "machineconfiguration.openshift.io/desiredConfig": "a"},
		},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
		},
	}
	if pool == "infra" {
		node.Spec.Taints = []corev1.Taint{{Key: "infra", Effect: corev1.TaintEffectNoSchedule}}
	}
	g.cluster.Nodes = append(g.cluster.Nodes, node)
}

// pool adds a MachineConfigPool.
func (g *generator) pool(name string) {
	pool := machineconfigurationv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{poolLabel: name}}
	if g.chance(30) {
		pool.Spec.MaxUnavailable = new(intstr.FromInt32(2))
	}
	g.cluster.Pools = append(g.cluster.Pools, pool)
}

// named is the metadata of an object in the namespace.
func (g *generator) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: g.cluster.Namespace, Name: name}
}

func selecting(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// workload adds a Deployment, a StatefulSet, a DaemonSet or a pod, and maybe its budgets, for that many
// nodes of each pool.
func (g *generator) workload(app string, workers, infra int) {
	replicas := g.between(1, min(5, workers+1))
	template := g.template(app, infra)
	number := int32(replicas) //nolint:gosec // few
	switch g.random.IntN(10) {
	case 0:
		replicas = 1
		pod := corev1.Pod{ObjectMeta: g.named(app), Spec: template.Spec}
		pod.Labels, pod.Annotations = template.Labels, template.Annotations
		g.cluster.Pods = append(g.cluster.Pods, pod)
	case 1, 2:
		g.cluster.StatefulSets = append(g.cluster.StatefulSets, appsv1.StatefulSet{ObjectMeta: g.named(app), Spec: appsv1.StatefulSetSpec{
			Replicas: &number, Selector: selecting(app), Template: template, PodManagementPolicy: appsv1.ParallelPodManagement,
		}})
	case 3:
		// What keeps its pods from some nodes, but for the selector.
		template.Spec.Affinity, template.Spec.TopologySpreadConstraints = nil, nil
		g.cluster.DaemonSets = append(g.cluster.DaemonSets, appsv1.DaemonSet{ObjectMeta: g.named(app), Spec: appsv1.DaemonSetSpec{
			Selector: selecting(app), Template: template,
		}})
	default:
		g.cluster.Deployments = append(g.cluster.Deployments, appsv1.Deployment{ObjectMeta: g.named(app), Spec: appsv1.DeploymentSpec{
			Replicas: &number, Selector: selecting(app), Template: template,
		}})
	}
	if g.chance(60) {
		g.budget(app, app, replicas)
	}
	if g.chance(4) {
		g.budget(app, app+"-second", replicas)
	}
}

// template makes the pods of a workload, where there are that many infra nodes.
func (g *generator) template(app string, infra int) corev1.PodTemplateSpec {
	ready := (time.Duration(g.between(200, 1500)) * time.Millisecond).String()
	if g.chance(5) {
		ready = NeverReady
	}
	spec := corev1.PodSpec{
		NodeSelector: map[string]string{ClusterLabel: g.cluster.Namespace}, TerminationGracePeriodSeconds: new(int64(1)),
		Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/nothing"}},
	}
	if g.chance(90) {
		spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(int64(g.between(1, 15)*100), resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("256Mi"),
		}
	}
	if infra > 0 && g.chance(30) {
		spec.NodeSelector[poolLabel] = "infra"
		spec.Tolerations = []corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpExists}}
	}
	if g.chance(10) {
		spec.PriorityClassName = important
	}
	if g.chance(5) {
		spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
	}
	g.apart(&spec, selecting(app))
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}, Annotations: map[string]string{AnnotationReady: ready}}, Spec: spec,
	}
}

// apart may keep the pods of an app apart.
func (g *generator) apart(spec *corev1.PodSpec, selector *metav1.LabelSelector) {
	key := corev1.LabelHostname
	if g.chance(20) {
		key = corev1.LabelTopologyZone
	}
	switch g.random.IntN(6) {
	case 0, 1:
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: selector, TopologyKey: key,
		}}}}
	case 2:
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: int32(g.between(1, 2)), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector, //nolint:gosec // few
		}}
	}
}

// budget adds a budget over the pods of an app.
func (g *generator) budget(app, name string, replicas int) {
	spec := policyv1.PodDisruptionBudgetSpec{Selector: selecting(app)}
	switch g.random.IntN(6) {
	case 0, 1:
		spec.MinAvailable = new(intstr.FromInt32(int32(max(0, replicas-1)))) //nolint:gosec // few
	case 2:
		spec.MinAvailable = new(intstr.FromString("50%"))
	case 3, 4:
		spec.MaxUnavailable = new(intstr.FromInt32(1))
	default:
		spec.MaxUnavailable = new(intstr.FromString("34%"))
	}
	if g.chance(4) {
		spec.MinAvailable, spec.MaxUnavailable = nil, new(intstr.FromInt32(0))
	}
	if g.chance(30) {
		spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	}
	g.cluster.Budgets = append(g.cluster.Budgets, policyv1.PodDisruptionBudget{ObjectMeta: g.named(name), Spec: spec})
}

// quota adds a quota on the requests of pods, of which some have none.
func (g *generator) quota() {
	g.cluster.Quotas = append(g.cluster.Quotas, corev1.ResourceQuota{
		ObjectMeta: g.named("compute"),
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("1000")}},
	})
}
