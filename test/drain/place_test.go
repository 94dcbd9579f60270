package drain_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	machineconfigurationclient "github.com/openshift/client-go/machineconfiguration/clientset/versioned"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/test/await"
	testcluster "github.com/openshift/update-preflight/test/cluster"
)

const roleLabel = "drain.test/role"

// place is a namespace in which the state of a report is made.
type place struct {
	t         *testing.T
	clients   kubernetes.Interface
	namespace string
}

func newPlace(t *testing.T, namespace string) *place {
	t.Helper()
	p := &place{t: t, clients: oracle.Clients, namespace: namespace}
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err := p.clients.CoreV1().Namespaces().Create(t.Context(), made, metav1.CreateOptions{})
	p.must(err)
	t.Cleanup(func() {
		p.must(p.clients.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{}))
	})
	return p
}

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// nodes creates a pool of that many nodes.
func nodes(t *testing.T, role string, count int, paused bool) {
	t.Helper()
	p := &place{t: t, clients: oracle.Clients}
	pools := machineconfigurationclient.NewForConfigOrDie(local.Config).MachineconfigurationV1().MachineConfigPools()
	pool := &machineconfigurationv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: role}}
	pool.Spec.Paused, pool.Spec.NodeSelector = paused, &metav1.LabelSelector{MatchLabels: map[string]string{roleLabel: role}}
	_, err := pools.Create(t.Context(), pool, metav1.CreateOptions{})
	p.must(err)
	t.Cleanup(func() { p.must(pools.Delete(context.WithoutCancel(t.Context()), role, metav1.DeleteOptions{})) })
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods: resource.MustParse("250"),
	}
	for i := range count {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", role, i), Labels: map[string]string{
					roleLabel: role, corev1.LabelHostname: fmt.Sprintf("%s-%d", role, i),
					corev1.LabelOSStable: "linux",
				},
				Annotations: map[string]string{
					"machineconfiguration.openshift.io/currentConfig": "a",
					"machineconfiguration.openshift.io/desiredConfig": "a", "machineconfiguration.openshift.io/state": "Done",
				},
			},
			Status: corev1.NodeStatus{
				Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
			},
		}
		_, err := p.clients.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
		p.must(err)
		_, err = p.clients.CoreV1().Nodes().Patch(t.Context(), node.Name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`),
			metav1.PatchOptions{})
		p.must(err)
		t.Cleanup(func() {
			p.must(p.clients.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), node.Name, metav1.DeleteOptions{}))
		})
	}
}

// template is a pod for the nodes of a role.
func template(role string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{roleLabel: role}, TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/nothing"}},
		},
	}
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
}

// deploy creates a Deployment with one replica.
func (p *place) deploy(of corev1.PodTemplateSpec) {
	p.t.Helper()
	_, err := p.clients.AppsV1().Deployments(p.namespace).Create(p.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: selector(), Template: of},
	}, metav1.CreateOptions{})
	p.must(err)
}

// operated is an object of an operator that is not run.
type operated struct {
	schema.GroupVersionKind

	plural string
	fields map[string]any
	// role is that of the nodes of its pod, and labels are more labels of the pod.
	role   string
	labels map[string]string
}

// operate creates an object of an operator, with its pod. It returns the object as an owner.
func (p *place) operate(by operated) metav1.OwnerReference {
	p.t.Helper()
	version, kind := by.ToAPIVersionAndKind()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "o"}}}
	maps.Copy(object.Object, by.fields)
	objects := dynamic.NewForConfigOrDie(local.Config).Resource(by.GroupVersion().WithResource(by.plural)).Namespace(p.namespace)
	made, err := objects.Create(p.t.Context(), object, metav1.CreateOptions{})
	p.must(err)
	owner := metav1.OwnerReference{APIVersion: version, Kind: kind, Name: "o", UID: made.GetUID(), Controller: new(true)}
	of := template(by.role)
	maps.Copy(of.Labels, by.labels)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "o-1", Labels: of.Labels, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:       of.Spec,
	}
	_, err = p.clients.CoreV1().Pods(p.namespace).Create(p.t.Context(), pod, metav1.CreateOptions{})
	p.must(err)
	return owner
}

// budget creates a budget over the pods of the place.
func (p *place) budget(spec policyv1.PodDisruptionBudgetSpec, owners ...metav1.OwnerReference) {
	p.t.Helper()
	spec.Selector = selector()
	_, err := p.clients.PolicyV1().PodDisruptionBudgets(p.namespace).Create(p.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "a", OwnerReferences: owners}, Spec: spec,
	}, metav1.CreateOptions{})
	p.must(err)
}

// settle waits until the pods are as ready as they get, and the budgets are computed. It returns the
// pods.
func (p *place) settle() []corev1.Pod {
	p.t.Helper()
	var found []corev1.Pod
	await.Until(p.t, "the state in namespace "+p.namespace, func(ctx context.Context) bool {
		pods, err := p.clients.CoreV1().Pods(p.namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(pods.Items) == 0 {
			return false
		}
		found = pods.Items
		var ready int32
		for i := range found {
			pod := &found[i]
			switch {
			case eviction.Ready(pod):
				ready++
			case pod.Spec.NodeName == "" && len(pod.Status.Conditions) > 0, pod.Annotations[testcluster.AnnotationReady] == testcluster.NeverReady &&
				pod.Status.Phase == corev1.PodRunning:
			default:
				return false
			}
		}
		budgets, err := p.clients.PolicyV1().PodDisruptionBudgets(p.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		for i := range budgets.Items {
			status := &budgets.Items[i].Status
			failed := len(status.Conditions) > 0 && status.Conditions[0].Reason == policyv1.SyncFailedReason
			if !failed && (status.ObservedGeneration == 0 || status.CurrentHealthy != ready) {
				return false
			}
		}
		return true
	})
	return found
}
