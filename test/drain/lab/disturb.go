package lab

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// masters adds a pool of three masters with guards.
func (g *generator) masters() {
	const masters = 3
	g.nodes("master", masters)
	g.pools("master")
	var nodes []string
	for i := range g.cluster.Nodes {
		if g.cluster.Nodes[i].Labels[poolLabel] == "master" {
			nodes = append(nodes, g.cluster.Nodes[i].Name)
		}
	}
	g.cluster.Guard("etcd", nodes...)
	if g.chance(50) {
		g.cluster.Guard("kube-apiserver", nodes...)
	}
}

// Guard adds the guards of a component of the control plane, with their budget, as its operator does
// (openshift/library-go pkg/operator/staticpod/controller/guard). Its controller creates a guard again
// once the node is schedulable and ready.
func (c *Cluster) Guard(component string, nodes ...string) {
	namespace, labels := "openshift-"+component, map[string]string{"app": "guard", ClusterLabel: c.Namespace}
	for _, node := range nodes {
		c.Operated = append(c.Operated, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: component + "-guard-" + node, Labels: labels,
				Annotations: map[string]string{
					AnnotationReady: "300ms", AnnotationEnds: ends,
					"target.workload.openshift.io/management": `{"effect": "PreferredDuringScheduling"}`,
				},
			},
			Spec: corev1.PodSpec{
				NodeName: node, Hostname: "guard-" + node, PriorityClassName: "system-cluster-critical", TerminationGracePeriodSeconds: new(int64(3)),
				Tolerations: []corev1.Toleration{
					{Key: masterLabel, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
					{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
					{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
				},
				Containers: []corev1.Container{{Name: "guard", Image: image, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("5Mi"),
				}}}},
			},
		})
	}
	c.LateBudgets = append(c.LateBudgets, policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: c.Namespace + "-" + component + "-guard-pdb",
			Labels: map[string]string{ClusterLabel: c.Namespace},
		},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt(len(nodes) - 1)), UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
		},
	})
}

// share may add a budget over the pods of two workloads.
func (g *generator) share() {
	const pairs = 2
	if !g.chance(15) || len(g.cluster.Deployments) < pairs {
		return
	}
	replicas := 0
	for i := range pairs {
		of := &g.cluster.Deployments[i]
		replicas += int(*of.Spec.Replicas)
		of.Spec.Template.Labels["tier"] = "shared"
		g.cluster.dropBudgets(of.Name)
	}
	budget := g.budget("", "shared", replicas)
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "shared"}}
	g.cluster.Budgets = append(g.cluster.Budgets, budget)
}

// dropBudgets removes the budgets of an app: the API server evicts no pod with two.
func (c *Cluster) dropBudgets(app string) {
	var kept []policyv1.PodDisruptionBudget
	for i := range c.Budgets {
		if c.Budgets[i].Spec.Selector.MatchLabels["app"] != app {
			kept = append(kept, c.Budgets[i])
		}
	}
	c.Budgets = kept
}

// limit may limit what new pods of the namespace request.
func (g *generator) limit() {
	switch of := g.random.IntN(100); {
	case of < 4:
		g.quota()
	case of < 9:
		g.lowered()
	case of < 12:
		g.cluster.Limits = append(g.cluster.Limits,
			corev1.LimitRange{ObjectMeta: g.named("default"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(g.between(1, 5)),
					resource.DecimalSI)},
			}}}})
	case of < 15:
		g.cluster.Limits = append(g.cluster.Limits,
			corev1.LimitRange{ObjectMeta: g.named("least"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(g.between(1, 12)*100),
					resource.DecimalSI)},
			}}}})
	}
}

// lowered adds a quota below what the pods use, so that some are not created again.
func (g *generator) lowered() {
	pods := len(g.cluster.Pods)
	for i := range g.cluster.Deployments {
		pods += int(*g.cluster.Deployments[i].Spec.Replicas)
	}
	for i := range g.cluster.StatefulSets {
		pods += int(*g.cluster.StatefulSets[i].Spec.Replicas)
	}
	g.cluster.Quotas = append(g.cluster.Quotas, corev1.ResourceQuota{
		ObjectMeta: g.named("pods"), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(
			int64(max(0, pods-g.between(0, 2))), resource.DecimalSI)}},
	})
}

// disturb may have a node be unavailable.
func (g *generator) disturb() {
	node := &g.cluster.Nodes[g.random.IntN(g.workers)]
	switch of := g.random.IntN(100); {
	case of < 4:
		g.cluster.Changes = append(g.cluster.Changes,
			Change{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Node"), Name: node.Name, Patch: `{"spec":{"unschedulable":true}}`})
	case of < 6:
		node.Status.Conditions[0].Status = corev1.ConditionFalse
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	case of < 8:
		node.Annotations[DaemonState], node.Annotations[DesiredConfig] = Working, "b"
	}
}
