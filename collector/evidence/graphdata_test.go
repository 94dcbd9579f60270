package evidence_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/evidence"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/test/golden"
	"github.com/openshift/update-preflight/test/prometheus"
)

const documented = "https://updates.example.com/4.19.12"

// mixed are clusters of which those of bare metal regressed, and one of both kinds for another reason.
func mixed(tb testing.TB) evidence.Summary {
	tb.Helper()
	statements := join(many(tb, "g", 12, aws()), many(tb, "m", 2, metal(), "ClusterOperatorDegraded-ingress"), many(tb, "x", 1, aws(), "RouteNotAdmitted"))
	return evidence.Fold(evidence.Known{Statements: statements}, target, nil, evidence.Settings{Now: noon()})
}

func edges(tb testing.TB) []evidence.BlockedEdge {
	tb.Helper()
	made, err := evidence.GraphData(mixed(tb), documented)
	if err != nil {
		tb.Fatal(err)
	}
	return made
}

// The documents as people and programs read them.
func TestDocuments(t *testing.T) {
	summary := mixed(t)
	summary.Refused, summary.Notices = []string{"b.json: it is not signed, and keys are given"}, []string{"a notice"}
	for _, as := range []string{"text", "json"} {
		var out bytes.Buffer
		if err := format.Write(&out, as, summary, format.Style{}); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/evidence."+as, out.String())
	}
	text, err := evidence.EncodeGraphData(edges(t))
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/graph-data.yaml", string(text))
}

func TestURL(t *testing.T) {
	for _, text := range []string{"", "updates.example.com", "file:///etc/passwd", "https://", "https://example.com/" + strings.Repeat("x", 4<<10)} {
		if _, err := evidence.GraphData(mixed(t), text); err == nil {
			t.Errorf("%q documents a risk", text)
		}
	}
}

// What an update service serves of the risks is what this program reads and evaluates: as a risk of ClusterVersion,
// and of the graph of a path.
func TestRoundTrip(t *testing.T) {
	measured := prometheus.Run(t, prometheus.Rule{Record: "cluster_infrastructure_provider", Expr: "vector(1)", Labels: map[string]string{"type": "BareMetal"}})
	cloud := prometheus.Run(t, prometheus.Rule{Record: "cluster_infrastructure_provider", Expr: "vector(1)", Labels: map[string]string{"type": "AWS"}})
	for _, edge := range edges(t) {
		text, err := yaml.Marshal(edge)
		if err != nil {
			t.Fatal(err)
		}
		var parsed configv1.ConditionalUpdateRisk
		if err := yaml.Unmarshal(text, &parsed); err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`).MatchString(parsed.Name) || parsed.Message == "" || parsed.URL != documented {
			t.Errorf("%+v is no risk of ClusterVersion", parsed)
		}
		for name, of := range map[string]*prometheus.Prometheus{"BareMetal": measured, "AWS": cloud} {
			find := func(context.Context) (*rest.Config, error) { return &rest.Config{Host: of.URL}, nil }
			evaluator := risk.Evaluator{Subject: subjectOf(t, ""), Client: monitoring.New(find, monitoring.DefaultTimeout)}
			applies, err := evaluator.Match(t.Context(), parsed.MatchingRules)
			if want := name == "BareMetal" || strings.Contains(edge.Name, "RouteNotAdmitted"); err != nil || applies != want {
				t.Errorf("%s applies to %s: %t, want %t: %v", edge.Name, name, applies, want, err)
			}
		}
		checkGraph(t, edge)
	}
}

// checkGraph fails the test where a graph with the risk is not read as it is.
func checkGraph(t *testing.T, edge evidence.BlockedEdge) {
	t.Helper()
	if !regexp.MustCompile(edge.From).MatchString("4.18.9+amd64") {
		t.Errorf("%s is not about updates from 4.18.9", edge.Name)
	}
	node := func(version string) map[string]any { return map[string]any{"version": version, "payload": image} }
	served, err := json.Marshal(map[string]any{
		"nodes": []any{node("4.18.9"), node(target)}, "edges": [][2]int{},
		"conditionalEdges": []any{map[string]any{"edges": []any{map[string]any{"from": "4.18.9", "to": edge.To}}, "risks": []any{edge}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	read, err := graph.Parse("stable-4.19", served)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Notices) > 0 || len(read.Updates) != 1 || len(read.Updates[0].Risks) != 1 {
		t.Fatalf("%+v: %+v", read.Notices, read.Updates)
	}
	got := read.Updates[0].Risks[0]
	if got.Name != edge.Name || got.URL != edge.URL || got.Message != edge.Message || len(got.Rules) != 1 || got.Rules[0].Type != edge.MatchingRules[0].Type {
		t.Errorf("the graph has %+v of %+v", got, edge)
	}
}

// subjectOf is the update of a cluster of bare metal, whose state is an archive.
func subjectOf(t *testing.T, network string) check.Subject {
	t.Helper()
	dir := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(dir, "cluster-scoped-resources", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := func(apiVersion, kind, item string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %sList\nmetadata: {resourceVersion: \"9\"}\nitems:\n- apiVersion: %[1]s\n  kind: %[2]s\n  %s\n", apiVersion, kind, strings.ReplaceAll(item, "\n", "\n  "))
	}
	write("config.openshift.io/infrastructures.yaml", list("config.openshift.io/v1", "Infrastructure",
		"metadata: {name: cluster}\nstatus: {controlPlaneTopology: HighlyAvailable, platform: BareMetal, platformStatus: {type: BareMetal, baremetal: {loadBalancer: {type: UserManaged}}}}"))
	write("config.openshift.io/networks.yaml", list("config.openshift.io/v1", "Network", "metadata: {name: cluster}\nstatus: {networkType: "+network+"}"))
	write("core/nodes.yaml", list("v1", "Node", "metadata: {name: node-a}\nstatus: {nodeInfo: {architecture: amd64}}"))
	write("config.openshift.io/clusterversions.yaml", list("config.openshift.io/v1", "ClusterVersion", "metadata: {name: version}\nspec: {clusterID: a}"))
	opened, err := archive.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	reached, err := cluster.Connect(opened.Config(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return check.Subject{Cluster: snapshot.Of(reached), Update: checktest.MinorUpdate(t, "4.18.9", target), Now: noon()}
}

// The check compares the cluster that is judged with the others.
func TestCheck(t *testing.T) {
	known := evidence.Known{Statements: join(many(t, "g", 12, aws()), many(t, "m", 2, metal(), "IngressCanary"))}
	set := evidence.Set{Known: known, Settings: evidence.Settings{FailAt: evidence.Threshold{Regressed: 2, Of: 2}}}
	for name, tc := range map[string]struct{ reason, network, want string }{
		"Alike": {"it is like the two that regressed", "OVNKubernetes", "Fail"},
		"Other": {"it has another network", "Other", "Warn"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := evidence.Check(set).Examine(t.Context(), subjectOf(t, tc.network))
			if err != nil || len(found) != 1 || string(found[0].Outcome) != tc.want {
				t.Fatalf("%s: %+v, %v", tc.reason, found, err)
			}
			golden.Compare(t, "testdata/finding-"+strings.ToLower(name)+".txt", found[0].Message+"\n"+found[0].Remediation+"\n")
		})
	}
	env, err := evidence.EnvironmentOf(t.Context(), subjectOf(t, "OVNKubernetes").Cluster)
	if want := metal(); err != nil || fmt.Sprint(env) != fmt.Sprint(want) {
		t.Errorf("the environment is %+v, not %+v: %v", env, want, err)
	}
}
