package commands_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/test/exit"
)

// The path between even minor versions.
const first, middle, last = "4.16.27", "4.17.33", "4.18.17"

// withGate returns the manifest of an admin gate.
func withGate(gate string) contents {
	return contents{"0000_50_etcd_01_gates.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: admin-gates, namespace: openshift-config-managed}
data: {` + gate + `: "Read https://docs.example.com/apis first."}
`}
}

// graphOf returns the update graph of the path. The second update has a risk with the query;
// if it is empty, it has no risk.
func graphOf(pullSpecs map[string]string, query string) string {
	type object = map[string]any
	var nodes []object
	for _, version := range []string{first, middle, last} {
		nodes = append(nodes, object{"version": version, "payload": pullSpecs[version]})
	}
	conditional := []object{}
	if query != "" {
		conditional = []object{{
			"edges": []object{{"from": middle, "to": last}},
			"risks": []object{{
				"name": "SecondRisk", "message": "Something fails.", "url": "https://example.com/a",
				"matchingRules": []object{{"type": "PromQL", "promql": object{"promql": query}}},
			}},
		}}
	}
	edges := [][]int{{0, 1}, {1, 2}}
	text, err := json.Marshal(object{"nodes": nodes, "edges": edges[:2-len(conditional)], "conditionalEdges": conditional})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// withoutSecondUpdate removes the second update from a graph.
func withoutSecondUpdate(graph string) string { return strings.Replace(graph, ",[1,2]", "", 1) }

// runPath runs the preflights of a path, which must end with this exit code.
func (e *environment) runPath(code int, args ...string) report.Path {
	e.t.Helper()
	var result report.Path
	if got := e.read(&result, append([]string{"run"}, args...)); got.Code != code {
		e.t.Errorf("%s: exit code %d, want %d\n%s", strings.Join(args, " "), got.Code, code, got.Stderr)
	}
	return result
}

// pathCauses are the decisions of a path and of its updates, with the findings that determine
// them.
type pathCauses struct {
	Whole, First, Second verdict.Decision
	FirstBy, SecondBy    []string
}

// pathCausesOf returns the decisions of a path of two updates.
func pathCausesOf(result report.Path) pathCauses {
	by := func(v verdict.Verdict) []string { return slices.Concat(v.Blocking, v.Undecided) }
	if len(result.Updates) != 2 {
		return pathCauses{Whole: result.Decision}
	}
	a, b := result.Updates[0].Verdict, result.Updates[1].Verdict
	return pathCauses{Whole: result.Decision, First: a.Decision, Second: b.Decision, FirstBy: by(a), SecondBy: by(b)}
}

// Every update of a path has its own verdict, so that causes which block a later update are
// known before the first one.
func TestEveryUpdateOfAPath(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		releases map[string]contents
		objects  []string
		kubelet  string
		acks     map[string]string
		code     int
		want     pathCauses
	}{
		"Ack": {
			reason: "only the release in the middle has the gate", releases: map[string]contents{middle: withGate("ack-4.17-apis")},
			code: exit.Blocked,
			want: pathCauses{Whole: verdict.Blocked, First: verdict.Ready, Second: verdict.Blocked, SecondBy: []string{"AdminAck-ack-4.17-apis"}},
		},
		"AcknowledgedAhead": {
			reason: "a gate may be acknowledged before its release runs", releases: map[string]contents{middle: withGate("ack-4.17-apis")},
			acks: map[string]string{"ack-4.17-apis": "true"}, code: exit.Ready,
			want: pathCauses{Whole: verdict.Ready, First: verdict.Ready, Second: verdict.NothingKnown},
		},
		"RemovedAPI": {
			reason: "Kubernetes 1.31, of 4.18, removes the API", code: exit.Blocked,
			objects: []string{requestCount("flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", "1.31", "system:serviceaccount:billing:reader")},
			want: pathCauses{
				Whole: verdict.Blocked, First: verdict.Ready, Second: verdict.Blocked,
				SecondBy: []string{"RemovedAPI-flowschemas.v1beta3.flowcontrol.apiserver.k8s.io"},
			},
		},
		"OldKubelet": {
			reason: "4.17 does not support the kubelet, which can be updated before 4.18", kubelet: "v1.28.9", code: exit.Blocked,
			want: pathCauses{
				Whole: verdict.Blocked, First: verdict.Blocked, Second: verdict.NothingKnown,
				FirstBy: []string{"KubeletMinorVersionUpgradeable-worker"},
			},
		},
		"OperatorLimit": {
			reason: "the operator supports 4.17", code: exit.Blocked,
			objects: []string{installedOperator("lags.v1", "4.17")},
			want: pathCauses{
				Whole: verdict.Blocked, First: verdict.Ready, Second: verdict.Blocked, SecondBy: []string{"IncompatibleOperator-billing.lags.v1"},
			},
		},
		"LaterKey": {
			reason: "the release in the middle may add the key of the last one", releases: map[string]contents{last: {untrusted: ""}},
			code: exit.Undecided,
			want: pathCauses{
				Whole: verdict.Undecided, First: verdict.Ready, Second: verdict.Undecided, SecondBy: []string{"ReleaseSignature"},
			},
		},
		"NextKey": {
			reason: "the cluster must have the key of the next release", releases: map[string]contents{middle: {untrusted: ""}}, code: exit.Blocked,
			want: pathCauses{
				Whole: verdict.Blocked, First: verdict.Blocked, Second: verdict.Undecided,
				FirstBy: []string{"ReleaseSignature"}, SecondBy: []string{"AdminAck"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newPathEnvironment(t, tc.releases)
			maps.Copy(e.state.Acks, tc.acks)
			e.apply()
			e.create(tc.objects...)
			if tc.kubelet != "" {
				e.replace(node("worker-0", "worker", tc.kubelet))
			}
			result := e.runPath(tc.code, e.hops(graphOf(e.pullSpecs, ""))...)
			if diff := cmp.Diff(tc.want, pathCausesOf(result)); diff != "" {
				t.Errorf("%s: -want +got:\n%s%s", tc.reason, diff, openFindingsOf(result))
			}
		})
	}
}

// The updates of a path, and their risks, are those of the graph.
func TestGraphOfAPath(t *testing.T) {
	e := newPathEnvironment(t, nil)
	e.apply()
	e.monitoring = monitoring.Load(t).URL
	for name, tc := range map[string]struct {
		reason  string
		risk    string
		removed bool
		args    []string
		code    int
		want    pathCauses
	}{
		"Clear": {
			reason: "a later update is never Ready", code: exit.Ready,
			want: pathCauses{Whole: verdict.Ready, First: verdict.Ready, Second: verdict.NothingKnown},
		},
		"Risk": {
			reason: "the risk of the second update applies", risk: "vector(1)", code: exit.Blocked,
			want: pathCauses{Whole: verdict.Blocked, First: verdict.Ready, Second: verdict.Blocked, SecondBy: []string{"SecondRisk"}},
		},
		"RiskAccepted": {
			reason: "a risk of a later update may be accepted", risk: "vector(1)", args: []string{"--accept", "SecondRisk"}, code: exit.Ready,
			want: pathCauses{Whole: verdict.Ready, First: verdict.Ready, Second: verdict.NothingKnown},
		},
		"RiskDoesNotApply": {
			reason: "the risk is evaluated by its query", risk: "vector(0)", code: exit.Ready,
			want: pathCauses{Whole: verdict.Ready, First: verdict.Ready, Second: verdict.NothingKnown},
		},
		"RiskUnknown": {
			reason: "the metric is absent", risk: "absent_metric", code: exit.Undecided,
			want: pathCauses{Whole: verdict.Undecided, First: verdict.Ready, Second: verdict.Undecided, SecondBy: []string{"SecondRisk"}},
		},
		"EdgeRemoved": {
			reason: "the graph has changed since the path was planned", removed: true, code: exit.Undecided,
			want: pathCauses{
				Whole: verdict.Undecided, First: verdict.Ready, Second: verdict.Undecided,
				SecondBy: []string{"ClusterVersionRecommendedUpdate"},
			},
		},
	} {
		graph := graphOf(e.pullSpecs, tc.risk)
		if tc.removed {
			graph = withoutSecondUpdate(graph)
		}
		result := e.runPath(tc.code, append(e.hops(graph), tc.args...)...)
		if diff := cmp.Diff(tc.want, pathCausesOf(result)); diff != "" {
			t.Errorf("%s: %s: -want +got:\n%s%s", name, tc.reason, diff, openFindingsOf(result))
		}
	}
}

// hops are the flags for the path, by the version of its first update and the image of its second one.
func (e pathEnvironment) hops(graph string) []string {
	return []string{"--hop", middle, "--hop", e.pullSpecs[last], "--graph", e.file("eus-4.18.json", graph)}
}

// openFindingsOf returns the open findings of a path, for a failure message.
func openFindingsOf(result report.Path) string {
	var lines []string
	for _, each := range result.Updates {
		for _, f := range each.Findings {
			if f.Open() {
				lines = append(lines, each.Target.Version+" "+f.Name+" ("+f.Reason+"): "+f.Message)
			}
		}
	}
	return strings.Join(lines, "\n")
}

// pathEnvironment is a cluster at the first release of the path.
type pathEnvironment struct {
	*environment

	pullSpecs map[string]string
}

func newPathEnvironment(t *testing.T, releases map[string]contents) pathEnvironment {
	t.Helper()
	e := newEnvironment(t, &byDefault)
	e.state.Version, e.state.Channel = first, "eus-4.18"
	e.network("OVNKubernetes")
	e.replace(node("control-plane-0", "master", "v1.29.9"))
	e.replace(node("worker-0", "worker", "v1.29.9"))
	all := map[string]contents{middle: nil, last: nil}
	maps.Copy(all, releases)
	pullSpecs := e.publishWith(all)
	pullSpecs[first] = e.state.Image
	e.state.Available = map[string]string{middle: pullSpecs[middle]}
	return pathEnvironment{environment: e, pullSpecs: pullSpecs}
}

// network creates the Network of the cluster. Its status is not a subresource.
func (e *environment) network(kind string) {
	e.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "Network", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{"networkType": kind}, "status": map[string]any{"networkType": kind},
	}}
	networks := e.resources(object)
	if _, err := networks.Create(e.t.Context(), object, metav1.CreateOptions{}); err != nil {
		e.t.Fatal(err)
	}
}

// The path of the plan is checked. The first update of a path has the findings of "run", each
// built-in check is evaluated for a later update or asked again, and a further update never
// makes a blocked path Ready.
func TestPathOfThePlan(t *testing.T) {
	e := newPathEnvironment(t, nil)
	e.state.Gates = map[string]string{"ack-4.16-apis": "Read https://docs.example.com/apis first."}
	e.apply()
	graph := e.file("eus-4.18.json", graphOf(e.pullSpecs, ""))
	planned := e.runPath(exit.Blocked, "--path", "--to-minor", "4.18", "--graph", graph)
	if diff := cmp.Diff([]string{first, middle, last}, planned.Versions); diff != "" {
		t.Errorf("the path of the plan: -want +got:\n%s", diff)
	}
	single := e.runPath(exit.Blocked, "--path", "--to", middle, "--graph", graph)
	var alone report.Report
	e.read(&alone, []string{"run", "--to", middle})
	for _, result := range []report.Path{planned, single, e.runPath(exit.Blocked, "--hop", middle)} {
		if diff := cmp.Diff(findingsOf(alone), findingsOf(result.Updates[0])); diff != "" {
			t.Errorf("findings of the first update: -run +path:\n%s", diff)
		}
	}
	e.expectAllChecks(planned)
	e.checkStoredGraph(planned)
}

// checkStoredGraph checks the path again with a stored graph of an update service. A recent
// graph is used without a request, and any graph with --offline, which the report states.
func (e pathEnvironment) checkStoredGraph(planned report.Path) {
	e.t.Helper()
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		_, _ = w.Write([]byte(graphOf(e.pullSpecs, "")))
	}))
	args := []string{"--path", "--to", last, "--graph", server.URL, "--channel", "eus-4.18", "--cache-dir", e.t.TempDir()}
	e.runPath(exit.Blocked, args...)
	server.Close()
	recent, offline := e.runPath(exit.Blocked, args...), e.runPath(exit.Blocked, append(args, "--offline")...)
	for _, result := range []report.Path{recent, offline} {
		if diff := cmp.Diff(pathCausesOf(planned), pathCausesOf(result)); diff != "" || requests != 1 {
			e.t.Errorf("%d requests, want 1; the path by the stored graph: -want +got:\n%s", requests, diff)
		}
	}
	if len(recent.Notices) > 0 || len(offline.Notices) != 1 ||
		!strings.HasPrefix(offline.Notices[0], "offline: the graph of channel eus-4.18 is ") {
		e.t.Errorf("notices without --offline: %q, want none; with it: %q, want the age of the graph", recent.Notices, offline.Notices)
	}
}

// expectAllChecks expects that each check of the later update is either evaluated or asked
// again.
func (e pathEnvironment) expectAllChecks(result report.Path) {
	e.t.Helper()
	later := result.Updates[1]
	askedAgain := map[string]bool{}
	for _, each := range later.AskedAgain {
		if each.Reason == "" {
			e.t.Errorf("%s has no reason", each.Name)
		}
		askedAgain[each.Name] = true
	}
	for _, name := range []string{"ClusterOperatorUpgradeable", "ClusterVersionOverrides", "Alerts", "NodeHealth"} {
		if !slices.ContainsFunc(later.AskedAgain, func(a report.AskedAgain) bool { return strings.HasPrefix(a.Name, name) }) {
			e.t.Errorf("%s is not asked again: %v", name, later.AskedAgain)
		}
	}
	for _, f := range later.Findings {
		if askedAgain[f.Name] {
			e.t.Errorf("%s is both evaluated and asked again", f.Name)
		}
	}
	if !later.Verdict.Provisional || len(result.Updates[0].AskedAgain) > 0 {
		e.t.Errorf("the later update: %+v, want it provisional; asked again for the first: %v", later.Verdict, result.Updates[0].AskedAgain)
	}
}

// findingsOf returns the findings of a run without the fields that differ between commands.
func findingsOf(r report.Report) []finding.Finding {
	found := slices.Clone(r.Findings)
	for i := range found {
		found[i].Actions = nil // with the flags of the command
	}
	return found
}

// expectSameRendering runs a command that writes the path in all formats, and expects that
// "render" creates the same bytes from the JSON.
func (e pathEnvironment) expectSameRendering(args ...string) {
	e.t.Helper()
	formats := []string{"json", "yaml", "markdown", "html", "junit"}
	directory := e.t.TempDir()
	for _, format := range formats {
		args = append(args, "--report", format+"="+filepath.Join(directory, format))
	}
	written := e.call(exit.Blocked, args...)
	made := strings.ReplaceAll(written.Stdout, ", "+e.config.Host+", context local", "") // a file has no connection
	if diff := cmp.Diff(made, e.call(exit.Blocked, "render", filepath.Join(directory, "json")).Stdout); diff != "" {
		e.t.Errorf("the text: -run +render:\n%s", diff)
	}
	for _, format := range formats {
		want, err := os.ReadFile(filepath.Join(directory, format))
		if err != nil {
			e.t.Fatal(err)
		}
		got := e.call(exit.Blocked, "render", filepath.Join(directory, "json"), "-o", format)
		if diff := cmp.Diff(string(want), got.Stdout); diff != "" || !strings.Contains(got.Stdout, last) {
			e.t.Errorf("%s: -run +render:\n%s", format, diff)
		}
	}
}

// The text begins with the decision about the whole path.
func TestPathAsText(t *testing.T) {
	e := newPathEnvironment(t, map[string]contents{middle: withGate("ack-4.17-apis")})
	e.apply()
	graph := e.file("eus-4.18.json", graphOf(e.pullSpecs, ""))
	got := e.call(exit.Blocked, "run", "--path", "--to", last, "--graph", graph, "--prometheus", e.monitoring)
	for _, want := range []string{
		"Blocked: do not start the path to 4.18.17 yet.", "4.16.27 -> 4.17.33 -> 4.18.17", "Hop 1 of 2", "4.16.27 to 4.17.33: Ready",
		"4.17.33 to 4.18.17: Blocked because of AdminAck-ack-4.17-apis; provisional", "Provisional: evaluated for 4.16.27.",
		"Evaluated again when the cluster runs 4.17.33", "Decision for the path 4.16.27 -> 4.17.33 -> 4.18.17: Blocked",
	} {
		if !strings.Contains(got.Stdout, want) {
			t.Errorf("the text does not contain %q:\n%s", want, got.Stdout)
		}
	}
	e.expectSameRendering("run", "--path", "--to", last, "--graph", graph, "--prometheus", e.monitoring)
	e.call(exit.BadInput, "run", "--path", "--hop", middle)
	e.call(exit.BadInput, "run", "--channel", "eus-4.18", "--to", middle)
}
