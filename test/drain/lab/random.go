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

// Annotations of the machine-config-daemon on nodes, and states of it.
const (
	CurrentConfig = "machineconfiguration.openshift.io/currentConfig"
	DesiredConfig = "machineconfiguration.openshift.io/desiredConfig"
	DaemonState   = "machineconfiguration.openshift.io/state"
	Done          = "Done"
	Working       = "Working"
)

const (
	poolLabel   = "drain.test/pool"
	masterLabel = "node-role.kubernetes.io/master"
	// ends is how long a deleted pod takes to end: a kubelet takes so long that the disruption
	// controller sees that the pod is being deleted.
	ends      = "500ms"
	image     = "registry.example.com/nothing"
	important = "drain-test-important"
	// everyLarge is of how many clusters one is large.
	everyLarge = 20
)

// generator makes one cluster.
type generator struct {
	cluster Cluster
	seed    uint64
	random  *rand.Rand
	// plain is true for a cluster of Plain.
	plain bool
	// workers and infra are how many nodes the pools have.
	workers, infra int
}

func newGenerator(seed uint64) *generator {
	namespace := fmt.Sprintf("cluster-%d", seed)
	return &generator{seed: seed, random: rand.New(rand.NewPCG(seed, 1)), cluster: Cluster{ //nolint:gosec // reproducible
		Namespace: namespace, Priorities: []schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: important}, Value: 1000}},
	}}
}

// Plain is the cluster of a seed, with what package reference knows.
func Plain(seed uint64) Cluster {
	g := newGenerator(seed)
	g.plain, g.workers = true, g.between(3, 8)
	workloads := g.between(4, 12)
	if seed%everyLarge == 0 {
		g.workers, workloads = g.between(12, 40), g.between(20, 60)
	}
	g.fill(workloads)
	if g.chance(10) {
		g.quota()
	}
	g.pools("infra", "worker")
	if g.random = rand.New(rand.NewPCG(seed, 2)); g.chance(40) { //nolint:gosec // reproducible
		g.known("extra")
	}
	return g.cluster
}

// Random is the cluster of a seed.
func Random(seed uint64) Cluster {
	g := newGenerator(seed)
	g.workers = g.between(3, 5)
	workloads := g.between(2, 6)
	if seed%everyLarge == 0 {
		g.workers, workloads = g.between(8, 12), g.between(10, 20)
	}
	g.fill(workloads)
	g.pools("infra", "worker")
	if g.chance(15) {
		g.masters()
	}
	g.share()
	g.limit()
	g.disturb()
	if g.random = rand.New(rand.NewPCG(seed, 2)); g.chance(60) { //nolint:gosec // reproducible
		for i := range g.between(1, 2) {
			g.reported(fmt.Sprintf("extra%d", i))
		}
	}
	return g.cluster
}

// fill adds the nodes, and that many workloads.
func (g *generator) fill(workloads int) {
	if g.chance(30) {
		g.infra = g.between(1, 3)
	}
	g.nodes("worker", g.workers)
	g.nodes("infra", g.infra)
	for i := range workloads {
		g.workload(fmt.Sprintf("app%d", i))
	}
}

// chance is true in that many of a hundred cases.
func (g *generator) chance(percent int) bool { return g.random.IntN(100) < percent }

// rarely is chance, and false in a plain cluster.
func (g *generator) rarely(percent int) bool { return !g.plain && g.chance(percent) }

// between is a number from least to most.
func (g *generator) between(least, most int) int { return least + g.random.IntN(most-least+1) }

// nodes adds the nodes of a pool, in three zones.
func (g *generator) nodes(pool string, count int) {
	for i := range count {
		g.cluster.AddNode(NodeOf{
			Name: fmt.Sprintf("c%d-%s%d", g.seed, pool[:1], i), Pool: pool, Zone: fmt.Sprintf("z%d", i%3),
			CPU: int64(g.processors()),
		})
	}
}

// processors is how many a node has: a plain cluster is full more often than one in use.
func (g *generator) processors() int {
	if g.plain {
		return g.between(4, 8)
	}
	return g.between(6, 14)
}

// NodeOf is what a node differs in.
type NodeOf struct {
	Name, Pool, Zone string
	CPU              int64
}

// AddNode adds a node that is ready.
func (c *Cluster) AddNode(of NodeOf) {
	room := corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(of.CPU, resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods: resource.MustParse("250"),
	}
	node := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: of.Name,
			Labels: map[string]string{
				ClusterLabel: c.Namespace, poolLabel: of.Pool, corev1.LabelHostname: of.Name, corev1.LabelTopologyZone: of.Zone,
				corev1.LabelOSStable: "linux",
			},
			Annotations: map[string]string{CurrentConfig: "a", DesiredConfig: "a", DaemonState: Done},
		},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
		},
	}
	switch of.Pool {
	case "infra":
		node.Spec.Taints = []corev1.Taint{{Key: "infra", Effect: corev1.TaintEffectNoSchedule}}
	case "master":
		node.Labels[masterLabel] = ""
		node.Spec.Taints = []corev1.Taint{{Key: masterLabel, Effect: corev1.TaintEffectNoSchedule}}
	}
	c.Nodes = append(c.Nodes, node)
}

// PoolOf is the name of the MachineConfigPool of the nodes of a pool: several clusters are on one
// control plane.
func (c *Cluster) PoolOf(pool string) string { return c.Namespace + "-" + pool }

// AddPool adds the MachineConfigPool of the nodes of a pool.
func (c *Cluster) AddPool(name string) *machineconfigurationv1.MachineConfigPool {
	pool := machineconfigurationv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: c.PoolOf(name)}}
	pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{ClusterLabel: c.Namespace, poolLabel: name}}
	c.Pools = append(c.Pools, pool)
	return &c.Pools[len(c.Pools)-1]
}

// pools adds MachineConfigPools.
func (g *generator) pools(names ...string) {
	for _, name := range names {
		pool := g.cluster.AddPool(name)
		if g.chance(30) {
			pool.Spec.MaxUnavailable = new(intstr.FromInt32(2))
		}
		pool.Spec.Paused = g.rarely(5)
	}
}

// named is the metadata of an object in the namespace.
func (g *generator) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: g.cluster.Namespace, Name: name}
}

func selecting(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// workload adds a Deployment or another controller with its pods, or a pod, and maybe its budgets.
func (g *generator) workload(app string) {
	made := workload{app: app, replicas: g.between(1, min(g.most(), g.workers+1)), template: g.template(app)}
	if !g.rarely(35) || !g.special(&made) {
		g.common(&made)
	}
	if made.budgeted {
		return
	}
	if g.chance(60) {
		g.cluster.Budgets = append(g.cluster.Budgets, g.budget(app, app, made.replicas))
	}
	if g.chance(4) {
		g.cluster.Budgets = append(g.cluster.Budgets, g.budget(app, app+"-second", made.replicas))
	}
}

// most is how many pods a workload has at most: with many, what is drained of a small cluster often depends on
// the nodes that the scheduler chooses, and a test of few outcomes says more.
func (g *generator) most() int {
	if g.plain || g.chance(20) {
		return 5
	}
	return 3
}

// workload is what is known of one before its controller is chosen.
type workload struct {
	app      string
	replicas int
	template corev1.PodTemplateSpec
	// budgeted is true if it has the budgets that it may have.
	budgeted bool
}

func (w *workload) number() *int32 { return new(int32(w.replicas)) } //nolint:gosec // few

// common adds a workload of a plain cluster.
func (g *generator) common(of *workload) {
	switch g.random.IntN(10) {
	case 0:
		of.replicas = 1
		pod := corev1.Pod{ObjectMeta: g.named(of.app), Spec: of.template.Spec}
		pod.Labels, pod.Annotations = of.template.Labels, of.template.Annotations
		g.cluster.Pods = append(g.cluster.Pods, pod)
	case 1, 2:
		g.stateful(of).Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	case 3:
		// What keeps its pods from some nodes, but for the selector.
		of.template.Spec.Affinity, of.template.Spec.TopologySpreadConstraints = nil, nil
		g.cluster.DaemonSets = append(g.cluster.DaemonSets, appsv1.DaemonSet{ObjectMeta: g.named(of.app), Spec: appsv1.DaemonSetSpec{
			Selector: selecting(of.app), Template: of.template,
		}})
	default:
		g.cluster.Deployments = append(g.cluster.Deployments, g.deployment(of))
	}
}

func (g *generator) deployment(of *workload) appsv1.Deployment {
	return appsv1.Deployment{
		ObjectMeta: g.named(of.app),
		Spec:       appsv1.DeploymentSpec{Replicas: of.number(), Selector: selecting(of.app), Template: of.template},
	}
}

func (g *generator) stateful(of *workload) *appsv1.StatefulSet {
	g.cluster.StatefulSets = append(g.cluster.StatefulSets, appsv1.StatefulSet{ObjectMeta: g.named(of.app), Spec: appsv1.StatefulSetSpec{
		Replicas: of.number(), Selector: selecting(of.app), Template: of.template,
	}})
	return &g.cluster.StatefulSets[len(g.cluster.StatefulSets)-1]
}

// template makes the pods of a workload.
func (g *generator) template(app string) corev1.PodTemplateSpec {
	ready := (time.Duration(g.between(200, 1500)) * time.Millisecond).String()
	if g.chance(5) {
		ready = NeverReady
	}
	spec := corev1.PodSpec{
		NodeSelector: map[string]string{ClusterLabel: g.cluster.Namespace}, TerminationGracePeriodSeconds: new(int64(1)),
		Containers: []corev1.Container{{Name: "c", Image: image}},
	}
	if g.chance(90) {
		spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(g.between(1, 15)*100), resource.DecimalSI),
			corev1.ResourceMemory: resource.MustParse("256Mi"),
		}
	}
	if g.infra > 0 && g.chance(30) {
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
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"app": app},
			Annotations: map[string]string{AnnotationReady: ready, AnnotationEnds: ends},
		}, Spec: spec,
	}
}

// apart may keep the pods of an app apart.
func (g *generator) apart(spec *corev1.PodSpec, selector *metav1.LabelSelector) {
	key := corev1.LabelHostname
	if g.chance(20) {
		key = corev1.LabelTopologyZone
	}
	kinds := 6
	if !g.plain {
		kinds = 12
	}
	switch g.random.IntN(kinds) {
	case 0, 1:
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: selector, TopologyKey: key,
		}}}}
	case 2:
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			//nolint:gosec // few
			MaxSkew: int32(g.between(1, 2)), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
		}}
	}
}

// budget is a budget over the pods of an app.
func (g *generator) budget(app, name string, replicas int) policyv1.PodDisruptionBudget {
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
	return policyv1.PodDisruptionBudget{ObjectMeta: g.named(name), Spec: spec}
}

// quota adds a quota on the requests of pods, of which some have none.
func (g *generator) quota() {
	g.cluster.Quotas = append(g.cluster.Quotas, corev1.ResourceQuota{
		ObjectMeta: g.named("compute"),
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("1000")}},
	})
}
