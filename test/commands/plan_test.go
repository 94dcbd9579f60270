package commands_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/golden"
)

// planGraph is an update graph whose second update has a risk that applies, one that does
// not, and one that cannot be evaluated.
const planGraph = `{"nodes":[
 {"version":"4.16.27","payload":"r@sha256:1111111111111111111111111111111111111111111111111111111111111111"},
 {"version":"4.17.33","payload":"r@sha256:2222222222222222222222222222222222222222222222222222222222222222"},
 {"version":"4.18.17","payload":"r@sha256:3333333333333333333333333333333333333333333333333333333333333333"}],
 "edges":[[0,1]],
 "conditionalEdges":[{"edges":[{"from":"4.17.33","to":"4.18.17"}],"risks":[
  {"name":"Applying","message":"Something fails.","url":"https://example.com/a","matchingRules":[{"type":"PromQL","promql":{"promql":"vector(1)"}}]},
  {"name":"NotApplying","message":"Something else fails.","url":"https://example.com/b","matchingRules":[{"type":"PromQL","promql":{"promql":"vector(0)"}}]},
  {"name":"WithoutData","message":"A third thing fails.","url":"https://example.com/c","matchingRules":[{"type":"PromQL","promql":{"promql":"absent_metric"}}]}]}]}`

// updateService serves the graph. The function queries returns the requests since its last
// call.
func updateService(t *testing.T) (address string, queries func() []url.Values) {
	t.Helper()
	received := make(chan url.Values, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received <- r.URL.Query()
		_, _ = w.Write([]byte(planGraph))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/graph", func() []url.Values {
		var all []url.Values
		for len(received) > 0 {
			all = append(all, <-received)
		}
		return all
	}
}

// The plan of an update between even minor versions has the risks, acknowledgements and
// pauses of this cluster (eus-upgrades-mvp).
func TestPlan(t *testing.T) {
	e := newEnvironment(t, &byDefault)
	e.monitoring = monitoring.Load(t).URL
	e.state.Version, e.state.Channel = "4.16.27", "eus-4.18"
	e.state.Gates = map[string]string{"ack-4.16-apis": "Read https://docs.example.com/apis first."}
	service, queries := updateService(t)
	e.state.Upstream = service
	e.apply()
	e.replace(node("control-plane-0", "master", "v1.29.9"))
	e.replace(node("worker-0", "worker", "v1.29.9"))
	e.network("OVNKubernetes")

	got := e.call(exit.Blocked, "plan", "--to", "4.18.17", "--prometheus", e.monitoring, "--no-cache")
	// its port varies
	golden.Compare(t, "testdata/plan.text", timeless(strings.ReplaceAll(got.Stdout, e.config.Host, "https://api.example.com:6443")))
	for _, query := range queries() {
		if query.Get("id") == "" || query.Get("channel") != "eus-4.18" || query.Get("version") != "4.16.27" || query.Get("arch") != "amd64" {
			t.Errorf("query to the update service of the cluster: %v, want the query of CVO", query)
		}
	}
	e.call(exit.Blocked, "plan", "--prometheus", e.monitoring, "--accept", "Applying,WithoutData")
	e.state.Acks = map[string]string{"ack-4.16-apis": "true"}
	e.apply()
	e.call(exit.Undecided, "plan", "--prometheus", e.monitoring, "--accept", "Applying")
	e.call(exit.Ready, "plan", "--prometheus", e.monitoring, "--accept", "Applying,WithoutData")
	e.state.Operators = []configv1.ClusterOperator{operator("storage",
		configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "VSphereTooOld"})}
	e.apply()
	if blocked := e.call(exit.Blocked, "plan", "--prometheus", e.monitoring, "--accept",
		"Applying,WithoutData"); !strings.Contains(blocked.Stdout, "FAIL ClusterOperatorUpgradeable-storage") {
		t.Errorf("the gates of the first update are not all evaluated:\n%s", blocked.Stdout)
	}
	e.state.Operators = nil
	e.apply()
	queries()
	e.state.Upstream = "https://127.0.0.1:1/graph"
	e.apply()
	e.call(exit.Blocked, "plan", "--graph", service, "--prometheus", e.monitoring, "--no-cache")
	for _, query := range queries() {
		if query.Has("id") {
			t.Errorf("query to another update service: %v, want no ID of the cluster", query)
		}
	}
	e.comparePlan(service)
	e.planAssessedByCVO(service)
	e.planDurations(service)
	e.planOffline(service, queries)
}

// planOffline plans with a stored graph, without a request. A recent graph is also used
// without --offline.
func (e *environment) planOffline(service string, queries func() []url.Values) {
	e.t.Helper()
	args := []string{
		"plan", "--graph", service, "--prometheus", e.monitoring, "--accept", "Applying", "--cache-dir", e.t.TempDir(), "-o",
		"json",
	}
	e.plan(exit.Ready, args...)
	if requested := queries(); len(requested) != 1 {
		e.t.Errorf("requests without a stored graph: %v, want 1", requested)
	}
	if again := e.plan(exit.Ready, args...); slices.ContainsFunc(again.Notices,
		func(notice string) bool { return strings.Contains(notice, "old") }) {
		e.t.Errorf("the plan reports a recent graph as a limitation: %q", again.Notices)
	}
	verbose := e.call(exit.Ready, append(args, "-v=1")...)
	if !strings.Contains(verbose.Stderr, "using the stored update graph") {
		e.t.Errorf("the log does not state that the stored graph is used: %s", verbose.Stderr)
	}
	result := e.plan(exit.Ready, append(args, "--offline")...)
	if requested := queries(); len(requested) > 0 {
		e.t.Errorf("requests with a recent graph or --offline: %v, want none", requested)
	}
	if !slices.ContainsFunc(result.Notices, func(notice string) bool {
		return strings.HasPrefix(notice, "offline: the graph of channel eus-4.18 is ")
	}) {
		e.t.Errorf("the notices of the plan lack the age of the graph: %q", result.Notices)
	}
}

// completedNode returns the MachineConfigNode of a node whose last reboot was completed at
// this minute.
func completedNode(name string, minute int) string {
	return strings.NewReplacer("NAME", name, "MINUTE", fmt.Sprintf("%02d", minute)).Replace(`
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigNode
metadata: {name: NAME}
spec: {node: {name: NAME}, pool: {name: worker}, configVersion: {desired: rendered-worker-0123456789abcdef0123456789abcdef}}
status:
  configVersion: {current: rendered-worker-0123456789abcdef0123456789abcdef, desired: rendered-worker-0123456789abcdef0123456789abcdef}
  observedGeneration: 1
  conditions:
  - {type: Updated, status: "True", reason: Updated, message: "", lastTransitionTime: "2026-01-01T00:MINUTE:00Z"}
  - {type: RebootedNode, status: "False", reason: RebootedNode, message: "", lastTransitionTime: "2026-01-01T00:MINUTE:00Z"}
`)
}

// planDurations expects that the durations are calibrated by the nodes of the cluster, and that
// the plan names the nodes that it does not cover.
func (e *environment) planDurations(service string) {
	e.t.Helper()
	e.create(
		completedNode("worker-0", 0), completedNode("worker-1", 9), completedNode("worker-2", 20),
		strings.Replace(node("windows-0", "worker", "v1.29.9"), "kubernetes.io/os: linux", "kubernetes.io/os: windows", 1),
		strings.Replace(node("rhel-0", "worker", "v1.29.9"), `osImage: ""`, "osImage: Red Hat Enterprise Linux 8.10 (Ootpa)", 1),
	)
	e.create(billingPod, billingBudget)
	await.Until(e.t, "a budget that allows no disruption", func(ctx context.Context) bool { return e.budgetStatus(ctx).CurrentHealthy == 1 })
	result := e.plan(exit.Ready, "plan", "--graph", service, "--prometheus", e.monitoring, "--accept", "Applying", "-o", "json")
	got := strings.Join(slices.Concat(result.Duration.Basis, result.Missing, result.Duration.ProlongedBy), "\n")
	for reason, want := range map[string]string{
		"no pod of the budget can be evicted": "the drain of node worker-0 of MachineConfigPool \"worker\" does not end " +
			"(pod default/billing: RequiresAll)",
		"the time for a node is that of the last roll-out": "10m (10m to 10m) for a node: the last roll-out of this cluster by its " +
			"MachineConfigNodes (n=2).",
		"Windows nodes have no pool":                    "Windows nodes (1): the Windows Machine Config Operator updates them",
		"RHEL nodes are updated by their administrator": "RHEL nodes (1): their administrator updates them",
	} {
		if !strings.Contains(got, want) {
			e.t.Errorf("%s: the plan lacks %q:\n%s", reason, want, got)
		}
	}
	e.replace(node("worker-0", "master", "v1.29.9"))
	e.replace(node("rhel-0", "master", "v1.29.9"))
	compact := e.plan(exit.Ready, "plan", "--graph", service, "--prometheus", e.monitoring, "--accept", "Applying", "-o", "json")
	if !slices.ContainsFunc(compact.Notices, func(notice string) bool { return strings.HasPrefix(notice, "compact cluster: ") }) {
		e.t.Errorf("the notices of a cluster without workers: %q, want one about the compact cluster", compact.Notices)
	}
}

// plan runs a command, which must end with this exit code, and returns its plan.
func (e *environment) plan(code int, arguments ...string) updateplan.Plan {
	e.t.Helper()
	var result updateplan.Plan
	if err := json.Unmarshal([]byte(e.call(code, arguments...).Stdout), &result); err != nil {
		e.t.Fatal(err)
	}
	return result
}

// planAssessedByCVO adds an assessment by CVO. The plan uses it for risks with the same rules
// that the preflight cannot evaluate.
func (e *environment) planAssessedByCVO(service string) {
	e.t.Helper()
	query := func(name, promql string) configv1.ConditionalUpdateRisk {
		return configv1.ConditionalUpdateRisk{
			Name: name, URL: "https://example.com/risk", Message: "Something fails.",
			MatchingRules: []configv1.ClusterCondition{{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: promql}}},
		}
	}
	assessed := conditionalUpdate("4.18.17", "r@sha256:3333333333333333333333333333333333333333333333333333333333333333")
	assessed.Risks = []configv1.ConditionalUpdateRisk{
		query("Applying", "vector(1)"), query("NotApplying", "vector(2)"), query("WithoutData", "absent_metric"),
	}
	assessed.Conditions = []metav1.Condition{{
		Type: "Recommended", Status: metav1.ConditionFalse, Reason: "Applying", Message: "Something fails.", LastTransitionTime: metav1.Now(),
	}}
	e.state.Conditional = []configv1.ConditionalUpdate{assessed}
	e.apply()
	result := e.plan(exit.Ready, "plan", "--graph", service, "--prometheus", e.monitoring, "--accept", "Applying", "-o", "json")
	evaluated := map[string]string{}
	for _, each := range result.Updates[0].Risks {
		evaluated[each.Name] = fmt.Sprintf("%s by %s", each.Applies, each.EvaluatedBy)
	}
	want := map[string]string{"Applying": "True by CVO", "NotApplying": "False by Preflight", "WithoutData": "False by CVO"}
	if diff := cmp.Diff(want, evaluated); diff != "" {
		e.t.Errorf("evaluation of the risks: -want +got:\n%s", diff)
	}
}

// comparePlan stores a plan, updates the cluster, and compares the plan with the cluster.
func (e *environment) comparePlan(service string) {
	e.t.Helper()
	stored := e.call(exit.Blocked, "plan", "--graph", service, "--prometheus", e.monitoring, "-o", "json")
	file := filepath.Join(e.t.TempDir(), "plan.json")
	if err := os.WriteFile(file, []byte(stored.Stdout), 0o600); err != nil {
		e.t.Fatal(err)
	}
	e.state.Version = "4.17.33"
	e.apply()
	followed := e.plan(exit.Undecided, "plan", "--follow", file, "--graph", service, "--prometheus", e.monitoring, "--accept", "Applying",
		"-o", "json")
	if followed.Comparison == nil || !followed.Comparison.Holds || strings.Join(followed.Comparison.Rest, " ") != "4.17.33 4.18.17" {
		e.t.Errorf("the comparison with the stored plan: %+v, want it to hold", followed.Comparison)
	}
}
