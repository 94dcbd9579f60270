package workload_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted/workload"
)

const namespace = "clusters-example"

// world is a management cluster: responses by path. A path without one is forbidden.
type world struct {
	nodes       []corev1.Node
	pods        []corev1.Pod
	budgets     []policyv1.PodDisruptionBudget
	deployments []appsv1.Deployment
	etcd        *appsv1.StatefulSet
	forbidden   map[string]bool
}

// healthy has three nodes with a member of etcd and an API server on each of the first two.
func healthy() *world {
	w := &world{forbidden: map[string]bool{}}
	for i := range 3 {
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("m%d", i),
			Labels: map[string]string{corev1.LabelHostname: fmt.Sprintf("m%d", i)},
		}}
		node.Status.Allocatable = corev1.ResourceList{
			corev1.ResourcePods: *resource.NewQuantity(100, resource.DecimalSI),
			corev1.ResourceCPU:  *resource.NewQuantity(4, resource.DecimalSI),
		}
		w.nodes = append(w.nodes, node)
	}
	w.etcd = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd"}}
	w.etcd.Spec.Replicas, w.etcd.Status.ReadyReplicas = new(int32(3)), 3
	w.deploy("kube-apiserver", 2)
	return w
}

// deploy adds a Deployment whose pods exclude each other from a node, and that adds a pod at a time.
func (w *world) deploy(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.Replicas, d.Status.ReadyReplicas = &replicas, replicas
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
		MaxSurge:       new(intstr.FromInt32(1)),
		MaxUnavailable: new(intstr.FromInt32(0)),
	}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name:      "c",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(1, resource.DecimalSI)}},
	}}
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: corev1.LabelHostname},
	}}}
	w.deployments = append(w.deployments, d)
	for i := range replicas {
		pod := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", name, i), Labels: labels},
			Spec:       *d.Spec.Template.Spec.DeepCopy(),
		}
		pod.Spec.NodeName = fmt.Sprintf("m%d", i)
		pod.Status = corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}
		w.pods = append(w.pods, pod)
	}
	return &w.deployments[len(w.deployments)-1]
}

// RoundTrip implements http.RoundTripper.
func (w *world) RoundTrip(request *http.Request) (*http.Response, error) {
	within := "/namespaces/" + namespace
	answers := map[string]any{
		"/apis/apps/v1" + within + "/deployments":            &appsv1.DeploymentList{Items: w.deployments},
		"/apis/policy/v1" + within + "/poddisruptionbudgets": &policyv1.PodDisruptionBudgetList{Items: w.budgets},
		"/api/v1" + within + "/pods":                         &corev1.PodList{Items: w.pods},
		"/api/v1/nodes":                                      &corev1.NodeList{Items: w.nodes},
		"/api/v1/pods":                                       &corev1.PodList{Items: w.pods},
		"/api/v1/namespaces":                                 &corev1.NamespaceList{Items: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}},
		"/apis/apps/v1" + within + "/statefulsets/etcd":      w.etcd,
	}
	code, body := http.StatusOK, answers[request.URL.Path]
	switch {
	case w.forbidden[request.URL.Path] || body == nil:
		code, body = http.StatusForbidden, metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden,
			Code: http.StatusForbidden, Message: "no",
		}
	case body == (*appsv1.StatefulSet)(nil):
		code, body = http.StatusNotFound, metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound,
			Code: http.StatusNotFound,
		}
	}
	text, err := json.Marshal(body)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)), Request: request,
	}, err
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		said   workload.Said
		change func(*world)
		want   string // reasons and outcomes
		text   string // a part of the first message
	}{
		"Healthy": {reason: "all run, and the third node has room", want: "ControlPlanePodsReady Pass"},
		"Member": {
			reason: "the condition EtcdAvailable is about the quorum, which the restart of one more member ends", want: "EtcdMemberNotReady Fail",
			change: func(w *world) { w.etcd.Status.ReadyReplicas = 2 }, text: "2 of 3 members",
		},
		"MemberSaid": {
			reason: "what a condition says is said once", said: workload.Said{Etcd: true}, want: "ControlPlanePodsReady Pass",
			change: func(w *world) { w.etcd.Status.ReadyReplicas = 0 },
		},
		"NoEtcd": {
			reason: "etcd that is not there is not healthy", change: func(w *world) { w.etcd = nil },
			want: "ControlPlanePodsUnknown Unknown",
		},
		"Unmanaged": {
			reason: "etcd outside of the management cluster has no pods", said: workload.Said{Unmanaged: true}, want: "ControlPlanePodsReady Pass",
			change: func(w *world) { w.etcd = nil },
		},
		"APIServer": {
			reason: "one replica responds, and the rollout waits for the other", want: "APIServerNotReady Warn",
			change: func(w *world) { w.deployments[0].Status.ReadyReplicas = 1 },
		},
		"NoAPIServerReady": {
			reason: "none responds", want: "APIServerNotReady Fail", change: func(w *world) { w.deployments[0].Status.ReadyReplicas = 0 },
		},
		"BudgetNever": {
			reason: "an update of the control plane evicts nothing: never a block", want: "ControlPlaneBudgetNever Warn", text: "RequiresAll",
			change: func(w *world) { w.budget(2, 2, 2) },
		},
		"BudgetAtLimit": {
			reason: "too few pods are ready now", want: "ControlPlaneBudgetAtLimit Warn", change: func(w *world) { w.budget(2, 1, 1) },
		},
		"BudgetUnused": {
			reason: "a budget that selects nothing keeps nothing", want: "ControlPlanePodsReady Pass",
			change: func(w *world) { w.budget(0, 0, 0); w.budgets[0].Spec.Selector.MatchLabels["app"] = "none" },
		},
		"AntiAffinity": {
			reason: "with as many replicas as nodes the next pod has no node (cluster-network-operator#1943)", want: "NoRoomForRollout Warn",
			text:   "3 nodes excluded by pod anti-affinity",
			change: func(w *world) { w.deploy("ovnkube-control-plane", 3) },
		},
		"Unavailable": {
			reason: "a rollout that removes a pod first needs no room", want: "ControlPlanePodsReady Pass",
			change: func(w *world) {
				w.deploy("ovnkube-control-plane", 3).Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
			},
		},
		"Percent": {
			reason: "a quarter of three replicas is no pod that may be unavailable", want: "NoRoomForRollout Warn",
			change: func(w *world) { w.deploy("ovnkube-control-plane", 3).Spec.Strategy.RollingUpdate = nil },
		},
		"Revision": {
			reason: "pods of another revision are not excluded", want: "ControlPlanePodsReady Pass",
			change: func(w *world) {
				d := w.deploy("router", 3)
				d.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].MatchLabelKeys = []string{"pod-template-hash"}
				for i := range w.pods {
					w.pods[i].Spec.Affinity = nil
				}
			},
		},
		"Full": {
			reason: "the only free node has too little left", want: "NoRoomForRollout Warn", text: "2 nodes excluded by pod anti-affinity",
			change: func(w *world) {
				w.nodes[2].Status.Allocatable[corev1.ResourceCPU] = *resource.NewQuantity(0, resource.DecimalSI)
			},
		},
		"Volume": {
			reason: "where a volume can be mounted is not evaluated", want: "RolloutRoomUnknown Warn",
			change: func(w *world) {
				w.deployments[0].Spec.Template.Spec.Volumes = []corev1.Volume{{
					Name:         "v",
					VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}},
				}}
			},
		},
		"ForbiddenNamespace": {
			reason: "a missing permission is reported once", want: "ControlPlanePodsUnknown Unknown",
			text:   "could not list the Deployments of namespace clusters-example",
			change: func(w *world) { w.forbidden["/apis/apps/v1/namespaces/clusters-example/deployments"] = true },
		},
		"ForbiddenNodes": {
			reason: "room only warns, so its absence does too", want: "RolloutRoomUnknown Warn",
			change: func(w *world) { w.forbidden["/api/v1/nodes"] = true },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := healthy()
			if tc.change != nil {
				tc.change(w)
			}
			management, err := cluster.Connect(&rest.Config{Host: "https://management.invalid", Transport: w}, "workload_test")
			if err != nil {
				t.Fatal(err)
			}
			found := workload.Read(t.Context(), management, namespace).Evaluate(tc.said)
			var got []string
			for _, f := range found {
				got = append(got, f.Reason+" "+string(f.Outcome))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" || !strings.Contains(found[0].Message, tc.text) {
				t.Errorf("%s: %s\n-want, +got:\n%s", tc.reason, found[0].Message, diff)
			}
		})
	}
}

// budget adds a budget of the API server.
func (w *world) budget(expected, desired, healthy int32) {
	budget := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-apiserver"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kube-apiserver"}}
	budget.Status = policyv1.PodDisruptionBudgetStatus{ExpectedPods: expected, DesiredHealthy: desired, CurrentHealthy: healthy}
	w.budgets = append(w.budgets, budget)
}
