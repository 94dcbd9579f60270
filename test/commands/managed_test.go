package commands_test

import (
	"context"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/prometheus"
)

// upgradeConfig returns the UpgradeConfig of the managed-upgrade-operator for a time.
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

// newPatchEnvironment returns a cluster with an available update to 4.18.16.
func newPatchEnvironment(t *testing.T, on *plane, rules ...prometheus.Rule) *environment {
	t.Helper()
	e := newEnvironment(t, on, rules...)
	e.state.Available = map[string]string{"4.18.16": examplePullSpec("1")}
	e.apply()
	return e
}

// The document has upgradeAt at 12:00, and checks at 11:50, at 12:15 and at 12:32. The test
// sets upgradeAt relative to the present time instead.
func TestTheUpgradeWindow(t *testing.T) {
	e := newPatchEnvironment(t, &byDefault)
	e.create(upgradeConfig(time.Now()))
	for _, tc := range []struct {
		clock   string
		since   time.Duration
		outcome preflight.Outcome
		reason  string
		message string
	}{
		{"11:50, not yet 12:00", -10 * time.Minute, preflight.Warn, "BeforeWindow", "opens in"},
		{"12:15, within the window", 15 * time.Minute, preflight.Pass, "InWindow", "is open for"},
		{"12:32, 30 minutes have passed", 32 * time.Minute, preflight.Warn, "AfterWindow", "closed"},
	} {
		e.replace(upgradeConfig(time.Now().Add(-tc.since)))
		// The window is information only: it does not affect the verdict.
		e.evaluate(exit.Ready, "4.18.16").expectCauses(causes{}).expectFinding("UpgradeWindow", tc.outcome, tc.reason, tc.message)
		if t.Failed() {
			t.Fatal(tc.clock)
		}
	}
}

// firingAlerts returns rules for alerts that fire, and for one that is pending.
func firingAlerts() []prometheus.Rule {
	alert := func(name, severity, namespace string) prometheus.Rule {
		return prometheus.Rule{
			Alert: name, Expr: "vector(1)", Labels: map[string]string{"severity": severity, "namespace": namespace},
			Annotations: map[string]string{"summary": name + " fires", "runbook_url": "https://runbooks.example.com/" + name},
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
	e := newPatchEnvironment(t, &techPreview, firingAlerts()...)
	e.evaluate(exit.Blocked, "4.18.16").
		expectCauses(causes{blocking: []string{"ClusterOperatorDown", "LogStoreDown"}}).
		expectFinding("ClusterOperatorDown", preflight.Fail, "AlertFiring", "critical alert ClusterOperatorDown firing",
			"ClusterOperatorDown fires", "https://runbooks.example.com/ClusterOperatorDown").
		expectNoFinding("CPUThrottlingHigh").expectNoFinding("NotYet")
	e.evaluate(exit.Blocked, "4.18.16", "--ignore-namespace", "openshift-logging").
		expectCauses(causes{blocking: []string{"ClusterOperatorDown"}}).
		expectFinding("LogStoreDown", preflight.Warn, "Ignored", "openshift-logging")
	e.evaluate(exit.Ready, "4.18.16", "--ignore-namespace", "openshift-logging", "--ignore-alert", "ClusterOperatorDown").
		expectCauses(causes{}).
		expectFinding("ClusterOperatorDown", preflight.Warn, "Ignored", "ClusterOperatorDown")
	e.evaluate(exit.Ready, "4.18.16", "--accept", "ClusterOperatorDown,LogStoreDown").
		expectCauses(causes{accepted: []string{"ClusterOperatorDown", "LogStoreDown"}})
}

// The managed-upgrade-operator checks operators, nodes, disruption budgets and external
// dependencies before it starts an update.
func TestHealthBeforeAnUpdate(t *testing.T) {
	e := newPatchEnvironment(t, &byDefault)
	const stopped = "127.0.0.1:1"
	dns := operator("dns")
	for i := range dns.Status.Conditions {
		if dns.Status.Conditions[i].Type == configv1.OperatorDegraded {
			dns.Status.Conditions[i].Status, dns.Status.Conditions[i].Message = configv1.ConditionTrue, "no upstream responds"
		}
	}
	e.state.Operators = append(e.state.Operators, dns)
	e.apply()
	worker := node("worker-0", "worker", "v1.31.9")
	e.replace(worker + "spec: {unschedulable: true}\n")
	e.create(strings.NewReplacer("worker-0", "worker-1", `MemoryPressure, status: "False"`, `MemoryPressure, status: "True"`).Replace(worker))
	e.create(strings.ReplaceAll(billingPod, "worker-0", "worker-1"), billingBudget) // MCO does not drain a node that is cordoned
	e.replace(strings.ReplaceAll(pool("worker"), "paused: false", "maxUnavailable: 2"))
	await.Until(e.t, "a budget that allows no disruption", func(ctx context.Context) bool { return e.budgetStatus(ctx).CurrentHealthy == 1 })
	host := "ExternalDependency-" + strings.ReplaceAll(stopped, ":", "-")
	blocking := []string{"ClusterOperatorDegraded-dns", host, "NodesCordoned", "NodesMemoryPressure", "PodDisruptionBudget-default.billing"}
	e.evaluate(exit.Blocked, "4.18.16", "--dependency", "http://"+stopped).
		expectCauses(causes{blocking: blocking}).
		expectFinding("ClusterOperatorDegraded-dns", preflight.Fail, "AsExpected", "no upstream responds", "oc describe clusteroperator dns").
		expectFinding("NodesCordoned", preflight.Fail, "Cordoned", "worker-0").
		expectFinding("NodesMemoryPressure", preflight.Fail, "MemoryPressure", "worker-1")
	e.evaluate(exit.Ready, "4.18.16", "--dependency", "http://"+stopped, "--accept",
		strings.Join(blocking, ",")).expectCauses(causes{accepted: blocking})
}

// A budget that allows no eviction of its only pod.
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

// budgetStatus returns the status of the budget.
func (e *environment) budgetStatus(ctx context.Context) policyv1.PodDisruptionBudgetStatus {
	e.t.Helper()
	budget, err := kubernetes.NewForConfigOrDie(e.config).PolicyV1().PodDisruptionBudgets("default").Get(ctx, "billing", metav1.GetOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	return budget.Status
}
