package health_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/health/dependency"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/snapshot"
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
				"Certificates": result(preflight.Skipped, "PlainKubernetes"), "CertificateSecrets": result(preflight.Skipped, "PlainKubernetes"),
				"PausedPoolKubeletCA": result(preflight.Skipped, "NotConcerned"),
				"EtcdQuorum":          result(preflight.Skipped, "PlainKubernetes"), "MirrorSets": result(preflight.Skipped, "PlainKubernetes"),
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
				"Certificates": result(preflight.Unknown, "Forbidden"), "CertificateSecrets": result(preflight.Unknown, "Forbidden"),
				"PausedPoolKubeletCA": result(preflight.Skipped, "NotConcerned"),
				"EtcdQuorum":          result(preflight.Unknown, "Forbidden"), "MirrorSets": result(preflight.Unknown, "Forbidden"),
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
			Name: "hook.example.com", FailurePolicy: new(admissionregistrationv1.Fail),
			Rules:             []admissionregistrationv1.RuleWithOperations{ofNodes()},
			NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
				Namespace: "hooks",
				Name:      "hook",
			}},
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
			ParamRef: &admissionregistrationv1.ParamRef{
				Name: "missing", Namespace: "default",
				ParameterNotFoundAction: new(admissionregistrationv1.DenyAction),
			},
		},
	}
}

// TestChecksOnAnUnhealthyCluster checks what all findings have in common.
func TestChecksOnAnUnhealthyCluster(t *testing.T) {
	defineUpgradeConfigs(t)
	server.Create(t, reserving(configv1.HighlyAvailableTopologyMode,
		machineSet("w.orkers-1", func(set *machinev1beta1.MachineSet) { set.Status.AvailableReplicas = 0 }))...)
	server.Create(t, operator("kube-apiserver", "Available=True", "Degraded=True"))
	unhealthy := server.Responding(map[string]checktest.Response{
		nodesPath: checktest.Pages(t, "v1", "NodeList", []*corev1.Node{
			node("a", cordoned, state("Degraded", ""), unset(corev1.NodeReady)),
			node("b", unmanaged, set(corev1.NodeReady, corev1.ConditionFalse, "")),
			node("c", set(corev1.NodeMemoryPressure, corev1.ConditionTrue, ""), unset(corev1.NodePIDPressure)),
		}),
		webhooksPath: checktest.Pages(t, registration, "ValidatingWebhookConfigurationList",
			[]*admissionregistrationv1.ValidatingWebhookConfiguration{webhookWithoutService()}),
		policiesPath: checktest.Pages(t, registration, "ValidatingAdmissionPolicyList",
			[]*admissionregistrationv1.ValidatingAdmissionPolicy{policy()}),
		bindingsPath: checktest.Pages(t, registration, "ValidatingAdmissionPolicyBindingList",
			[]*admissionregistrationv1.ValidatingAdmissionPolicyBinding{bindingWithoutParameter()}),
	})
	dependencies := dependency.New(http.DefaultClient, []string{"http://127.0.0.1:1/a_b/"})
	subject := check.Subject{Update: patch(t), Now: clock(t, "11:50:00")}
	findings := slices.DeleteFunc(checktest.Collect(t, health.Checks(dependencies), unhealthy.Snapshot(t), subject),
		func(f finding.Finding) bool {
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
		nodesPath: counted("nodes", checktest.Pages(t, "v1", "NodeList", nodes)),
		"/apis/policy/v1/poddisruptionbudgets": counted("budgets",
			checktest.Pages(t, "policy/v1", "PodDisruptionBudgetList", []*policyv1.PodDisruptionBudget{})),
		"/api/v1/pods": counted("pods", checktest.Pages(t, "v1", "PodList", []*corev1.Pod{})),
		machineSetsPath: counted("machinesets",
			checktest.Pages(t, "machine.openshift.io/v1beta1", "MachineSetList", []*machinev1beta1.MachineSet{machineSet("a")})),
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

const operatorsPath = "/apis/config.openshift.io/v1/clusteroperators"

// operator has conditions like "Available=True Reason message".
func operator(name string, conditions ...string) *configv1.ClusterOperator {
	operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, condition := range conditions {
		kind, rest, _ := strings.Cut(condition, "=")
		status, rest, _ := strings.Cut(rest, " ")
		reason, message, _ := strings.Cut(rest, " ")
		operator.Status.Conditions = append(operator.Status.Conditions, configv1.ClusterOperatorStatusCondition{
			Type: configv1.ClusterStatusConditionType(kind), Status: configv1.ConditionStatus(status),
			Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
		})
	}
	return operator
}

func TestClusterOperators(t *testing.T) {
	fine := operator("dns", "Available=True AsExpected", "Degraded=False AsExpected", "Progressing=True", "Upgradeable=False NotYet")
	selfManaged := checktest.Infrastructure(configv1.HighlyAvailableTopologyMode)
	for name, tc := range map[string]struct {
		reason  string
		objects []runtime.Object
		message string // a part of it
		want    results
	}{
		"Fine": {
			reason:  "Upgradeable is a gate, and Progressing is not unhealthy",
			objects: []runtime.Object{fine, operator("etcd", "Available=True", "Degraded=False")},
			message: "all 2 ClusterOperators",
			want:    results{"ClusterOperatorHealth": result(preflight.Pass, "AsExpected")},
		},
		"Degraded": {
			reason:  "the reason and the message are the operator's",
			objects: []runtime.Object{fine, operator("etcd", "Available=True", "Degraded=True EtcdMembers_Bad 1 of 3 members is bad")},
			message: `ClusterOperator "etcd" is Degraded=True: 1 of 3 members is bad`,
			want:    results{"ClusterOperatorDegraded-etcd": result(preflight.Fail, "EtcdMembers_Bad")},
		},
		"Unavailable": {
			reason:  "the worse condition names the finding, and the message has both",
			objects: []runtime.Object{operator("etcd", "Available=False NoQuorum no quorum", "Degraded=True Bad 2 members are bad")},
			message: `is Available=False: no quorum. It is Degraded=True: 2 members are bad`,
			want:    results{"ClusterOperatorUnavailable-etcd": result(preflight.Fail, "NoQuorum")},
		},
		"Each": {
			reason:  "each operator has its own finding",
			objects: []runtime.Object{operator("a", "Available=False", "Degraded=False"), operator("b", "Available=True", "Degraded=True")},
			message: "no message",
			want: results{
				"ClusterOperatorUnavailable-a": result(preflight.Fail, "Unavailable"), "ClusterOperatorDegraded-b": result(preflight.Fail, "Degraded"),
			},
		},
		"Own": {
			reason:  "the preflight's own operator is no part of the cluster's health",
			objects: []runtime.Object{fine, operator("update-preflight")},
			message: "all 1 ClusterOperators",
			want:    results{"ClusterOperatorHealth": result(preflight.Pass, "AsExpected")},
		},
		"NoConditions": {
			reason:  "an operator without conditions, which MUO treats as healthy",
			objects: []runtime.Object{fine, operator("etcd")},
			want:    results{"ClusterOperatorUnavailable-etcd": result(preflight.Unknown, "NoConditions")},
		},
		"AvailableUnknown": {
			reason:  "an inconclusive condition is not a pass",
			objects: []runtime.Object{operator("etcd", "Available=Unknown Lost no answer", "Degraded=False")},
			message: "Available=Unknown: no answer",
			want:    results{"ClusterOperatorUnavailable-etcd": result(preflight.Unknown, "Lost")},
		},
		"DegradedUnknown": {
			reason:  "an inconclusive condition is not a pass",
			objects: []runtime.Object{operator("etcd", "Available=True", "Degraded=Unknown")},
			want:    results{"ClusterOperatorDegraded-etcd": result(preflight.Unknown, "NotReported")},
		},
		"DegradedForCertain": {
			reason:  "a failure counts more than an inconclusive condition",
			objects: []runtime.Object{operator("etcd", "Degraded=True Bad")},
			message: "without the condition Available",
			want:    results{"ClusterOperatorDegraded-etcd": result(preflight.Fail, "Bad")},
		},
		"AvailableMissing": {
			reason:  "an absent condition is inconclusive",
			objects: []runtime.Object{operator("etcd", "Degraded=False")},
			want:    results{"ClusterOperatorUnavailable-etcd": result(preflight.Unknown, "NotReported")},
		},
		"DegradedMissing": {
			reason:  "an absent condition is inconclusive",
			objects: []runtime.Object{operator("etcd", "Available=True")},
			want:    results{"ClusterOperatorDegraded-etcd": result(preflight.Unknown, "NotReported")},
		},
		"HyperShift": {
			reason: "a hosted cluster has operators too",
			objects: []runtime.Object{
				checktest.Infrastructure(configv1.ExternalTopologyMode),
				operator("dns", "Available=True", "Degraded=True Bad"),
			},
			want: results{"ClusterOperatorDegraded-dns": result(preflight.Fail, "Bad")},
		},
		"None": {
			reason:  "every OpenShift cluster has operators",
			objects: []runtime.Object{selfManaged},
			want:    results{"ClusterOperatorHealth": result(preflight.Unknown, "APIMissing")},
		},
		"PlainKubernetes": {
			reason: "plain Kubernetes has no operators",
			want:   results{"ClusterOperatorHealth": result(preflight.Skipped, "PlainKubernetes")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			findings := checktest.Run(t, health.ClusterOperators(), server.Snapshot(t), patch(t))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.message) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, findings[0].Message, tc.message)
			}
		})
	}
}

func TestClusterOperatorsUnread(t *testing.T) {
	server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode))
	for name, tc := range map[string]struct {
		reason string
		server checktest.Server
		want   checktest.Result
	}{
		"Forbidden": {"without permission the check is inconclusive", server.Unprivileged(), result(preflight.Unknown, "Forbidden")},
		"Missing": {
			"every OpenShift cluster has the API",
			server.Responding(map[string]checktest.Response{operatorsPath: checktest.NotServed}), result(preflight.Unknown, "APIMissing"),
		},
		"MissingAndForbidden": {
			"without permission to read the topology the check is inconclusive",
			server.Unprivileged().Responding(map[string]checktest.Response{operatorsPath: checktest.NotServed}),
			result(preflight.Unknown, "Forbidden"),
		},
		"Malformed": {
			"an object that cannot be decoded is inconclusive",
			server.Responding(map[string]checktest.Response{operatorsPath: checktest.Body(`{"items": 7}`)}), result(preflight.Unknown, "Error"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := checktest.Results(checktest.Run(t, health.ClusterOperators(), tc.server.Snapshot(t), patch(t)))
			if diff := cmp.Diff(results{"ClusterOperatorHealth": tc.want}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestClusterOperatorsWithMany(t *testing.T) {
	long := strings.Repeat("words\n", 10_000)
	var operators []*configv1.ClusterOperator
	for i := range 1000 {
		operators = append(operators, operator(fmt.Sprintf("u%03d", i), "Available=Unknown"))
	}
	operators = append(operators, operator("z", "Available=True", "Degraded=True Bad "+long))
	many := server.Responding(map[string]checktest.Response{
		operatorsPath: checktest.Pages(t, "config.openshift.io/v1", "ClusterOperatorList", operators),
	})
	findings := checktest.Run(t, health.ClusterOperators(), many.Snapshot(t), patch(t))
	if len(findings) != 51 || findings[0].Name != "ClusterOperatorDegraded-z" {
		t.Fatalf("got %d findings, the first %s; want the worst first, and at most 51", len(findings), findings[0].Name)
	}
	if message := findings[0].Message; len(message) > 2000 || strings.Contains(message, "\n") {
		t.Errorf("a message of %d bytes is not cut to one line", len(message))
	}
	rest := findings[50]
	if rest.Name != "ClusterOperatorHealth" || rest.Outcome != preflight.Unknown || !strings.Contains(rest.Message, "951 Unknown") {
		t.Errorf("the others are not counted: %s %s %q", rest.Name, rest.Outcome, rest.Message)
	}
}

// controlPlane has the role of the control plane, by one of its labels.
func controlPlane(label string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Labels = map[string]string{"node-role.kubernetes.io/" + label: ""} }
}

func TestEtcdQuorum(t *testing.T) {
	master, newer := controlPlane("master"), controlPlane("control-plane")
	fine, fails := result(preflight.Pass, "AsExpected"), result(preflight.Fail, "TwoControlPlaneNodes")
	for name, tc := range map[string]struct {
		reason   string
		topology configv1.TopologyMode
		nodes    []*corev1.Node
		to       string
		want     checktest.Result
	}{
		"Two": {
			reason: "report 107: each reboot ends the quorum", nodes: []*corev1.Node{node("a", master), node("b", master), node("c")},
			want: fails,
		},
		"TwoNewer": {
			reason: "installers of 4.25 may leave the label master out", nodes: []*corev1.Node{node("a", newer), node("b", newer)},
			want: fails,
		},
		"Patch": {
			reason: "a patch update reboots nodes, too", to: "4.18.9", nodes: []*corev1.Node{node("a", master), node("b", newer)},
			want: fails,
		},
		"Three": {
			reason: "one of three members may be down", nodes: []*corev1.Node{node("a", master), node("b", master), node("c", master)},
			want: fine,
		},
		"Five": {
			reason: "two of five may be",
			nodes:  []*corev1.Node{node("a", master), node("b", master), node("c", master), node("d", newer), node("e", newer)}, want: fine,
		},
		"One": {
			reason: "a single node returns with its member", topology: configv1.SingleReplicaTopologyMode,
			nodes: []*corev1.Node{node("a", master)}, want: fine,
		},
		"Arbiter": {
			reason: "the arbiter is the third member", topology: configv1.HighlyAvailableArbiterMode,
			nodes: []*corev1.Node{node("a", master), node("b", master), node("c", controlPlane("arbiter"))}, want: fine,
		},
		"Fencing": {
			reason: "Pacemaker keeps two nodes with fencing", topology: configv1.DualReplicaTopologyMode,
			nodes: []*corev1.Node{node("a", master), node("b", master)}, want: fine,
		},
		"TwoOfBoth": {reason: "two workers are none", nodes: []*corev1.Node{
			node("a", master), node("b", master), node("c", master),
			node("d", controlPlane("worker")), node("e", controlPlane("worker")),
		}, want: fine},
		"Hosted": {
			reason: "its etcd runs elsewhere", topology: configv1.ExternalTopologyMode,
			nodes: []*corev1.Node{node("a", master), node("b", master)}, want: fine,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.topology == "" {
				tc.topology = configv1.HighlyAvailableTopologyMode
			}
			with := server.Responding(map[string]checktest.Response{
				nodesPath: checktest.Pages(t, "v1", "NodeList", tc.nodes),
				"/apis/config.openshift.io/v1/infrastructures/cluster": checktest.Body(text(t, checktest.Infrastructure(tc.topology))),
			})
			findings := checktest.Run(t, health.EtcdQuorum(), with.Snapshot(t), checktest.MinorUpdate(t, "", tc.to))
			if diff := cmp.Diff(results{"EtcdQuorum": tc.want}, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// An archive that lacks a node of a pool does not show that the control plane has two.
func TestEtcdQuorumNotInArchive(t *testing.T) {
	dir := t.TempDir()
	write := func(path string, object any) {
		path = filepath.Join(dir, "cluster-scoped-resources", path+".yaml")
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(text(t, object)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	of := func(apiVersion, kind string, object any) map[string]any {
		fields := map[string]any{}
		if err := json.Unmarshal([]byte(text(t, object)), &fields); err != nil {
			t.Fatal(err)
		}
		fields["apiVersion"], fields["kind"] = apiVersion, kind
		return fields
	}
	list := func(kind string, object any) map[string]any {
		return map[string]any{
			"apiVersion": "config.openshift.io/v1", "kind": kind + "List", "metadata": map[string]any{},
			"items": []any{of("config.openshift.io/v1", kind, object)},
		}
	}
	write("config.openshift.io/infrastructures", list("Infrastructure", checktest.Infrastructure(configv1.HighlyAvailableTopologyMode)))
	write("config.openshift.io/clusterversions", list("ClusterVersion", checktest.At("4.18.3")))
	for _, name := range []string{"a", "b"} {
		write("core/nodes/"+name, of("v1", "Node", node(name, controlPlane("master"))))
	}
	pool := map[string]any{
		"metadata": map[string]any{"name": "master"},
		"spec":     map[string]any{"nodeSelector": map[string]any{"matchLabels": map[string]any{"node-role.kubernetes.io/master": ""}}},
		"status":   map[string]any{"machineCount": 3},
	}
	write("machineconfiguration.openshift.io/machineconfigpools/master", of("machineconfiguration.openshift.io/v1", "MachineConfigPool", pool))
	opened, err := archive.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	api, err := cluster.Connect(opened.Config(), "test")
	if err != nil {
		t.Fatal(err)
	}
	subject := check.Subject{Cluster: snapshot.Of(api), Update: patch(t)}
	findings := collector.Collect(t.Context(), collector.Bind(subject, []check.Check{health.EtcdQuorum()}),
		func(collector.Source, []finding.Finding) {}).Findings
	if diff := cmp.Diff(results{"EtcdQuorum": result(preflight.Unknown, "NotInArchive")}, checktest.Results(findings)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
