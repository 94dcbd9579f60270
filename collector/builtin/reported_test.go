package builtin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/builtin"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/scene"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Tests of: collector/drain/survey

// reported is a cluster of three masters and three workers, and what people reported of one.
type reported struct {
	version    *configv1.ClusterVersion
	nodes      []*corev1.Node
	pods       []*corev1.Pod
	namespaces []*corev1.Namespace
	sets       []*appsv1.ReplicaSet
	budgets    []*policyv1.PodDisruptionBudget
	// objects are the others. A real server would have the labels of namespaces, and delete pods without a node.
	objects []runtime.Object
}

func newReported() *reported {
	r := &reported{version: checktest.At("4.18.3", "4.17.9")}
	for _, version := range []string{"4.18.9", "4.19.0"} {
		r.version.Status.AvailableUpdates = append(r.version.Status.AvailableUpdates,
			configv1.Release{Version: version, Image: checktest.PullSpec(version)})
	}
	for _, role := range []string{"master", "worker"} {
		rendered := "rendered-" + role + "-1"
		r.add(&machineconfigurationv1.MachineConfig{
			ObjectMeta: metav1.ObjectMeta{Name: rendered},
			Spec:       machineconfigurationv1.MachineConfigSpec{Config: runtime.RawExtension{Raw: []byte(`{"ignition":{"version":"3.4.0"}}`)}},
		})
		r.pool(role, rendered)
		for i := range 3 {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", role, i), Labels: map[string]string{
					"node-role.kubernetes.io/" + role: "",
					corev1.LabelHostname:              fmt.Sprintf("%s-%d", role, i),
				},
				Annotations: map[string]string{
					configOf("current"): rendered, configOf("desired"): rendered,
					"machineconfiguration.openshift.io/state": "Done",
				},
			}}
			node.Status.NodeInfo.KubeletVersion = "v1.31.8"
			node.Status.Allocatable = corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("8"),
				corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("250"),
			}
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			r.nodes = append(r.nodes, node)
		}
	}
	return r
}

func configOf(which string) string { return "machineconfiguration.openshift.io/" + which + "Config" }

func (r *reported) add(objects ...runtime.Object) { r.objects = append(r.objects, objects...) }

func (r *reported) pool(role, rendered string) {
	pool := &machineconfigurationv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: role}}
	pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + role: ""}}
	pool.Spec.Configuration.Name, pool.Status.Configuration.Name = rendered, rendered
	pool.Status.MachineCount, pool.Status.ReadyMachineCount, pool.Status.UpdatedMachineCount = 3, 3, 3
	r.add(pool)
}

// run adds pods on the workers, of a controller.
func (r *reported) run(namespace string, owner metav1.OwnerReference, spec corev1.PodSpec) {
	owner.Controller, owner.UID = new(true), "1"
	for i := range 3 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("%s-%d", owner.Name, i), Labels: map[string]string{"app": owner.Name},
			OwnerReferences: []metav1.OwnerReference{owner},
		}, Spec: spec}
		pod.Spec.NodeName = fmt.Sprintf("worker-%d", i)
		pod.Status = corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}
		r.pods = append(r.pods, pod)
	}
}

// protect adds a budget that allows the eviction of one pod.
func (r *reported) protect(namespace, name string) {
	r.budgets = append(r.budgets, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 1, ExpectedPods: 3, CurrentHealthy: 3, DesiredHealthy: 2, DisruptionsAllowed: 1,
			Conditions: []metav1.Condition{{
				Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionTrue,
				Reason: policyv1.SufficientPodsReason, ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
			}},
		},
	})
}

// serve adds a Service with a ready endpoint.
func (r *reported) serve(namespace, name string) {
	r.add(
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
		},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(8443))}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, NodeName: new("worker-1")}},
		})
}

func container() corev1.PodSpec {
	return corev1.PodSpec{
		Containers:                    []corev1.Container{{Name: "c", Image: "registry.example.com/app@sha256:" + strings.Repeat("0", 64)}},
		TerminationGracePeriodSeconds: new(int64(30)), SecurityContext: &corev1.PodSecurityContext{},
	}
}

// TestReported has states of public reports, each with what an administrator has to know before the update.
func TestReported(t *testing.T) {
	const patch, minor = "4.18.9", "4.19.0"
	for name, tc := range map[string]struct {
		reason string
		change func(t *testing.T, r *reported)
		// to is the target; finding is part of the outcome, the name and the message of a finding; empty if the
		// state adds none but warnings.
		to      string
		outcome preflight.Outcome
		finding string
	}{
		"PodSecurity": {
			reason: "the label was set after the pods began; a deleted one is not created again (gatekeeper#2633)", to: patch,
			outcome: preflight.Warn, finding: "shop/cart-0",
			change: func(_ *testing.T, r *reported) {
				r.namespaces = append(r.namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
					Name:   "shop",
					Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
				}})
				r.sets = append(r.sets, &appsv1.ReplicaSet{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "1"},
					Spec: appsv1.ReplicaSetSpec{
						Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cart"}},
						Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "cart"}}, Spec: container()},
					},
				})
				r.run("shop", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "cart"}, container())
			},
		},
		"MissingConfig": {
			reason: "a node is to get a MachineConfig that does not exist (machine-config-operator#2010)", to: patch, outcome: preflight.Fail,
			finding: "rendered-worker-9",
			change:  func(_ *testing.T, r *reported) { r.nodes[4].Annotations[configOf("desired")] = "rendered-worker-9" },
		},
		"TwoCustomPools": {
			reason: "no pool updates a node that two custom ones select (machine-config-operator#429, #575)", to: patch, outcome: preflight.Warn,
			finding: "worker-2",
			change: func(_ *testing.T, r *reported) {
				for _, role := range []string{"infra", "storage"} {
					r.nodes[5].Labels["node-role.kubernetes.io/"+role] = ""
					r.pool(role, "rendered-worker-1")
				}
			},
		},
		"NotRetrieved": {
			reason: "CVO could not retrieve the offered release, which it names by its image (okd#2347, #2247)", to: patch, outcome: preflight.Warn,
			finding: checktest.PullSpec(patch),
			change: func(_ *testing.T, r *reported) {
				checktest.With(r.version, "ReleaseAccepted", configv1.ConditionFalse, "RetrievePayload",
					`Retrieving payload failed version="" image="`+checktest.PullSpec(patch)+`" failure: timeout`)
			},
		},
		"NetworkMigration": {
			reason: "the network is being migrated (okd#2190)", to: patch, outcome: preflight.Warn, finding: "NetworkMigration",
			change: func(_ *testing.T, r *reported) {
				r.add(&configv1.Network{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: configv1.NetworkStatus{
					NetworkType: "OpenShiftSDN", Migration: &configv1.NetworkMigration{NetworkType: "OVNKubernetes"},
					Conditions: []metav1.Condition{{
						Type: "NetworkTypeMigrationInProgress", Status: metav1.ConditionTrue, Reason: "MigrationInProgress",
						LastTransitionTime: metav1.Now(),
					}},
				}})
			},
		},
		"CgroupV1": {
			reason: "a MachineConfig has the nodes use cgroup v1, which the target lacks (okd#710, #2148)", to: minor, outcome: preflight.Fail,
			finding: "CgroupMode",
			change: func(t *testing.T, r *reported) {
				t.Helper()
				for _, object := range r.objects {
					if config, ok := object.(*machineconfigurationv1.MachineConfig); ok && config.Name == "rendered-worker-1" {
						config.Spec.KernelArguments = []string{"systemd.unified_cgroup_hierarchy=0"}
					}
				}
			},
		},
		"Gatekeeper": {
			reason: "the webhook of Gatekeeper's chart receives all requests: one warning of its name", to: patch, outcome: preflight.Warn,
			finding: "DrainWebhook-",
			change: func(_ *testing.T, r *reported) {
				r.run("shop", metav1.OwnerReference{APIVersion: "core.strimzi.io/v1beta2", Kind: "StrimziPodSet", Name: "kafka"}, container())
				r.protect("shop", "kafka")
				r.serve("shop", "gatekeeper")
				r.add(&admissionregistrationv1.ValidatingWebhookConfiguration{
					ObjectMeta: metav1.ObjectMeta{Name: "gatekeeper-validating-webhook-configuration"},
					Webhooks: []admissionregistrationv1.ValidatingWebhook{{
						Name: "validation.gatekeeper.sh", FailurePolicy: new(admissionregistrationv1.Ignore), TimeoutSeconds: new(int32(3)),
						SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
						ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
							Namespace: "shop",
							Name:      "gatekeeper",
						}},
						Rules: []admissionregistrationv1.RuleWithOperations{{
							Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
							Rule: admissionregistrationv1.Rule{
								APIGroups: []string{"*"}, APIVersions: []string{"*"},
								Resources: []string{"*", "pods/eviction"},
							},
						}},
						NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
							Key:      "admission.gatekeeper.sh/ignore",
							Operator: metav1.LabelSelectorOpDoesNotExist,
						}}},
					}},
				})
			},
		},
		"Strimzi": {
			reason: "three healthy pods of an operator whose budget allows an eviction (operate-first#453)", to: patch,
			change: func(_ *testing.T, r *reported) {
				r.run("kafka", metav1.OwnerReference{APIVersion: "core.strimzi.io/v1beta2", Kind: "StrimziPodSet", Name: "kafka"}, container())
				r.protect("kafka", "kafka")
			},
		},
		"CloudNativePG": {
			reason: "three ready instances", to: patch,
			change: func(_ *testing.T, r *reported) {
				r.run("db", metav1.OwnerReference{APIVersion: "postgresql.cnpg.io/v1", Kind: "Cluster", Name: "pg"}, container())
				r.protect("db", "pg")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := found(t, newReported(), tc.to)
			state := newReported()
			tc.change(t, state)
			after := found(t, state, tc.to)
			added := slices.DeleteFunc(after, func(line string) bool { return slices.Contains(before, line) })
			blocks := func(line string) bool {
				return strings.HasPrefix(line, string(preflight.Fail)) || strings.HasPrefix(line, string(preflight.Unknown))
			}
			if tc.outcome != preflight.Fail && slices.ContainsFunc(added, blocks) {
				t.Errorf("%s: it keeps the cluster from the update:\n%s", tc.reason, strings.Join(added, "\n"))
			}
			states := func(line string) bool {
				return strings.HasPrefix(line, string(tc.outcome)) && strings.Contains(line, tc.finding)
			}
			if tc.finding != "" && !slices.ContainsFunc(added, states) {
				t.Errorf("%s: no %s names %q:\n%s", tc.reason, tc.outcome, tc.finding, strings.Join(added, "\n"))
			}
		})
	}
}

// found are the findings about a cluster, one in a line.
func found(t *testing.T, r *reported, to string) []string {
	t.Helper()
	var lines []string
	t.Run(to, func(t *testing.T) { // at whose end the objects are deleted
		server.Create(t, append(r.objects, r.version, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode))...)
		view := server.Responding(map[string]checktest.Response{
			"/api/v1/nodes": checktest.Pages(t, "v1", "NodeList", r.nodes), "/api/v1/pods": checktest.Pages(t, "v1", "PodList", r.pods),
			"/api/v1/namespaces":                   checktest.Pages(t, "v1", "NamespaceList", r.namespaces),
			"/apis/apps/v1/replicasets":            checktest.Pages(t, "apps/v1", "ReplicaSetList", r.sets),
			"/apis/policy/v1/poddisruptionbudgets": checktest.Pages(t, "policy/v1", "PodDisruptionBudgetList", r.budgets),
		}).Snapshot(t)
		subject := check.Subject{Update: checktest.Update(t, "4.18.3", to), Now: time.Now().Add(time.Hour)}
		for _, f := range checktest.Collect(t, builtin.Checks(scene.Judgement{}), view, subject) {
			if f.Outcome != preflight.Pass && f.Outcome != preflight.Skipped {
				lines = append(lines, fmt.Sprintf("%s %s (%s): %s", f.Outcome, f.Name, f.Reason, f.Message))
			}
		}
	})
	return lines
}
