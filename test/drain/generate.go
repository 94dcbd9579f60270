package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/test/cluster"
)

const (
	// clusterLabel is the label of the nodes of one cluster.
	clusterLabel = "drain.test/cluster"
	poolLabel    = "drain.test/pool"
	important    = "drain-test-important"
	// everyLarge is of how many clusters one is large.
	everyLarge = 20
)

// chance is true in that many of a hundred cases.
func (t *trial) chance(percent int) bool { return t.random.IntN(100) < percent }

// between is a number from least to most.
func (t *trial) between(least, most int) int { return least + t.random.IntN(most-least+1) }

// create makes the nodes and the workloads, and waits until they have settled.
func (t *trial) create(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}}
	if _, err := t.Clients.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	priority := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: important}, Value: 1000}
	if _, err := t.Clients.SchedulingV1().PriorityClasses().Create(ctx, priority, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	workers, infra := t.between(3, 8), 0
	workloads := t.between(4, 12)
	if t.seed%everyLarge == 0 {
		workers, workloads = t.between(12, 40), t.between(20, 60)
	}
	if t.chance(30) {
		infra = t.between(1, 3)
	}
	if err := errors.Join(t.pool(ctx, "worker", workers), t.pool(ctx, "infra", infra)); err != nil {
		return err
	}
	for i := range workloads {
		if err := t.workload(ctx, fmt.Sprintf("app%d", i), workers, infra); err != nil {
			return err
		}
	}
	if err := t.settle(ctx); err != nil {
		return err
	}
	if t.chance(10) {
		return t.quota(ctx)
	}
	return nil
}

// pool creates the nodes of a pool, in three zones.
func (t *trial) pool(ctx context.Context, name string, count int) error {
	for i := range count {
		if err := t.node(ctx, fmt.Sprintf("c%d-%s%d", t.seed, name[:1], i), name, fmt.Sprintf("z%d", i%3)); err != nil {
			return err
		}
	}
	return nil
}

// node creates a node of a pool.
func (t *trial) node(ctx context.Context, name, pool, zone string) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(int64(t.between(4, 8)), resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods: resource.MustParse("250"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				clusterLabel: t.namespace, poolLabel: pool, corev1.LabelHostname: name, corev1.LabelTopologyZone: zone, corev1.LabelOSStable: "linux",
			},
			Annotations: map[string]string{"machineconfiguration.openshift.io/currentConfig": "a", "machineconfiguration.openshift.io/desiredConfig": "a"},
		},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
		},
	}
	if _, err := t.Clients.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	t.nodes = append(t.nodes, name)
	// The API server adds the taint of a node that is not ready.
	patch := `{"spec":{"taints":null}}`
	if pool == "infra" {
		patch = `{"spec":{"taints":[{"key":"infra","effect":"NoSchedule"}]}}`
	}
	_, err := t.Clients.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// workload creates a Deployment, a StatefulSet or a pod, and maybe its budgets, for that many nodes of
// each pool.
func (t *trial) workload(ctx context.Context, app string, workers, infra int) error {
	replicas := t.between(1, min(5, workers+1))
	template := t.template(app, infra)
	meta := metav1.ObjectMeta{Namespace: t.namespace, Name: app}
	number := int32(replicas) //nolint:gosec // few
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	var err error
	switch kind := t.random.IntN(10); kind {
	case 0:
		replicas = 1
		_, err = t.Clients.CoreV1().Pods(t.namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: t.namespace, Name: app, Labels: template.Labels, Annotations: template.Annotations,
		}, Spec: template.Spec}, metav1.CreateOptions{})
	case 1, 2:
		_, err = t.Clients.AppsV1().StatefulSets(t.namespace).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
			Replicas: &number, Selector: selector, Template: template, PodManagementPolicy: appsv1.ParallelPodManagement,
		}}, metav1.CreateOptions{})
	case 3:
		_, err = t.Clients.AppsV1().DaemonSets(t.namespace).Create(ctx, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
			Selector: selector, Template: daemon(template),
		}}, metav1.CreateOptions{})
	default:
		_, err = t.Clients.AppsV1().Deployments(t.namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: &number, Selector: selector, Template: template,
		}}, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	if t.chance(60) {
		if err := t.budget(ctx, app, app, replicas); err != nil {
			return err
		}
	}
	if t.chance(4) {
		return t.budget(ctx, app, app+"-second", replicas)
	}
	return nil
}

// daemon is a template without what keeps its pods from some nodes.
func daemon(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	template.Spec.Affinity, template.Spec.TopologySpreadConstraints = nil, nil
	return template
}

// template makes the pods of a workload, where there are that many infra nodes.
func (t *trial) template(app string, infra int) corev1.PodTemplateSpec {
	ready := (time.Duration(t.between(200, 1500)) * time.Millisecond).String()
	if t.chance(5) {
		ready = cluster.NeverReady
	}
	labels := map[string]string{"app": app}
	spec := corev1.PodSpec{
		NodeSelector: map[string]string{clusterLabel: t.namespace}, TerminationGracePeriodSeconds: new(int64(1)),
		Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/nothing"}},
	}
	if t.chance(90) {
		spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(int64(t.between(1, 15)*100), resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("256Mi"),
		}
	}
	if infra > 0 && t.chance(30) {
		spec.NodeSelector[poolLabel] = "infra"
		spec.Tolerations = []corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpExists}}
	}
	if t.chance(10) {
		spec.PriorityClassName = important
	}
	if t.chance(5) {
		spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
	}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	key := corev1.LabelHostname
	if t.chance(20) {
		key = corev1.LabelTopologyZone
	}
	switch t.random.IntN(6) {
	case 0, 1:
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: selector, TopologyKey: key,
		}}}}
	case 2:
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: int32(t.between(1, 2)), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector, //nolint:gosec // few
		}}
	}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{cluster.AnnotationReady: ready}}, Spec: spec}
}

// budget creates a budget over the pods of an app.
func (t *trial) budget(ctx context.Context, app, name string, replicas int) error {
	spec := policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
	switch t.random.IntN(6) {
	case 0, 1:
		spec.MinAvailable = new(intstr.FromInt32(int32(max(0, replicas-1)))) //nolint:gosec // few
	case 2:
		spec.MinAvailable = new(intstr.FromString("50%"))
	case 3, 4:
		spec.MaxUnavailable = new(intstr.FromInt32(1))
	default:
		spec.MaxUnavailable = new(intstr.FromString("34%"))
	}
	if t.chance(4) {
		spec.MinAvailable, spec.MaxUnavailable = nil, new(intstr.FromInt32(0))
	}
	if t.chance(30) {
		spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	}
	_, err := t.Clients.PolicyV1().PodDisruptionBudgets(t.namespace).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name}, Spec: spec,
	}, metav1.CreateOptions{})
	return err
}

// quota creates a quota on the requests of pods, of which some have none.
func (t *trial) quota(ctx context.Context) error {
	_, err := t.Clients.CoreV1().ResourceQuotas(t.namespace).Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "compute"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("1000")}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return t.settle(ctx)
}
