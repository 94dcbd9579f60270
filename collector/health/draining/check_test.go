package draining_test

import (
	stdcmp "cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health/draining"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/ownsignal"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	nodesPath   = "/api/v1/nodes"
	podsPath    = "/api/v1/pods"
	budgetsPath = "/apis/policy/v1/poddisruptionbudgets"
	poolsPath   = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"
	jobsPath    = "/apis/batch/v1/jobs"

	replicaSetsPath = "/apis/apps/v1/replicasets"

	servicesPath = "/api/v1/services"
	slicesPath   = "/apis/discovery.k8s.io/v1/endpointslices"
	webhooksPath = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	bindingsPath = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
)

// world is what an API server has. A real one would overwrite the status of the budgets.
type world struct {
	nodes   []*corev1.Node
	pods    []*corev1.Pod
	budgets []*policyv1.PodDisruptionBudget
	pools   []*machineconfigurationv1.MachineConfigPool
}

// workers is a pool of two nodes.
func workers() *world {
	w := &world{}
	for _, name := range []string{"w0", "w1"} {
		w.nodes = append(w.nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{"worker": ""},
				Annotations: map[string]string{
					"machineconfiguration.openshift.io/currentConfig": "a",
					"machineconfiguration.openshift.io/desiredConfig": "a",
				},
			},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	pool := &machineconfigurationv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"worker": ""}}
	w.pools = append(w.pools, pool)
	return w
}

// custom adds pools of the nodes with these labels.
func (w *world) custom(names ...string) {
	for _, name := range names {
		pool := &machineconfigurationv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{name: ""}}
		w.pools = append(w.pools, pool)
	}
}

// guarded adds a pod on w0, and a budget that requires it.
func (w *world) guarded(namespace, name string) *policyv1.PodDisruptionBudget {
	labels := map[string]string{"app": name}
	w.pods = append(w.pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-0", Labels: labels, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: "1", Controller: new(true)},
		}},
		Spec: corev1.PodSpec{NodeName: "w0", Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	})
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)),
			Selector:     &metav1.LabelSelector{MatchLabels: labels},
		},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 1, DesiredHealthy: 1, CurrentHealthy: 1},
	}
	w.budgets = append(w.budgets, budget)
	return budget
}

func (w *world) paths(t *testing.T) map[string]checktest.Response {
	t.Helper()
	return map[string]checktest.Response{
		nodesPath:   checktest.Pages(t, "v1", "NodeList", w.nodes),
		podsPath:    checktest.Pages(t, "v1", "PodList", w.pods),
		budgetsPath: checktest.Pages(t, "policy/v1", "PodDisruptionBudgetList", w.budgets),
		poolsPath:   checktest.Pages(t, "machineconfiguration.openshift.io/v1", "MachineConfigPoolList", w.pools),
	}
}

// evictable replaces the budgets by a pod on a node with a controller of that kind.
func (w *world) evictable(node, kind string) {
	if len(w.budgets) > 0 {
		w.pods, w.budgets = nil, nil
	}
	w.guarded("shop", "cart")
	w.budgets = nil
	pod := w.pods[len(w.pods)-1]
	pod.Name, pod.Spec.NodeName, pod.OwnerReferences[0].Kind = fmt.Sprintf("cart-%d", len(w.pods)-1), node, kind
}

// replicaSets is the ReplicaSet of evictable pods.
func replicaSets(t *testing.T, replicas int32, template corev1.PodTemplateSpec) checktest.Response {
	t.Helper()
	return checktest.Pages(t, "apps/v1", "ReplicaSetList", []*appsv1.ReplicaSet{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Template: template}},
	})
}

// objects adds an object that is written as JSON.
func objects(t *testing.T, paths map[string]checktest.Response, version, plural, object string) {
	t.Helper()
	made := map[string]any{}
	if err := json.Unmarshal([]byte(object), &made); err != nil {
		t.Fatal(err)
	}
	paths["/apis/"+version+"/"+plural] = checktest.Pages(t, version, "List", []map[string]any{made})
}

// autoscaled adds the cluster autoscaler, with a MachineSet of one machine that may have most, and that many nodes in all.
func autoscaled(t *testing.T, paths map[string]checktest.Response, most, total int) {
	t.Helper()
	objects(t, paths, "autoscaling.openshift.io/v1", "clusterautoscalers",
		fmt.Sprintf(`{"metadata":{"name":"default"},"spec":{"resourceLimits":{"maxNodesTotal":%d}}}`, total))
	objects(t, paths, "autoscaling.openshift.io/v1beta1", "machineautoscalers", fmt.Sprintf(
		`{"metadata":{"namespace":"openshift-machine-api","name":"a"},"spec":{"maxReplicas":%d,"scaleTargetRef":{"apiVersion":"machine.openshift.io/v1beta1","kind":"MachineSet","name":"a"}}}`, most))
	objects(t, paths, "machine.openshift.io/v1beta1", "machinesets",
		`{"metadata":{"namespace":"openshift-machine-api","name":"a"},"spec":{"replicas":1}}`)
	objects(t, paths, "machine.openshift.io/v1beta1", "machines",
		`{"metadata":{"namespace":"openshift-machine-api","name":"a-1","ownerReferences":[{"apiVersion":"machine.openshift.io/v1beta1","kind":"MachineSet","name":"a","uid":"1","controller":true}]}}`)
}

// reviewed adds a webhook on the creation of these resources, and the Service that serves all of them.
func reviewed(t *testing.T, paths map[string]checktest.Response, name string, resources ...string) {
	t.Helper()
	made := admissionregistrationv1.ValidatingWebhook{
		Name: name, NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		FailurePolicy: new(admissionregistrationv1.Fail),
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: resources},
		}},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: "policy",
			Name:      "engine",
		}},
	}
	path := webhooksPath
	if paths[path] == nil {
		paths[path] = checktest.Pages(t, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfigurationList",
			[]*admissionregistrationv1.ValidatingWebhookConfiguration{
				{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.ValidatingWebhook{made}},
			})
	} else {
		mutating := admissionregistrationv1.MutatingWebhook{
			Name: name, NamespaceSelector: made.NamespaceSelector, ObjectSelector: made.ObjectSelector, FailurePolicy: made.FailurePolicy,
			Rules: made.Rules, ClientConfig: made.ClientConfig,
		}
		paths[strings.Replace(path, "validating", "mutating", 1)] = checktest.Pages(t, "admissionregistration.k8s.io/v1",
			"MutatingWebhookConfigurationList", []*admissionregistrationv1.MutatingWebhookConfiguration{
				{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.MutatingWebhook{mutating}},
			})
	}
	paths[servicesPath] = checktest.Pages(t, "v1", "ServiceList", []*corev1.Service{
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "policy", Name: "engine"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
		},
	})
	paths[slicesPath] = checktest.Pages(t, "discovery.k8s.io/v1", "EndpointSliceList", []*discoveryv1.EndpointSlice{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "policy", Name: "engine-1", Labels: map[string]string{discoveryv1.LabelServiceName: "engine"}},
		Ports:      []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(8443))}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, NodeName: new("w1")}},
	}})
}

func forbidden(*http.Request) (int, []byte) {
	return http.StatusForbidden, []byte(
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"jobs.batch is forbidden"}`)
}

func TestCheck(t *testing.T) {
	type results = map[string]checktest.Result
	result := func(outcome preflight.Outcome, reason string) checktest.Result {
		return checktest.Result{Outcome: outcome, Reason: reason}
	}
	blocked := results{"PodDisruptionBudget-shop.cart": result(preflight.Fail, "NeverSatisfied")}
	for name, tc := range map[string]struct {
		reason   string
		topology configv1.TopologyMode
		change   func(*world, map[string]checktest.Response)
		remedy   string // a part of the first one
		managed  bool   // no remedy edits the budget
		message  string // a part of one
		to       string // 4.18.4 if empty
		want     results
	}{
		"Blocked": {
			reason: "no pod of the budget can be evicted", topology: configv1.HighlyAvailableTopologyMode, want: blocked,
			remedy: "oc -n shop patch poddisruptionbudget cart",
		},
		"Helm": {
			reason: "a budget that Helm restores is not edited", topology: configv1.HighlyAvailableTopologyMode, want: blocked, managed: true,
			remedy: `Change the settings of Helm release "shop"`,
			change: func(w *world, _ map[string]checktest.Response) {
				w.budgets[0].Annotations = map[string]string{"meta.helm.sh/release-name": "shop"}
			},
		},
		"OLM": {
			reason: "a budget of a bundle is restored, and does not change during a drain", topology: configv1.HighlyAvailableTopologyMode,
			want:    blocked,
			managed: true, remedy: `Change the settings of ClusterServiceVersion "shop.v1"`,
			change: func(w *world, _ map[string]checktest.Response) {
				w.budgets[0].Labels = map[string]string{"olm.owner": "shop.v1"}
			},
		},
		"Operator": {
			reason: "an operator that owns a budget may change it during a drain: never a block", topology: configv1.HighlyAvailableTopologyMode,
			remedy: "Change the settings of the operator", managed: true,
			change: func(w *world, _ map[string]checktest.Response) {
				w.budgets[0].OwnerReferences = []metav1.OwnerReference{{APIVersion: "db.example.com/v1", Kind: "Database", Name: "cart", UID: "1"}}
			},
			want: results{
				"DrainOperator-shop.cart": result(preflight.Unknown, "OperatorMovesPods"),
				"DrainLost":               result(preflight.Warn, "NotRecreated"),
			},
		},
		"Platform": {
			reason: "operators of OpenShift restore their budgets", topology: configv1.HighlyAvailableTopologyMode,
			remedy: "Check the operator of namespace openshift-shop", managed: true,
			change: func(w *world, _ map[string]checktest.Response) {
				w.pods, w.budgets = nil, nil
				w.guarded("openshift-shop", "cart")
			},
			want: results{"PodDisruptionBudget-openshift-shop.cart": result(preflight.Fail, "NeverSatisfied")},
		},
		"Paused": {
			reason: "the nodes of a paused pool are not drained", topology: configv1.HighlyAvailableTopologyMode,
			change:  func(w *world, _ map[string]checktest.Response) { w.pools[0].Spec.Paused = true },
			want:    results{"Drain": result(preflight.Pass, "AsExpected"), "DrainUnreached": result(preflight.Warn, "NodesNotReached")},
			message: `this update does not reach 2 nodes; MachineConfigPool "worker" is paused: w0, w1`,
		},
		"PausedMinor": {
			reason:   "the check MachineConfigPool reports a paused pool of an update to another minor version",
			topology: configv1.HighlyAvailableTopologyMode, to: "4.19.0",
			change: func(w *world, _ map[string]checktest.Response) { w.pools[0].Spec.Paused = true },
			want:   results{"Drain": result(preflight.Pass, "AsExpected")},
		},
		"SeveralPools": {
			reason: "MCO updates no node of two custom pools, and states that only in its log", topology: configv1.HighlyAvailableTopologyMode,
			to: "4.19.0",
			change: func(w *world, _ map[string]checktest.Response) {
				w.nodes[0].Labels["gpu"], w.nodes[0].Labels["infra"] = "", ""
				w.custom("gpu", "infra")
			},
			want:    results{"Drain": result(preflight.Pass, "AsExpected"), "DrainUnreached": result(preflight.Warn, "NodesNotReached")},
			message: "this update does not reach 1 node; several custom MachineConfigPools select the node, and none updates it: w0",
		},
		"NoPool": {
			reason:   "a node that lost its role keeps its release; one of Windows has another operator, and one without a daemon fails NodeHealth",
			topology: configv1.HighlyAvailableTopologyMode,
			change: func(w *world, _ map[string]checktest.Response) {
				w.pods, w.budgets = nil, nil
				for i, name := range []string{"w2", "windows", "foreign"} {
					node := w.nodes[1].DeepCopy()
					node.Name, node.Labels = name, map[string]string{corev1.LabelOSStable: []string{"linux", "windows", "linux"}[i]}
					node.Annotations["machineconfiguration.openshift.io/state"] = []string{"Done", "Done", ""}[i]
					w.nodes = append(w.nodes, node)
				}
			},
			want:    results{"Drain": result(preflight.Pass, "AsExpected"), "DrainUnreached": result(preflight.Warn, "NodesNotReached")},
			message: "this update does not reach 1 node; no MachineConfigPool selects the node: w2",
		},
		"AnotherConfiguration": {
			reason:   "a node that has to apply another configuration is drained for that before; one at work is that of NodeHealth",
			topology: configv1.HighlyAvailableTopologyMode,
			change: func(w *world, _ map[string]checktest.Response) {
				w.pods, w.budgets = nil, nil
				w.pools[0].Spec.MaxUnavailable = new(intstr.FromInt32(3))
				w.nodes = append(w.nodes, w.nodes[1].DeepCopy())
				w.nodes[2].Name = "w2"
				for i, state := range []string{"Done", "Working"} {
					w.nodes[i].Annotations["machineconfiguration.openshift.io/state"],
						w.nodes[i].Annotations["machineconfiguration.openshift.io/desiredConfig"] = state, "b"
				}
			},
			want:    results{"Drain": result(preflight.Pass, "AsExpected"), "DrainUnreached": result(preflight.Warn, "NodesNotReached")},
			message: "this update does not reach 1 node; the node first gets another configuration, with a drain that was not rehearsed: w0",
		},
		"SingleNode": {
			reason: "a cluster with a single node is not drained", topology: configv1.SingleReplicaTopologyMode,
			want: results{"Drain": result(preflight.Skipped, "SingleNode")},
		},
		"Kubernetes": {
			reason: "only OpenShift drains nodes for an update", want: results{"Drain": result(preflight.Skipped, "PlainKubernetes")},
			change: func(_ *world, paths map[string]checktest.Response) { paths[poolsPath] = checktest.NotServed },
		},
		"NoPools": {
			reason: "which nodes are drained is not known", topology: configv1.HighlyAvailableTopologyMode,
			want:   results{"Drain": result(preflight.Unknown, "APIMissing")},
			change: func(_ *world, paths map[string]checktest.Response) { paths[poolsPath] = checktest.NotServed },
		},
		"Unread": {
			reason: "what was found is reported, and what could not be read", topology: configv1.HighlyAvailableTopologyMode,
			change: func(_ *world, paths map[string]checktest.Response) { paths[jobsPath] = forbidden },
			want: results{
				"PodDisruptionBudget-shop.cart": result(preflight.Fail, "NeverSatisfied"),
				"Drain":                         result(preflight.Unknown, "Forbidden"),
			},
		},
		"OwnCheck": {
			reason: "the pods of a preflight in progress are deleted before an update", topology: configv1.HighlyAvailableTopologyMode,
			change: func(w *world, paths map[string]checktest.Response) {
				w.pods[0].Name = "cart-001ed7bab5-x7k2p"
				w.pods[0].Labels[ownsignal.RunLabel] = "001ed7ba-b51c-4492-a5eb-4d5167ac03fb"
				paths[bindingsPath] = checktest.Pages(t, "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBindingList",
					[]*admissionregistrationv1.ValidatingAdmissionPolicyBinding{
						{ObjectMeta: metav1.ObjectMeta{Name: "preflight-read-only-001ed7bab5"}},
					})
			},
			want: results{"Drain": result(preflight.Pass, "AsExpected"), "PodDisruptionBudgetsUnused": result(preflight.Warn, "SelectsNothing")},
		},
		"ForgedCheck": {
			reason: "a label alone hides no pod", topology: configv1.HighlyAvailableTopologyMode, want: blocked,
			change: func(w *world, _ map[string]checktest.Response) {
				w.pods[0].Labels[ownsignal.RunLabel] = "001ed7ba-b51c-4492-a5eb-4d5167ac03fb"
			},
		},
		"ForgedCheckOfARun": {
			reason: "a label hides no pod that the run does not delete", topology: configv1.HighlyAvailableTopologyMode, want: blocked,
			change: func(w *world, paths map[string]checktest.Response) {
				w.pods[0].Labels[ownsignal.RunLabel] = "001ed7ba-b51c-4492-a5eb-4d5167ac03fb"
				paths[bindingsPath] = checktest.Pages(t, "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBindingList",
					[]*admissionregistrationv1.ValidatingAdmissionPolicyBinding{
						{ObjectMeta: metav1.ObjectMeta{Name: "preflight-read-only-001ed7bab5"}},
					})
			},
		},
		"PolicyEngine": {
			reason:   "webhooks on all requests do not decide on evictions: one warning for those of a Service",
			topology: configv1.HighlyAvailableTopologyMode,
			change: func(w *world, paths map[string]checktest.Response) {
				w.budgets = nil
				reviewed(t, paths, "validate.example.com", "*", "pods/eviction")
				reviewed(t, paths, "mutate.example.com", "*/*")
			},
			want: results{
				"DrainWebhook-validate.example.com": result(preflight.Warn, "EvictionsReceived"),
				"DrainLost":                         result(preflight.Warn, "NotRecreated"),
			},
		},
		"Reviewer": {
			reason:   "a webhook on evictions decides on them: one finding, whatever the pods are called",
			topology: configv1.HighlyAvailableTopologyMode,
			change: func(w *world, paths map[string]checktest.Response) {
				w.guarded("bank", "account")
				w.budgets = nil
				reviewed(t, paths, "evictions.example.com", "pods/eviction")
			},
			want: results{
				"DrainAdmission-evictions.example.com": result(preflight.Unknown, "EvictionRefused"),
				"DrainLost":                            result(preflight.Warn, "NotRecreated"),
			},
		},
		"Unused": {
			reason: "a budget without pods protects nothing; those of OpenShift are no warning", topology: configv1.HighlyAvailableTopologyMode,
			change: func(w *world, _ map[string]checktest.Response) {
				w.guarded("openshift-shop", "spare")
				w.pods = nil
			},
			want: results{"Drain": result(preflight.Pass, "AsExpected"), "PodDisruptionBudgetsUnused": result(preflight.Warn, "SelectsNothing")},
		},
		"Autoscaler": {
			reason:   "no node suits the pod, and a MachineSet of one of them may have another machine",
			topology: configv1.HighlyAvailableTopologyMode,
			change: func(w *world, paths map[string]checktest.Response) {
				w.evictable("w0", "ReplicaSet")
				w.pods[0].Spec.NodeSelector = map[string]string{"disk": "nvme"}
				w.nodes[0].Labels["disk"], w.nodes[0].Annotations["machine.openshift.io/machine"] = "nvme", "openshift-machine-api/a-1"
				w.nodes[0].Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("250")}
				paths[replicaSetsPath] = replicaSets(t, 1,
					corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: w.pods[0].Labels}, Spec: w.pods[0].Spec})
				autoscaled(t, paths, 2, 9)
			},
			want:    results{"DrainMachines": result(preflight.Warn, "NeedsNewMachine")},
			message: "shop/cart-0 needs a new machine of MachineSet openshift-machine-api/a",
		},
		"AutoscalerAtItsLimit": {
			reason: "the cluster has as many nodes as the ClusterAutoscaler allows", topology: configv1.HighlyAvailableTopologyMode,
			change: func(w *world, paths map[string]checktest.Response) {
				w.evictable("w0", "ReplicaSet")
				w.pods[0].Spec.NodeSelector = map[string]string{"disk": "nvme"}
				w.nodes[0].Labels["disk"], w.nodes[0].Annotations["machine.openshift.io/machine"] = "nvme", "openshift-machine-api/a-1"
				w.nodes[0].Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("250")}
				paths[replicaSetsPath] = replicaSets(t, 1,
					corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: w.pods[0].Labels}, Spec: w.pods[0].Spec})
				autoscaled(t, paths, 9, 2)
			},
			want: results{"Drain": result(preflight.Pass, "AsExpected")},
		},
		"AutoscalerWithoutRoom": {
			reason: "the MachineSet has as many machines as the MachineAutoscaler allows", topology: configv1.HighlyAvailableTopologyMode,
			change: func(w *world, paths map[string]checktest.Response) {
				w.evictable("w0", "ReplicaSet")
				w.pods[0].Spec.NodeSelector = map[string]string{"disk": "nvme"}
				w.nodes[0].Annotations["machine.openshift.io/machine"] = "openshift-machine-api/a-1"
				autoscaled(t, paths, 1, 9)
			},
			want: results{"DrainLost": result(preflight.Warn, "NotRecreated")},
		},
		"Addresses": {
			reason:   "an EgressIP with one node, a group of keepalived on one node, and one of MetalLB on both",
			topology: configv1.HighlyAvailableTopologyMode,
			change: func(w *world, paths map[string]checktest.Response) {
				w.pods, w.budgets = nil, nil
				w.nodes[0].Labels["k8s.ovn.org/egress-assignable"], w.nodes[1].Labels["vip"] = "", "yes"
				objects(t, paths, "k8s.ovn.org/v1", "egressips", `{"metadata":{"name":"shop"},"spec":{"egressIPs":["192.0.2.1"]}}`)
				objects(t, paths, "redhatcop.redhat.io/v1alpha1", "keepalivedgroups",
					`{"metadata":{"namespace":"vip","name":"front"},"spec":{"nodeSelector":{"vip":"yes"}}}`)
				objects(t, paths, "metallb.io/v1beta1", "l2advertisements", `{"metadata":{"namespace":"metallb","name":"all"},"spec":{}}`)
			},
			want:    results{"DrainAddresses": result(preflight.Warn, "AddressOnOneNode")},
			message: `addresses of EgressIP "shop", on w0, addresses of KeepalivedGroup "front", on w1`,
		},
		"Together": {
			reason: "two of three nodes are drained at a time, and each has one of the two pods", topology: configv1.HighlyAvailableTopologyMode,
			remedy: `oc patch machineconfigpool worker`,
			change: func(w *world, paths map[string]checktest.Response) {
				w.pools[0].Spec.MaxUnavailable = new(intstr.FromInt32(2))
				w.evictable("w0", "ReplicaSet")
				w.evictable("w1", "ReplicaSet")
				w.nodes = append(w.nodes, w.nodes[1].DeepCopy())
				w.nodes[2].Name = "w2"
				for _, node := range w.nodes {
					node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("250")}
				}
				paths[replicaSetsPath] = replicaSets(t, 2, corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: w.pods[0].Labels}})
			},
			want:    results{"DrainTogether-worker": result(preflight.Warn, "SeveralNodesAtOnce")},
			message: "ReplicaSet shop/cart loses its 2 ready pods",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.topology != "" {
				server.Create(t, checktest.Infrastructure(tc.topology))
			}
			w := workers()
			w.guarded("shop", "cart")
			more := map[string]checktest.Response{}
			if tc.change != nil {
				tc.change(w, more)
			}
			paths := w.paths(t)
			maps.Copy(paths, more)
			findings := checktest.Run(t, draining.Check(), server.Responding(paths).Snapshot(t),
				checktest.Update(t, "4.18.3", stdcmp.Or(tc.to, "4.18.4")))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if found := checktest.Messages(findings); !strings.Contains(found, tc.message) {
				t.Errorf("%s: %q is not in %q", tc.reason, tc.message, found)
			}
			got := checktest.Remedies(findings)
			if edits := strings.Contains(got, "patch poddisruptionbudget"); !strings.Contains(got, tc.remedy) || (edits && tc.managed) {
				t.Errorf("%s: remedy %q, want %q in it", tc.reason, got, tc.remedy)
			}
		})
	}
}

// TestMany rehearses a large cluster once for all updates, and bounds the findings.
func TestMany(t *testing.T) {
	server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode))
	w := workers()
	for i := range 1000 {
		w.guarded(fmt.Sprintf("n%02d", i%20), fmt.Sprintf("b%03d", i))
	}
	var requests atomic.Int32
	paths := w.paths(t)
	list := paths[podsPath]
	paths[podsPath] = func(request *http.Request) (int, []byte) {
		requests.Add(1)
		return list(request)
	}
	snapshot := server.Responding(paths).Snapshot(t)
	for _, to := range []string{"4.18.4", "4.18.5"} {
		findings := checktest.Run(t, draining.Check(), snapshot, checktest.Update(t, "4.18.3", to))
		if at := slices.IndexFunc(findings, func(f finding.Finding) bool { return strings.Contains(f.Message, "950 more findings") }); at != 50 {
			t.Errorf("got %d findings, want 50 and the count of the rest", len(findings))
		}
	}
	if requests.Load() != 2 {
		t.Errorf("1000 pods were read in %d requests, want 2 for all updates", requests.Load())
	}
}

// A plan states nothing in favor of a pool where something was not read that may be against its drains.
func TestUnreadPlan(t *testing.T) {
	server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode))
	for _, tc := range []struct {
		jobs   checktest.Response // nil is that of the API server
		want   drain.Outcome
		passes int
	}{{nil, drain.Clear, 1}, {forbidden, drain.Undetermined, 0}} {
		paths := workers().paths(t)
		if tc.jobs != nil {
			paths[jobsPath] = tc.jobs
		}
		plan, err := draining.Rehearse(t.Context(), server.Responding(paths).Snapshot(t).Cluster, time.Now(), draining.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		passes := 0
		for _, each := range plan.Findings {
			if each.Outcome == preflight.Pass {
				passes++
			}
		}
		if pools := plan.Rehearsal.Pools; plan.Outcome != tc.want || len(pools) != 1 || pools[0].Outcome != tc.want || passes != tc.passes {
			t.Errorf("without %q: the plan is %q, its pools are %+v, and %d findings pass; want %q and %d", plan.Unread, plan.Outcome, pools, passes,
				tc.want, tc.passes)
		}
	}
}
