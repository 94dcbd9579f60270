package narrative_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/prometheus"
)

// upgradeConfig is that of the managed-upgrade-operator.
func upgradeConfig(at time.Time) string {
	return strings.ReplaceAll(`
apiVersion: upgrade.managed.openshift.io/v1alpha1
kind: UpgradeConfig
metadata: {name: managed-upgrade-config, namespace: openshift-managed-upgrade-operator}
spec:
  type: OSD
  upgradeAt: "TIME"
  PDBForceDrainTimeout: 120
  desired: {channel: stable-4.18, version: 4.18.16}
`, "TIME", at.UTC().Format(time.RFC3339))
}

// patchable is a cluster that may go to 4.18.16.
func patchable(t *testing.T, stage *stage, rules ...prometheus.Rule) *scene {
	t.Helper()
	s := on(t, stage, rules...)
	s.state.Available = map[string]string{"4.18.16": digested("1")}
	s.apply()
	return s
}

// The document has upgradeAt at 12:00, and asks at 11:50, at 12:15 and at 12:32.
// Now is when this test runs, so upgradeAt is as long before or after it.
func TestTheUpgradeWindow(t *testing.T) {
	t.Parallel()
	s := patchable(t, &byDefault)
	s.hold(upgradeConfig(time.Now()))
	for _, story := range []struct {
		clock   string
		since   time.Duration
		outcome preflight.Outcome
		reason  string
		says    string
	}{
		{"11:50, not yet 12:00", -10 * time.Minute, preflight.Warn, "BeforeWindow", "opens in"},
		{"12:15, within the window", 15 * time.Minute, preflight.Pass, "InWindow", "is open for"},
		{"12:32, 30 minutes have passed", 32 * time.Minute, preflight.Warn, "AfterWindow", "closed"},
	} {
		s.change(upgradeConfig(time.Now().Add(-story.since)))
		// It is information: when to update is not whether it is safe to.
		s.explain(ready, "4.18.16").because(names{}).finds("UpgradeWindow", story.outcome, story.reason, story.says)
		if t.Failed() {
			t.Fatal(story.clock)
		}
	}
}

// firing are alerts as a cluster has them.
func firing() []prometheus.Rule {
	alert := func(name, severity, namespace string) prometheus.Rule {
		return prometheus.Rule{
			Alert: name, Expr: "vector(1)", Labels: map[string]string{"severity": severity, "namespace": namespace},
			Annotations: map[string]string{"summary": name + " says so", "runbook_url": "https://runbooks.example.com/" + name},
		}
	}
	return []prometheus.Rule{
		alert("ClusterOperatorDown", "critical", "openshift-cluster-version"),
		alert("LogStoreDown", "critical", "openshift-logging"),
		alert("CPUThrottlingHigh", "info", "openshift-logging"),
		{Alert: "NotYet", Expr: "vector(1)", For: "1h", Labels: map[string]string{"severity": "critical", "namespace": "openshift-etcd"}},
	}
}

func TestCriticalAlerts(t *testing.T) {
	t.Parallel()
	s := patchable(t, &techPreview, firing()...)
	s.explain(blocked, "4.18.16").
		because(names{blocking: []string{"ClusterOperatorDown", "LogStoreDown"}}).
		finds("ClusterOperatorDown", preflight.Fail, "AlertFiring", "critical alert ClusterOperatorDown firing", "ClusterOperatorDown says so", "https://runbooks.example.com/ClusterOperatorDown").
		lacks("CPUThrottlingHigh").lacks("NotYet")
	s.explain(blocked, "4.18.16", "--ignore-namespace", "openshift-logging").
		because(names{blocking: []string{"ClusterOperatorDown"}}).
		finds("LogStoreDown", preflight.Warn, "Ignored", "openshift-logging")
	s.explain(ready, "4.18.16", "--ignore-namespace", "openshift-logging", "--ignore-alert", "ClusterOperatorDown").
		because(names{}).
		finds("ClusterOperatorDown", preflight.Warn, "Ignored", "ClusterOperatorDown")
	s.explain(ready, "4.18.16", "--accept", "ClusterOperatorDown,LogStoreDown").
		because(names{accepted: []string{"ClusterOperatorDown", "LogStoreDown"}})
}

// What the managed-upgrade-operator looks at before it starts: operators, nodes,
// what cannot be drained, and what the cluster depends on.
func TestHealthBeforeAnUpdate(t *testing.T) {
	t.Parallel()
	s := patchable(t, &byDefault)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	dns := operator("dns")
	for i := range dns.Status.Conditions {
		if dns.Status.Conditions[i].Type == configv1.OperatorDegraded {
			dns.Status.Conditions[i].Status, dns.Status.Conditions[i].Message = configv1.ConditionTrue, "no upstream answers"
		}
	}
	s.state.Operators = append(s.state.Operators, dns)
	s.apply()
	worker := node("worker-0", "worker", "v1.31.9")
	s.change(worker + "spec: {unschedulable: true}\n")
	s.hold(strings.NewReplacer("worker-0", "worker-1", `MemoryPressure, status: "False"`, `MemoryPressure, status: "True"`).Replace(worker))
	s.hold(billingPod, billingBudget)
	s.await("a budget that allows nothing", func() bool { return s.budgetStatus().CurrentHealthy == 1 })
	host := "ExternalDependency-" + strings.ReplaceAll(strings.TrimPrefix(gone.URL, "http://"), ":", "-")
	causes := []string{"ClusterOperatorDegraded-dns", host, "NodesCordoned", "NodesMemoryPressure", "PodDisruptionBudget-default.billing"}
	s.explain(blocked, "4.18.16", "--dependency", gone.URL).
		because(names{blocking: causes}).
		finds("ClusterOperatorDegraded-dns", preflight.Fail, "AsExpected", "no upstream answers", "oc describe clusteroperator dns").
		finds("NodesCordoned", preflight.Fail, "Cordoned", "worker-0").
		finds("NodesMemoryPressure", preflight.Fail, "MemoryPressure", "worker-1")
	s.explain(ready, "4.18.16", "--dependency", gone.URL, "--accept", strings.Join(causes, ",")).because(names{accepted: causes})
}

// A budget that its only pod can never leave.
const (
	billingPod = `
apiVersion: v1
kind: Pod
metadata: {name: billing, namespace: default, labels: {app: billing}}
spec: {nodeName: worker-0, containers: [{name: billing, image: registry.example.com/billing}]}
status:
  phase: Running
  conditions: [{type: Ready, status: "True"}]
`
	billingBudget = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: billing, namespace: default}
spec: {minAvailable: 1, selector: {matchLabels: {app: billing}}}
`
)

func (s *scene) budgetStatus() policyv1.PodDisruptionBudgetStatus {
	s.t.Helper()
	budget, err := kubernetes.NewForConfigOrDie(s.config).PolicyV1().PodDisruptionBudgets("default").Get(s.t.Context(), "billing", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return budget.Status
}

// await asks until it is so.
func (s *scene) await(what string, is func() bool) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}
