package drain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/drain/reviewer"
)

// stateful adds a StatefulSet whose pods were made of this template and run on these nodes, and which
// creates its next pods from another one.
func (w *world) stateful(app string, template, next corev1.PodSpec, nodes ...string) *appsv1.StatefulSet {
	replicas := int32(len(nodes))
	if len(template.Containers) == 0 {
		template.Containers = []corev1.Container{{Name: "c"}}
	}
	if len(next.Containers) == 0 {
		next.Containers = template.Containers
	}
	w.workloads.StatefulSets = append(w.workloads.StatefulSets, appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: next},
		},
		Status: appsv1.StatefulSetStatus{CurrentRevision: "1", UpdateRevision: "2"},
	})
	for i, node := range nodes {
		w.pod(fmt.Sprintf("%s-%d", app, i), app, node, "StatefulSet", template).Labels["controller-revision-hash"] = "1"
	}
	return &w.workloads.StatefulSets[len(w.workloads.StatefulSets)-1]
}

// job adds a Job with pods on these nodes, that fails after more failures than its limit.
func (w *world) job(app string, limit int32, nodes ...string) {
	parallelism := int32(len(nodes))
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}
	w.workloads.Jobs = append(w.workloads.Jobs, batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app},
		Spec: batchv1.JobSpec{
			Parallelism: &parallelism, Completions: &parallelism, BackoffLimit: &limit,
			Template: corev1.PodTemplateSpec{Spec: spec},
		},
	})
	for i, node := range nodes {
		pod := w.pod(fmt.Sprintf("%s-%d", app, i), app, node, "Job", spec)
		pod.OwnerReferences[0].APIVersion = batchv1.SchemeGroupVersion.String()
		pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
	}
}

// guard is a webhook on the creation of pods of an app, whose Service does not exist.
func guard(app string) reviewer.Input {
	hook := admissionregistrationv1.ValidatingWebhook{
		Name: "guard.example.com", NamespaceSelector: &metav1.LabelSelector{},
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: "shop",
			Name:      "guard",
		}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}},
	}
	return reviewer.Input{
		Namespaces: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}},
		Validating: []admissionregistrationv1.ValidatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "guards"},
			Webhooks:   []admissionregistrationv1.ValidatingWebhook{hook},
		}},
	}
}

// TestReplacements has clusters in which what a controller creates is not what was evicted, or is created
// later, or not at all. Each was drained on a real API server (test/drain).
func TestReplacements(t *testing.T) {
	t.Parallel()
	unready := func(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }
	for name, tc := range map[string]struct {
		reason  string
		build   func(*world)
		want    []string
		without string
	}{
		"OnDelete": {
			reason: "the next pod of the StatefulSet selects a node that there is not",
			want:   []string{"worker Sticks w0", "pending shop/db-0: 1 node unschedulable, 3 nodes excluded by node selector or affinity"},
			build: func(w *world) {
				next := apart("db")
				next.NodeSelector = map[string]string{"disk": "nvme"}
				w.stateful("db", apart("db"), next, "w0", "w1", "w2").Spec.PodManagementPolicy = appsv1.ParallelPodManagement
				w.budget("db", 1, 3, 2, 3)
			},
		},
		"Partition": {
			reason: "the next pods below the partition are of the template before", want: []string{"worker Clear w0 w1 w2"},
			build: func(w *world) {
				next := corev1.PodSpec{NodeSelector: map[string]string{"disk": "nvme"}}
				set := w.stateful("db", corev1.PodSpec{}, next, "w0", "w1", "w2")
				set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(
					int32(3))}}
			},
		},
		"Larger": {
			reason: "the next pod of the ReplicaSet requests more than a node has", want: []string{"worker Sticks w0", "pending shop/db-0"},
			build: func(w *world) {
				w.deploy("db", requesting("100m"), "w0", "w1")
				w.workloads.ReplicaSets[0].Spec.Template.Spec = requesting("5")
				w.budget("db", 1, 2, 1, 2)
			},
		},
		"Revision": {
			reason: "the template of a Deployment's ReplicaSet made its pods: what they have besides is of admission",
			want:   []string{"worker Clear w0 w1 w2"},
			build: func(w *world) {
				w.deploy("db", requesting("100m"), "w0", "w1")
				w.workloads.ReplicaSets[0].Spec.Template.Spec = requesting("5")
				w.workloads.ReplicaSets[0].OwnerReferences = []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "Deployment", Name: "db",
					Controller: new(true),
				}}
				w.budget("db", 1, 2, 1, 2)
			},
		},
		"Ordered": {
			reason: "a StatefulSet creates no pod while one with a lower ordinal is not ready",
			want:   []string{"worker Sticks w0", `pending shop/db-1: its StatefulSet creates it once pod "db-0" is ready`},
			build: func(w *world) {
				w.stateful("db", apart("db"), apart("db"), "w2", "w0", "w1")
				unready(&w.pods[0])
				w.budget("db", 1, 2, 1, 3)
			},
		},
		"OrderedStarting": {
			reason: "the pod with the lowest ordinal is not ready, and was so before the next one was created", want: []string{"worker Sticks w0"},
			build: func(w *world) {
				w.stateful("db", apart("db"), apart("db"), "w2", "w0", "w1")
				unready(&w.pods[0])
				for i := range w.pods {
					w.pods[i].CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
				}
				w.budget("db", 1, 2, 1, 3)
			},
		},
		"OrderedAgain": {
			reason: "the pod with the lowest ordinal was created again, and is starting", want: []string{"worker Unknown"},
			build: func(w *world) {
				w.stateful("db", apart("db"), apart("db"), "w2", "w0", "w1")
				unready(&w.pods[0])
				w.pods[1].CreationTimestamp, w.pods[2].CreationTimestamp = metav1.NewTime(now.Add(-time.Hour)), metav1.NewTime(now.Add(-time.Hour))
				w.pods[0].CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
				w.budget("db", 1, 2, 1, 3)
			},
		},
		"Parallel": {
			reason: "one that creates its pods in parallel does", want: []string{"worker Clear w0 w1 w2"},
			build: func(w *world) {
				w.stateful("db", apart("db"), apart("db"), "w2", "w0", "w1").Spec.PodManagementPolicy = appsv1.ParallelPodManagement
				unready(&w.pods[0])
				w.budget("db", 1, 2, 1, 3)
			},
		},
		"Quota": {
			reason: "a quota below its use keeps one pod of four from being created, and not all",
			want:   []string{"worker Clear w0 w1 w2", `needs more pods than is left of 3`},
			build: func(w *world) {
				w.deploy("db", corev1.PodSpec{}, "w0", "w1", "w2", "i0")
				w.budget("db", 2, 4, 2, 4)
				w.workloads.Quotas = []corev1.ResourceQuota{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "q"},
					Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("3")}},
					Status:     corev1.ResourceQuotaStatus{Used: corev1.ResourceList{"pods": resource.MustParse("4")}},
				}}
			},
			without: "pending shop/db-1",
		},
		"QuotaOfAnOperator": {
			reason: "an operator creates a pod like the one before, which a quota on requests refuses",
			want:   []string{"pending shop/pg-0: ResourceQuota"},
			build: func(w *world) {
				w.pod("pg-0", "pg", "w0", "Database",
					corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}).OwnerReferences[0].APIVersion = "db.example.com/v1"
				w.workloads.Quotas = []corev1.ResourceQuota{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "q"},
					Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.cpu": resource.MustParse("100")}},
					Status:     corev1.ResourceQuotaStatus{Used: corev1.ResourceList{"requests.cpu": resource.MustParse("0")}},
				}}
			},
		},
		"Updating": {
			reason: "a node that is being updated returns, and the pool drains two nodes at a time then",
			want:   []string{"worker Sticks", "w0: shop/alone-0 Unmanaged", "w2: shop/alone-1 Unmanaged"},
			build: func(w *world) {
				w.pools[0].Spec.MaxUnavailable = new(intstr.FromInt32(2))
				w.nodes[1].Annotations["machineconfiguration.openshift.io/desiredConfig"],
					w.nodes[1].Annotations["machineconfiguration.openshift.io/state"] = "b", "Working"
				for i, node := range []string{"w0", "w2"} {
					w.pod(fmt.Sprintf("alone-%d", i), "alone", node, "", corev1.PodSpec{})
				}
				w.budget("alone", 0, 2, 0, 0)
			},
		},
		"UpdatedAgain": {
			reason: "a node that is being updated is drained by the next update, too, once it has returned",
			want:   []string{"worker Unknown", "w1: shop/alone-0 Unmanaged"},
			build: func(w *world) {
				w.pools[0].Spec.MaxUnavailable = new(intstr.FromInt32(2))
				w.nodes[1].Annotations["machineconfiguration.openshift.io/desiredConfig"],
					w.nodes[1].Annotations["machineconfiguration.openshift.io/state"] = "b", "Working"
				w.pod("alone-0", "alone", "w1", "", corev1.PodSpec{})
				w.budget("alone", 0, 1, 0, 0)
			},
		},
		"QuotaOfPriorities": {
			reason: "either of two controllers takes the last pod of a quota, whatever the priority",
			want:   []string{"uncertain shop/important-0", "uncertain shop/other-0"},
			build: func(w *world) {
				important := corev1.PodSpec{Priority: new(int32(1000))}
				w.deploy("important", important, "w0")
				w.deploy("other", corev1.PodSpec{}, "w0")
				w.workloads.Quotas = []corev1.ResourceQuota{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "q"},
					Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("1")}},
					Status:     corev1.ResourceQuotaStatus{Used: corev1.ResourceList{"pods": resource.MustParse("2")}},
				}}
			},
		},
		"FinalizerAndStarting": {
			reason: "the finalizer may be removed while the pod that started does not get ready: the drain sticks at the next node then",
			want:   []string{"worker Sticks", "w0: shop/db-0 Terminating", "w1: shop/cart-0 TooFewHealthy", "w2: shop/alone Unmanaged"},
			build: func(w *world) {
				w.deploy("db", corev1.PodSpec{}, "w0")
				w.pods[0].Finalizers = []string{"example.com/detach"}
				w.deploy("cart", corev1.PodSpec{}, "w1", "i0")
				unready(&w.pods[2])
				w.pods[2].Status.StartTime = new(metav1.NewTime(now.Add(-12 * time.Second)))
				w.budget("cart", 0, 1, 1, 2)
				w.pod("alone", "alone", "w2", "", corev1.PodSpec{})
				w.budget("alone", 0, 1, 0, 0)
			},
		},
		"Late": {
			reason: "a StatefulSet creates its pod when the old one is gone: the pods of Deployments on the same node take the room",
			want:   []string{"worker Sticks ", "pending shop/db-0"},
			build: func(w *world) {
				w.nodes, w.pools = w.nodes[:3], w.pools[:1]
				w.stateful("db", requesting("1"), requesting("1"), "w0", "w0").Spec.PodManagementPolicy = appsv1.ParallelPodManagement
				w.budget("db", 1, 2, 1, 2)
				w.deploy("cart", requesting("1"), "w0")
				w.deploy("full", requesting("3"), "w1")
				w.deploy("fuller", requesting("4"), "w2")
			},
		},
		"Finalizer": {
			reason: "the API server grants the eviction, and the pod stays until its finalizer is removed",
			want:   []string{"worker Unknown ", "w0: shop/db-0 Terminating [] behind 0"},
			build: func(w *world) {
				w.deploy("db", corev1.PodSpec{}, "w0", "w1")
				w.pods[0].Finalizers = []string{"example.com/detach"}
			},
		},
		"JobFails": {
			reason: "a Job with backoffLimit 1 survives the eviction of its first pod, and not that of the second",
			want:   []string{"worker Clear w0 w1 w2", "lost shop/import-0", "lost shop/import-1"},
			build:  func(w *world) { w.job("import", 1, "w0", "w1") },
		},
		"JobExhausted": {
			reason: "a Job with backoffLimit 0 fails by the first eviction, and its other pods are deleted",
			want:   []string{"worker Clear w0 w1 w2", "lost shop/import-0", "lost shop/import-1"},
			build:  func(w *world) { w.job("import", 0, "w0", "i0") },
		},
		"JobContinues": {
			reason: "an evicted pod of a Job is created again", want: []string{"worker Clear w0 w1 w2"}, without: "lost",
			build: func(w *world) { w.job("import", 6, "w0", "w1") },
		},
		"SyncFailed": {
			reason: "a budget over the pods of a Job, made after them, keeps a status of no generation",
			want:   []string{"worker Sticks ", "w0: shop/import-0 SyncFailed [shop/import] behind 0"},
			build: func(w *world) {
				w.job("import", 6, "w0", "w1")
				budget := w.budget("import", 0, 0, 0, 0)
				budget.Generation, budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = 1, nil, new(intstr.FromInt32(1))
				budget.Status.Conditions = []metav1.Condition{{
					Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
					Reason: policyv1.SyncFailedReason, Message: "jobs.batch does not implement the scale subresource",
				}}
			},
		},
		"Starting": {
			reason: "a pod that started a moment ago may become ready", want: []string{"worker Unknown "},
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1", "w2")
				unready(&w.pods[2])
				w.pods[2].Status.StartTime = new(metav1.NewTime(now.Add(-12 * time.Second)))
				w.budget("cart", 0, 2, 2, 3)
			},
		},
		"Refused": {
			reason: "a webhook without a back end receives the pods that a controller creates", want: []string{
				"worker Sticks w0",
				`pending shop/db-0: the API server refuses it: it cannot be created: the Service of webhook "guard.example.com"`,
			},
			build: func(w *world) {
				w.deploy("db", corev1.PodSpec{}, "w0", "w1")
				w.budget("db", 1, 2, 1, 2)
				w.creation = reviewer.Creations(guard("db"))
			},
		},
		"NotReceived": {
			reason: "it receives other pods", want: []string{"worker Clear w0 w1 w2"},
			build: func(w *world) {
				w.deploy("db", corev1.PodSpec{}, "w0", "w1")
				w.budget("db", 1, 2, 1, 2)
				w.creation = reviewer.Creations(guard("cart"))
			},
		},
		"Disrupted": {
			reason: "an eviction that was granted, and whose pod was not deleted, counts for two minutes", want: []string{"worker Clear w0 w1 w2"},
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1", "w2")
				w.budget("cart", 0, 2, 2, 3).Status.DisruptedPods = map[string]metav1.Time{"cart-1": metav1.NewTime(now)}
			},
		},
		"FewerExpected": {
			reason: "a budget over two Deployments expects those that have pods: the pods of one of them are refused, and the other can be evicted",
			want:   []string{"worker Clear w0 w1 w2", "pending shop/old-0"},
			build: func(w *world) {
				w.deploy("old", corev1.PodSpec{PriorityClassName: "gone"}, "w0")
				w.deploy("new", corev1.PodSpec{}, "w1", "w2")
				for i := range w.pods {
					w.pods[i].Labels["app"] = "cart"
				}
				for i := range w.workloads.ReplicaSets {
					w.workloads.ReplicaSets[i].Spec.Template.Labels = map[string]string{"app": "cart"}
				}
				w.workloads.Priorities = append(w.workloads.Priorities, priority("other"))
				budget := w.budget("cart", 1, 3, 2, 3)
				budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = nil, new(intstr.FromInt32(1))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := small()
			tc.build(w)
			got := summary(w.rehearse(t))
			for _, line := range tc.want {
				if !strings.Contains(got+"\n", line) {
					t.Errorf("%s: %q is not in\n%s", tc.reason, line, got)
				}
			}
			if tc.without != "" && strings.Contains(got, tc.without) {
				t.Errorf("%s: %q is in\n%s", tc.reason, tc.without, got)
			}
		})
	}
}
