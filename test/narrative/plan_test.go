package narrative_test

import (
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
)

// twoWindows is a graph whose second update has a risk that applies, one that does not,
// and one that cannot be evaluated.
const twoWindows = `{"nodes":[
 {"version":"4.16.27","payload":"r@sha256:1111111111111111111111111111111111111111111111111111111111111111"},
 {"version":"4.17.33","payload":"r@sha256:2222222222222222222222222222222222222222222222222222222222222222"},
 {"version":"4.18.17","payload":"r@sha256:3333333333333333333333333333333333333333333333333333333333333333"}],
 "edges":[[0,1]],
 "conditionalEdges":[{"edges":[{"from":"4.17.33","to":"4.18.17"}],"risks":[
  {"name":"Applying","message":"Something fails.","url":"https://example.com/a","matchingRules":[{"type":"PromQL","promql":{"promql":"vector(1)"}}]},
  {"name":"NotApplying","message":"Something else fails.","url":"https://example.com/b","matchingRules":[{"type":"PromQL","promql":{"promql":"vector(0)"}}]},
  {"name":"WithoutData","message":"A third thing fails.","url":"https://example.com/c","matchingRules":[{"type":"PromQL","promql":{"promql":"absent_metric"}}]}]}]}`

// updateService serves the graph, and keeps the queries.
func updateService(t *testing.T) (address string, queries func() []url.Values) {
	t.Helper()
	received := make(chan url.Values, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received <- r.URL.Query()
		_, _ = w.Write([]byte(twoWindows))
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

// The path between even minor versions, with the pool of workers paused: its risks, its
// acknowledgement and its pauses are those of this cluster (eus-upgrades-mvp).
func TestPlan(t *testing.T) {
	t.Parallel()
	s := on(t, &byDefault)
	s.state.Version, s.state.Channel = "4.16.27", "eus-4.18"
	s.state.Gates = map[string]string{"ack-4.16-apis": "Read https://docs.example.com/apis first."}
	service, queries := updateService(t)
	s.state.Upstream = service
	s.apply()
	s.change(node("control-plane-0", "master", "v1.29.9"))
	s.change(node("worker-0", "worker", "v1.29.9"))

	got := s.call(blocked, "plan", "--to", "4.18.17", "--prometheus", s.monitoring, "--no-cache")
	golden(t, "plan.text", got.stdout)
	for _, query := range queries() {
		if query.Get("id") == "" || query.Get("channel") != "eus-4.18" || query.Get("version") != "4.16.27" || query.Get("arch") != "amd64" {
			t.Errorf("the cluster's own service is asked as CVO asks it: %v", query)
		}
	}
	s.call(undecided, "plan", "--prometheus", s.monitoring, "--accept", "Applying")
	s.call(ready, "plan", "--prometheus", s.monitoring, "--accept", "Applying,WithoutData")
	queries()
	s.state.Upstream = "https://127.0.0.1:1/graph"
	s.apply()
	s.call(blocked, "plan", "--graph", service, "--prometheus", s.monitoring, "--no-cache")
	for _, query := range queries() {
		if query.Has("id") {
			t.Errorf("another service does not receive the ID of the cluster: %v", query)
		}
	}
	s.follow(service)
	s.assessedByCVO(service)
	s.durations(service)
	s.offline(service, queries)
}

// offline plans with the graph that was stored before, without a request: a recent one is
// used without --offline, too.
func (s *scene) offline(service string, queries func() []url.Values) {
	s.t.Helper()
	plan := []string{"plan", "--graph", service, "--prometheus", s.monitoring, "--accept", "Applying", "--cache-dir", s.t.TempDir(), "-o", "json"}
	s.planned(ready, plan...)
	if asked := queries(); len(asked) != 1 {
		s.t.Errorf("without a stored graph, the update service is asked: %v", asked)
	}
	if again := s.planned(ready, plan...); slices.ContainsFunc(again.Notices, func(notice string) bool { return strings.Contains(notice, "old") }) {
		s.t.Errorf("a recent graph is no limitation of the plan: %q", again.Notices)
	}
	verbose := s.call(ready, append(plan, "-v=1")...)
	if !strings.Contains(verbose.stderr, "the stored update graph is used") {
		s.t.Errorf("the log states that the stored graph is used: %s", verbose.stderr)
	}
	made := s.planned(ready, append(plan, "--offline")...)
	if asked := queries(); len(asked) > 0 {
		s.t.Errorf("with a recent graph, and without access, the update service is not asked: %v", asked)
	}
	if !slices.ContainsFunc(made.Notices, func(notice string) bool {
		return strings.HasPrefix(notice, "offline: the graph of channel eus-4.18 is ")
	}) {
		s.t.Errorf("the plan has the age of the graph: %q", made.Notices)
	}
}

// completedNode is the MachineConfigNode of a node whose last reboot was completed at that
// minute.
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

// durations calibrates the plan by the nodes of the cluster, and names those that are not
// part of it.
func (s *scene) durations(service string) {
	s.t.Helper()
	s.hold(
		completedNode("worker-0", 0), completedNode("worker-1", 9), completedNode("worker-2", 20),
		strings.Replace(node("windows-0", "worker", "v1.29.9"), "kubernetes.io/os: linux", "kubernetes.io/os: windows", 1),
		strings.Replace(node("rhel-0", "worker", "v1.29.9"), `osImage: ""`, "osImage: Red Hat Enterprise Linux 8.10 (Ootpa)", 1),
	)
	s.hold(billingPod, billingBudget)
	s.await("a budget that allows nothing", func() bool { return s.budgetStatus().CurrentHealthy == 1 })
	made := s.planned(ready, "plan", "--graph", service, "--prometheus", s.monitoring, "--accept", "Applying", "-o", "json")
	got := strings.Join(slices.Concat(made.Duration.Basis, made.Missing, made.Duration.ProlongedBy), "\n")
	for reason, want := range map[string]string{
		"no pod of the budget can be evicted":             "PodDisruptionBudget default/billing allows no disruption (NeverSatisfied): the drain of a node with one of its pods waits",
		"the time of a node is that of the last roll-out": "10m (10m to 10m) for a node: the last roll-out of this cluster by its MachineConfigNodes (n=2).",
		"Windows nodes have no pool":                      "Windows nodes (1): the Windows Machine Config Operator updates them",
		"RHEL nodes are updated by their administrator":   "RHEL nodes (1): their administrator updates them",
	} {
		if !strings.Contains(got, want) {
			s.t.Errorf("%s: the plan lacks %q:\n%s", reason, want, got)
		}
	}
	s.change(node("worker-0", "master", "v1.29.9"))
	s.change(node("rhel-0", "master", "v1.29.9"))
	compact := s.planned(ready, "plan", "--graph", service, "--prometheus", s.monitoring, "--accept", "Applying", "-o", "json")
	if !slices.ContainsFunc(compact.Notices, func(notice string) bool { return strings.HasPrefix(notice, "compact cluster: ") }) {
		s.t.Errorf("a cluster without workers is compact: %q", compact.Notices)
	}
}

// planned is the plan of a command with this exit code.
func (s *scene) planned(code int, arguments ...string) updateplan.Plan {
	s.t.Helper()
	var made updateplan.Plan
	if err := json.Unmarshal([]byte(s.call(code, arguments...).stdout), &made); err != nil {
		s.t.Fatal(err)
	}
	return made
}

// assessedByCVO has CVO evaluate the risks of the update: one that CVO alone can evaluate
// is evaluated by it.
func (s *scene) assessedByCVO(service string) {
	s.t.Helper()
	query := func(name, promql string) configv1.ConditionalUpdateRisk {
		return configv1.ConditionalUpdateRisk{
			Name: name, URL: "https://example.com/risk", Message: "Something fails.",
			MatchingRules: []configv1.ClusterCondition{{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: promql}}},
		}
	}
	assessed := conditional("4.18.17", "r@sha256:3333333333333333333333333333333333333333333333333333333333333333")
	assessed.Risks = []configv1.ConditionalUpdateRisk{
		query("Applying", "vector(1)"), query("NotApplying", "vector(2)"), query("WithoutData", "absent_metric"),
	}
	assessed.Conditions = []metav1.Condition{{
		Type: "Recommended", Status: metav1.ConditionFalse, Reason: "Applying", Message: "Something fails.", LastTransitionTime: metav1.Now(),
	}}
	s.state.Conditional = []configv1.ConditionalUpdate{assessed}
	s.apply()
	made := s.planned(ready, "plan", "--graph", service, "--prometheus", s.monitoring, "--accept", "Applying", "-o", "json")
	evaluated := map[string]string{}
	for _, each := range made.Updates[0].Risks {
		evaluated[each.Name] = fmt.Sprintf("%s by %s", each.Applies, each.EvaluatedBy)
	}
	want := map[string]string{"Applying": "True by CVO", "NotApplying": "False by Preflight", "WithoutData": "False by CVO"}
	if diff := cmp.Diff(want, evaluated); diff != "" {
		s.t.Errorf("CVO's assessment counts for risks with the same rules: -want +got:\n%s", diff)
	}
}

// follow stores a plan, updates the cluster, and compares.
func (s *scene) follow(service string) {
	s.t.Helper()
	stored := s.call(blocked, "plan", "--graph", service, "--prometheus", s.monitoring, "-o", "json")
	file := filepath.Join(s.t.TempDir(), "plan.json")
	if err := os.WriteFile(file, []byte(stored.stdout), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.state.Version = "4.17.33"
	s.apply()
	followed := s.planned(undecided, "plan", "--follow", file, "--graph", service, "--prometheus", s.monitoring, "--accept", "Applying", "-o", "json")
	if followed.Comparison == nil || !followed.Comparison.Holds || strings.Join(followed.Comparison.Rest, " ") != "4.17.33 4.18.17" {
		s.t.Errorf("the rest of the stored plan holds: %+v", followed.Comparison)
	}
}
