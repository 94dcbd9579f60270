package reference

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/test/drain/lab"
)

// Objects are those of the cluster as an API server has them: with the pods of the controllers, and the
// statuses of the budgets and quotas.
func (s *Settled) Objects() lab.Cluster {
	objects := s.m.objects
	objects.Deployments, objects.Pods, objects.Budgets, objects.Quotas = nil, nil, nil, nil
	for i := range s.m.objects.Deployments {
		of := &s.m.objects.Deployments[i]
		objects.ReplicaSets = append(objects.ReplicaSets, appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: replicaSetOf(of.Name), OwnerReferences: owner("Deployment", of.Name)},
			Spec:       appsv1.ReplicaSetSpec{Replicas: of.Spec.Replicas, Selector: of.Spec.Selector, Template: of.Spec.Template},
		})
	}
	for i := range s.start.pods {
		if !s.start.pods[i].gone {
			objects.Pods = append(objects.Pods, s.start.object(&s.start.pods[i]))
		}
	}
	for i := range s.m.objects.Budgets {
		of := s.m.objects.Budgets[i]
		of.Generation, of.Status = 1, s.start.budgets[i].status()
		objects.Budgets = append(objects.Budgets, of)
	}
	for i := range s.m.objects.Quotas {
		of := s.m.objects.Quotas[i]
		of.Status = corev1.ResourceQuotaStatus{Hard: of.Spec.Hard, Used: corev1.ResourceList{}}
		for name := range of.Spec.Hard {
			of.Status.Used[name] = s.start.charged(name)
		}
		objects.Quotas = append(objects.Quotas, of)
	}
	return objects
}

func owner(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(kind + "/" + name), Controller: new(true)}}
}

// began is when the first pod started.
var began = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant

func (s *state) object(p *pod) corev1.Pod {
	t := &s.m.templates[p.template]
	of := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.m.objects.Namespace, Name: p.name, Labels: t.object.Labels, Annotations: t.object.Annotations},
		Spec:       t.object.Spec,
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	of.Spec.Priority = &t.priority
	if p.controller >= 0 {
		c := &s.m.controllers[p.controller]
		of.OwnerReferences = owner([]string{replicaSet: "ReplicaSet", statefulSet: "StatefulSet", daemonSet: "DaemonSet"}[c.kind], c.name)
	}
	if p.target >= 0 {
		daemon(&of.Spec, s.m.nodeName(p.target))
	}
	if p.node >= 0 {
		of.Spec.NodeName = s.m.nodeName(p.node)
		of.Status.StartTime = new(metav1.NewTime(began.Add(time.Duration(p.since) * time.Second)))
	}
	if p.running {
		of.Status.Phase = corev1.PodRunning
	}
	status := corev1.ConditionFalse
	if p.ready {
		status = corev1.ConditionTrue
	}
	of.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	return of
}

// daemon has a pod be placed on a node by its name, also while that is cordoned, as the controller of
// DaemonSets does.
func daemon(spec *corev1.PodSpec, node string) {
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		}}}},
	}}}
	spec.Tolerations = append(slices.Clip(spec.Tolerations),
		corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
}

func (b *budget) status() policyv1.PodDisruptionBudgetStatus {
	found := policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: 1, DisruptionsAllowed: b.allowed, CurrentHealthy: b.healthy, DesiredHealthy: b.desired, ExpectedPods: b.expected,
	}
	if b.failure != "" {
		found.Conditions = []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
			Reason: policyv1.SyncFailedReason, Message: b.failure,
		}}
	}
	return found
}

// charged is what a quota of requests counts.
func (s *state) charged(name corev1.ResourceName) resource.Quantity {
	sum := resource.Quantity{}
	for i := range s.pods {
		p := &s.pods[i]
		for _, container := range s.m.templates[p.template].object.Spec.Containers {
			if !p.gone {
				sum.Add(container.Resources.Requests[name[len("requests."):]])
			}
		}
	}
	return sum
}
