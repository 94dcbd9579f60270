package health_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/health/dependency"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func TestChecks(t *testing.T) {
	defineUpgradeConfigs(t)
	for name, tc := range map[string]struct {
		reason string
		server checktest.Server
		want   results
	}{
		"PlainKubernetes": {
			reason: "without OpenShift and without nodes most checks do not apply", server: server,
			want: results{
				"ClusterOperatorHealth": result(preflight.Skipped, "PlainKubernetes"), "NodeHealth": result(preflight.Skipped, "NoNodes"),
				"Drain": result(preflight.Pass, "AsExpected"), "CapacityReservation": result(preflight.Skipped, "NoUpgradeConfig"),
				"ExternalDependency": result(preflight.Skipped, "NoneGiven"), "UpgradeWindow": result(preflight.Skipped, "NoUpgradeConfig"),
				"Webhooks": result(preflight.Pass, "AsExpected"), "AdmissionPolicies": result(preflight.Pass, "AsExpected"),
				"Migrations": result(preflight.Skipped, "PlainKubernetes"), "Subscriptions": result(preflight.Skipped, "NoOLM"),
				"Certificates": result(preflight.Skipped, "PlainKubernetes"), "CertificateSecrets": result(preflight.Skipped, "PlainKubernetes"), "PausedPoolKubeletCA": result(preflight.Skipped, "NotConcerned"),
				"EtcdQuorum": result(preflight.Skipped, "PlainKubernetes"), "MirrorSets": result(preflight.Skipped, "PlainKubernetes"),
				"PlatformConditions": result(preflight.Skipped, "PlainKubernetes"), "PlatformPods": result(preflight.Skipped, "PlainKubernetes"),
				"RollingUpdates": result(preflight.Pass, "AsExpected"),
			},
		},
		"Forbidden": {
			reason: "without permission no check passes", server: server.Unprivileged(),
			want: results{
				"ClusterOperatorHealth": result(preflight.Unknown, "Forbidden"), "NodeHealth": result(preflight.Unknown, "Forbidden"),
				"Drain": result(preflight.Unknown, "Forbidden"), "CapacityReservation": result(preflight.Unknown, "Forbidden"),
				"ExternalDependency": result(preflight.Skipped, "NoneGiven"), "UpgradeWindow": result(preflight.Warn, "Forbidden"),
				"Webhooks": result(preflight.Unknown, "Forbidden"), "AdmissionPolicies": result(preflight.Unknown, "Forbidden"),
				"Migrations": result(preflight.Unknown, "Forbidden"), "Subscriptions": result(preflight.Warn, "Unread"),
				"Certificates": result(preflight.Unknown, "Forbidden"), "CertificateSecrets": result(preflight.Unknown, "Forbidden"), "PausedPoolKubeletCA": result(preflight.Skipped, "NotConcerned"),
				"EtcdQuorum": result(preflight.Unknown, "Forbidden"), "MirrorSets": result(preflight.Unknown, "Forbidden"),
				"PlatformConditions": result(preflight.Unknown, "Forbidden"), "PlatformPods": result(preflight.Unknown, "Forbidden"),
				"RollingUpdates": result(preflight.Warn, "Unread"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := checktest.Collect(t, health.Checks(nil), tc.server.Snapshot(t), check.Subject{Update: patch(t), Now: time.Now()})
			if diff := cmp.Diff(tc.want, checktest.Results(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

const (
	registration = "admissionregistration.k8s.io/v1"
	webhooksPath = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	policiesPath = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
	bindingsPath = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
)

// ofNodes matches updates of nodes.
func ofNodes() admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
	}
}

// webhookWithoutService has to respond to updates of nodes, and its Service is missing.
func webhookWithoutService() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "hook.example.com", FailurePolicy: new(admissionregistrationv1.Fail), Rules: []admissionregistrationv1.RuleWithOperations{ofNodes()},
			NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "hooks", Name: "hook"}},
		}},
	}
}

// policy rejects updates of nodes.
func policy() *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "policy"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			ParamKind: &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: ofNodes()}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "request.name == 'other'"}},
		},
	}
}

// bindingWithoutParameter binds the policy with a parameter that does not exist.
func bindingWithoutParameter() *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "binding"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "policy", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			ParamRef: &admissionregistrationv1.ParamRef{Name: "missing", Namespace: "default", ParameterNotFoundAction: new(admissionregistrationv1.DenyAction)},
		},
	}
}

// TestChecksOnAnUnhealthyCluster checks what all findings have in common.
func TestChecksOnAnUnhealthyCluster(t *testing.T) {
	defineUpgradeConfigs(t)
	server.Create(t, reserving(configv1.HighlyAvailableTopologyMode, machineSet("w.orkers-1", func(set *machinev1beta1.MachineSet) { set.Status.AvailableReplicas = 0 }))...)
	server.Create(t, operator("kube-apiserver", "Available=True", "Degraded=True"))
	unhealthy := server.Responding(map[string]checktest.Response{
		nodesPath: checktest.Pages(t, "v1", "NodeList", []*corev1.Node{
			node("a", cordoned, state("Degraded", ""), unset(corev1.NodeReady)), node("b", unmanaged, set(corev1.NodeReady, corev1.ConditionFalse, "")),
			node("c", set(corev1.NodeMemoryPressure, corev1.ConditionTrue, ""), unset(corev1.NodePIDPressure)),
		}),
		webhooksPath: checktest.Pages(t, registration, "ValidatingWebhookConfigurationList", []*admissionregistrationv1.ValidatingWebhookConfiguration{webhookWithoutService()}),
		policiesPath: checktest.Pages(t, registration, "ValidatingAdmissionPolicyList", []*admissionregistrationv1.ValidatingAdmissionPolicy{policy()}),
		bindingsPath: checktest.Pages(t, registration, "ValidatingAdmissionPolicyBindingList", []*admissionregistrationv1.ValidatingAdmissionPolicyBinding{bindingWithoutParameter()}),
	})
	dependencies := dependency.New(http.DefaultClient, []string{"http://127.0.0.1:1/a_b/"})
	subject := check.Subject{Update: patch(t), Now: clock(t, "11:50:00")}
	findings := slices.DeleteFunc(checktest.Collect(t, health.Checks(dependencies), unhealthy.Snapshot(t), subject), func(f finding.Finding) bool {
		return f.Outcome == preflight.Skipped || f.Outcome == preflight.Pass
	})
	if len(findings) != 14 {
		t.Errorf("got %d findings, want 14: %v", len(findings), checktest.Results(findings))
	}
	for _, f := range findings {
		if !regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`).MatchString(f.Name) {
			t.Errorf("%q cannot be accepted by name", f.Name)
		}
		if f.Source != finding.SourceHealth {
			t.Errorf("%s has the source %q, so it cannot be accepted", f.Name, f.Source)
		}
		if f.Message == "" || f.Remediation == "" || f.Reason == "" {
			t.Errorf("%s lacks a message, a reason or a remedy: %+v", f.Name, f)
		}
		if blocks := f.Outcome != preflight.Warn; f.Blocks != blocks || blocks && !cmp.Equal(f.BlockedTargets, []string{"4.18.4"}) {
			t.Errorf("%s (%s) blocks %t %v", f.Name, f.Outcome, f.Blocks, f.BlockedTargets)
		}
	}
}

// TestChecksReadOnce runs the checks for 500 updates with one snapshot.
func TestChecksReadOnce(t *testing.T) {
	defineUpgradeConfigs(t)
	server.Create(t, reserving(configv1.HighlyAvailableTopologyMode, machineSet("a"))...)
	server.Create(t, operator("dns", "Available=True", "Degraded=False"))
	var nodes []*corev1.Node
	for i := range 500 {
		nodes = append(nodes, node(fmt.Sprintf("n%03d", i), cordoned))
	}
	var mutex sync.Mutex
	requests := map[string]int{}
	counted := func(path string, respond checktest.Response) checktest.Response {
		return func(request *http.Request) (int, []byte) {
			mutex.Lock()
			defer mutex.Unlock()
			requests[path]++
			return respond(request)
		}
	}
	view := server.Responding(map[string]checktest.Response{
		nodesPath:                              counted("nodes", checktest.Pages(t, "v1", "NodeList", nodes)),
		"/apis/policy/v1/poddisruptionbudgets": counted("budgets", checktest.Pages(t, "policy/v1", "PodDisruptionBudgetList", []*policyv1.PodDisruptionBudget{})),
		"/api/v1/pods":                         counted("pods", checktest.Pages(t, "v1", "PodList", []*corev1.Pod{})),
		machineSetsPath:                        counted("machinesets", checktest.Pages(t, "machine.openshift.io/v1beta1", "MachineSetList", []*machinev1beta1.MachineSet{machineSet("a")})),
		operatorsPath: counted("operators", checktest.Pages(t, "config.openshift.io/v1", "ClusterOperatorList",
			[]*configv1.ClusterOperator{operator("dns", "Available=True", "Degraded=False")})),
	}).Snapshot(t)
	var updates sync.WaitGroup
	for i := range 500 {
		subject := check.Subject{Update: checktest.Update(t, "4.18.3", fmt.Sprintf("4.18.%d", i+4)), Now: time.Now()}
		updates.Go(func() {
			checks := health.Checks(nil)
			if findings := checktest.Collect(t, checks, view, subject); len(findings) != len(checks) {
				t.Errorf("got %d findings, want one of each of %d checks", len(findings), len(checks))
			}
		})
	}
	updates.Wait()
	// What the platform reports of itself is read in another shape.
	want := map[string]int{"nodes": 1, "budgets": 1, "pods": 1, "machinesets": 2, "operators": 2}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("each resource is read once for all updates (-want +got):\n%s", diff)
	}
}
