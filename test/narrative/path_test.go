package narrative_test

import (
	"context"
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
)

// The path between even minor versions.
const first, middle, last = "4.16.27", "4.17.33", "4.18.17"

// ackFrom is an admin gate in a release.
func ackFrom(gate string) contents {
	return contents{"0000_50_etcd_01_gates.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: admin-gates, namespace: openshift-config-managed}
data: {` + gate + `: "Read https://docs.example.com/apis first."}
`}
}

// graphOf is the graph of the path, with a risk of the second update; without it if there
// is no query.
func graphOf(pullSpecs map[string]string, risk string) string {
	type object = map[string]any
	var nodes []object
	for _, version := range []string{first, middle, last} {
		nodes = append(nodes, object{"version": version, "payload": pullSpecs[version]})
	}
	conditional := []object{}
	if risk != "" {
		conditional = []object{{
			"edges": []object{{"from": middle, "to": last}},
			"risks": []object{{
				"name": "SecondRisk", "message": "Something fails.", "url": "https://example.com/a",
				"matchingRules": []object{{"type": "PromQL", "promql": object{"promql": risk}}},
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

// withoutSecond is the graph after the second update was removed from it.
func withoutSecond(graph string) string { return strings.Replace(graph, ",[1,2]", "", 1) }

// path runs the preflights of a path.
func (s *scene) path(code int, args ...string) report.Path {
	s.t.Helper()
	var made report.Path
	if got := s.read(&made, append([]string{"run"}, args...)); got.code != code {
		s.t.Errorf("%s: exit code %d, want %d\n%s", strings.Join(args, " "), got.code, code, got.stderr)
	}
	return made
}

// causes are the decisions of a path and the names that led to them.
type causes struct {
	Whole, First, Second verdict.Decision
	FirstBy, SecondBy    []string
}

func causesOf(made report.Path) causes {
	by := func(v verdict.Verdict) []string { return slices.Concat(v.Blocking, v.Undecided) }
	if len(made.Updates) != 2 {
		return causes{Whole: made.Decision}
	}
	a, b := made.Updates[0].Verdict, made.Updates[1].Verdict
	return causes{Whole: made.Decision, First: a.Decision, Second: b.Decision, FirstBy: by(a), SecondBy: by(b)}
}

// Every update of a path has its own verdict, and what blocks a later one is known before
// the first: the rows are those of the stories, in turns on one cluster.
func TestEveryUpdateOfAPath(t *testing.T) {
	const named = "ClusterVersionRecommendedUpdate"
	for name, tc := range map[string]struct {
		reason   string
		releases map[string]contents
		risk     string
		removed  bool
		holds    []string
		kubelet  string
		acks     map[string]string
		args     []string
		code     int
		want     causes
	}{
		"Clear": {
			reason: "a later update is never Ready", code: ready,
			want: causes{Whole: verdict.Ready, First: verdict.Ready, Second: verdict.NothingKnown},
		},
		"Ack": {
			reason: "only the release in the middle has the gate", releases: map[string]contents{middle: ackFrom("ack-4.17-apis")}, code: blocked,
			want: causes{Whole: verdict.Blocked, First: verdict.Ready, Second: verdict.Blocked, SecondBy: []string{"AdminAck-ack-4.17-apis"}},
		},
		"AcknowledgedAhead": {
			reason: "a gate may be acknowledged before its release runs", releases: map[string]contents{middle: ackFrom("ack-4.17-apis")},
			acks: map[string]string{"ack-4.17-apis": "true"}, code: ready,
			want: causes{Whole: verdict.Ready, First: verdict.Ready, Second: verdict.NothingKnown},
		},
		"RemovedAPI": {
			reason: "Kubernetes 1.31, of 4.18, removes the API", code: blocked,
			holds: []string{use("flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", "1.31", "system:serviceaccount:billing:reader")},
			want: causes{
				Whole: verdict.Blocked, First: verdict.Ready, Second: verdict.Blocked,
				SecondBy: []string{"RemovedAPI-flowschemas.v1beta3.flowcontrol.apiserver.k8s.io"},
			},
		},
		"OldKubelet": {
			reason: "4.17 does not support the kubelet; before 4.18 it can be updated", kubelet: "v1.28.9", code: blocked,
			want: causes{
				Whole: verdict.Blocked, First: verdict.Blocked, Second: verdict.NothingKnown,
				FirstBy: []string{"KubeletMinorVersionUpgradeable-worker"},
			},
		},
		"OperatorLimit": {
			reason: "the operator supports 4.17", code: blocked,
			holds: []string{installedOperator("lags.v1", "4.17")},
			want: causes{
				Whole: verdict.Blocked, First: verdict.Ready, Second: verdict.Blocked, SecondBy: []string{"IncompatibleOperator-billing.lags.v1"},
			},
		},
		"LaterKey": {
			reason: "the release before may add the key of the last one", releases: map[string]contents{last: {untrusted: ""}}, code: undecided,
			want: causes{
				Whole: verdict.Undecided, First: verdict.Ready, Second: verdict.Undecided, SecondBy: []string{"ReleaseSignature"},
			},
		},
		"NextKey": {
			reason: "the next release needs a key that the cluster has", releases: map[string]contents{middle: {untrusted: ""}}, code: blocked,
			want: causes{
				Whole: verdict.Blocked, First: verdict.Blocked, Second: verdict.Undecided,
				FirstBy: []string{"ReleaseSignature"}, SecondBy: []string{"AdminAck"},
			},
		},
		"Risk": {
			reason: "the risk of the second update applies", risk: "vector(1)", code: blocked,
			want: causes{Whole: verdict.Blocked, First: verdict.Ready, Second: verdict.Blocked, SecondBy: []string{"SecondRisk"}},
		},
		"RiskAccepted": {
			reason: "a risk of a later update may be accepted", risk: "vector(1)", args: []string{"--accept", "SecondRisk"}, code: ready,
			want: causes{Whole: verdict.Ready, First: verdict.Ready, Second: verdict.NothingKnown},
		},
		"RiskDoesNotApply": {
			reason: "the risk is evaluated by its query", risk: "vector(0)", code: ready,
			want: causes{Whole: verdict.Ready, First: verdict.Ready, Second: verdict.NothingKnown},
		},
		"RiskUnknown": {
			reason: "the metric is absent", risk: "absent_metric", code: undecided,
			want: causes{Whole: verdict.Undecided, First: verdict.Ready, Second: verdict.Undecided, SecondBy: []string{"SecondRisk"}},
		},
		"EdgeRemoved": {
			reason: "the graph has changed since the path was planned", removed: true, code: undecided,
			want: causes{Whole: verdict.Undecided, First: verdict.Ready, Second: verdict.Undecided, SecondBy: []string{named}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := onPath(t, tc.releases)
			maps.Copy(s.state.Acks, tc.acks)
			s.apply()
			s.hold(tc.holds...)
			if tc.kubelet != "" {
				s.change(node("worker-0", "worker", tc.kubelet))
			}
			graph := graphOf(s.pullSpecs, tc.risk)
			if tc.removed {
				graph = withoutSecond(graph)
			}
			made := s.path(tc.code, append([]string{"--hop", middle, "--hop", s.pullSpecs[last], "--graph", s.file("eus-4.18.json", graph)}, tc.args...)...)
			if diff := cmp.Diff(tc.want, causesOf(made)); diff != "" {
				t.Errorf("%s: -want +got:\n%s%s", tc.reason, diff, openOf(made))
			}
		})
	}
}

func openOf(made report.Path) string {
	var lines []string
	for _, each := range made.Updates {
		for _, f := range each.Findings {
			if f.Open() {
				lines = append(lines, each.Target.Version+" "+f.Name+" ("+f.Reason+"): "+f.Message)
			}
		}
	}
	return strings.Join(lines, "\n")
}

// pathScene is a cluster at the first release of the path.
type pathScene struct {
	*scene

	pullSpecs map[string]string
}

func onPath(t *testing.T, releases map[string]contents) pathScene {
	t.Helper()
	s := on(t, &byDefault)
	s.state.Version, s.state.Channel = first, "eus-4.18"
	s.network("OVNKubernetes")
	s.change(node("control-plane-0", "master", "v1.29.9"))
	s.change(node("worker-0", "worker", "v1.29.9"))
	all := map[string]contents{middle: nil, last: nil}
	maps.Copy(all, releases)
	pullSpecs := s.publishWith(all)
	pullSpecs[first] = s.state.Image
	s.state.Available = map[string]string{middle: pullSpecs[middle]}
	return pathScene{scene: s, pullSpecs: pullSpecs}
}

// network creates the Network of the cluster; its status is no subresource.
func (s *scene) network(kind string) {
	s.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "Network", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{"networkType": kind}, "status": map[string]any{"networkType": kind},
	}}
	networks := s.resources(object)
	if _, err := networks.Create(s.t.Context(), object, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := networks.Delete(context.WithoutCancel(s.t.Context()), "cluster", metav1.DeleteOptions{}); err != nil {
			s.t.Error(err)
		}
	})
}

// The plan's own path is checked, one update of a path has the findings of "run", each
// check that is built in is evaluated or asked again, and an update more never makes a
// blocked path Ready.
func TestPathOfThePlan(t *testing.T) {
	t.Parallel()
	s := onPath(t, nil)
	s.state.Gates = map[string]string{"ack-4.16-apis": "Read https://docs.example.com/apis first."}
	s.apply()
	graph := s.file("eus-4.18.json", graphOf(s.pullSpecs, ""))
	planned := s.path(blocked, "--path", "--to-minor", "4.18", "--graph", graph)
	if diff := cmp.Diff([]string{first, middle, last}, planned.Versions); diff != "" {
		t.Errorf("the best path of the plan: -want +got:\n%s", diff)
	}
	single := s.path(blocked, "--path", "--to", middle, "--graph", graph)
	var alone report.Report
	s.read(&alone, []string{"run", "--to", middle})
	for _, made := range []report.Path{planned, single, s.path(blocked, "--hop", middle)} {
		if diff := cmp.Diff(findingsOf(alone), findingsOf(made.Updates[0])); diff != "" {
			t.Errorf("the first update of a path has the findings of run: -run +path:\n%s", diff)
		}
	}
	s.evaluatedOrAskedAgain(planned)
	s.withStoredGraph(planned)
}

// withStoredGraph checks the path again with a graph that an update service has served
// before: a recent one is used without a request, and any with --offline, which is stated.
func (s pathScene) withStoredGraph(planned report.Path) {
	s.t.Helper()
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		_, _ = w.Write([]byte(graphOf(s.pullSpecs, "")))
	}))
	args := []string{"--path", "--to", last, "--graph", server.URL, "--channel", "eus-4.18", "--cache-dir", s.t.TempDir()}
	s.path(blocked, args...)
	server.Close()
	recent, offline := s.path(blocked, args...), s.path(blocked, append(args, "--offline")...)
	for _, made := range []report.Path{recent, offline} {
		if diff := cmp.Diff(causesOf(planned), causesOf(made)); diff != "" || requests != 1 {
			s.t.Errorf("%d requests; the stored graph gives the same path: -want +got:\n%s", requests, diff)
		}
	}
	if len(recent.Notices) > 0 || len(offline.Notices) != 1 || !strings.HasPrefix(offline.Notices[0], "offline: the graph of channel eus-4.18 is ") {
		s.t.Errorf("only with --offline, the path has the age of the graph: %q, %q", recent.Notices, offline.Notices)
	}
}

// evaluatedOrAskedAgain compares the two updates: nothing is left out silently.
func (s pathScene) evaluatedOrAskedAgain(made report.Path) {
	s.t.Helper()
	later := made.Updates[1]
	asked := map[string]bool{}
	for _, each := range later.AskedAgain {
		if each.Reason == "" {
			s.t.Errorf("%s has no reason", each.Name)
		}
		asked[each.Name] = true
	}
	for _, name := range []string{"ClusterOperatorUpgradeable", "ClusterVersionOverrides", "Alerts", "NodeHealth"} {
		if !slices.ContainsFunc(later.AskedAgain, func(a report.AskedAgain) bool { return strings.HasPrefix(a.Name, name) }) {
			s.t.Errorf("%s is not asked again: %v", name, later.AskedAgain)
		}
	}
	for _, f := range later.Findings {
		if asked[f.Name] {
			s.t.Errorf("%s is evaluated and asked again", f.Name)
		}
	}
	if !later.Verdict.Provisional || len(made.Updates[0].AskedAgain) > 0 {
		s.t.Errorf("only a later update is provisional: %+v", later.Verdict)
	}
}

// findingsOf are what a run found, without what differs between runs.
func findingsOf(r report.Report) []finding.Finding {
	found := slices.Clone(r.Findings)
	for i := range found {
		found[i].Actions = nil // they name the flags of the command
	}
	return found
}

// renderedAgain has a command write the path in all formats: "render" makes the same bytes
// from the JSON.
func (s pathScene) renderedAgain(args ...string) {
	s.t.Helper()
	formats := []string{"json", "yaml", "markdown", "html", "junit"}
	directory := s.t.TempDir()
	for _, format := range formats {
		args = append(args, "--report", format+"="+filepath.Join(directory, format))
	}
	written := s.call(blocked, args...)
	if diff := cmp.Diff(written.stdout, s.call(blocked, "render", filepath.Join(directory, "json")).stdout); diff != "" {
		s.t.Errorf("the text: -run +render:\n%s", diff)
	}
	for _, format := range formats {
		want, err := os.ReadFile(filepath.Join(directory, format))
		if err != nil {
			s.t.Fatal(err)
		}
		got := s.call(blocked, "render", filepath.Join(directory, "json"), "-o", format)
		if diff := cmp.Diff(string(want), got.stdout); diff != "" || !strings.Contains(got.stdout, last) {
			s.t.Errorf("%s: -run +render:\n%s", format, diff)
		}
	}
}

// The text for people begins with the decision about the whole.
func TestPathAsText(t *testing.T) {
	t.Parallel()
	s := onPath(t, map[string]contents{middle: ackFrom("ack-4.17-apis")})
	s.apply()
	graph := s.file("eus-4.18.json", graphOf(s.pullSpecs, ""))
	got := s.call(blocked, "run", "--path", "--to", last, "--graph", graph, "--prometheus", s.monitoring)
	for _, want := range []string{
		"Blocked: do not start the path to 4.18.17 yet.", "4.16.27 -> 4.17.33 -> 4.18.17", "Hop 1 of 2", "4.16.27 to 4.17.33: Ready",
		"4.17.33 to 4.18.17: Blocked because of AdminAck-ack-4.17-apis; provisional", "Provisional: judged from 4.16.27.",
		"Asked again when the cluster runs 4.17.33", "Decision for the path: Blocked",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the text does not contain %q:\n%s", want, got.stdout)
		}
	}
	s.renderedAgain("run", "--path", "--to", last, "--graph", graph, "--prometheus", s.monitoring)
	s.call(badInput, "run", "--path", "--hop", middle)
	s.call(badInput, "run", "--channel", "eus-4.18", "--to", middle)
	s.call(badInput, "run", "--path", "--to", last, "-o", "preflight-v1-json")
}
