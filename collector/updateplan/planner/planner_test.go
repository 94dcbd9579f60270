package planner_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/collector/updateplan/planner"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/openshift"
)

// updates is an update graph from 4.18.3 over 4.19.1, whose second update has a risk, and 4.20.5, which no update
// leads to.
const updates = `{"nodes":[
 {"version":"4.18.3","payload":"r@sha256:1111111111111111111111111111111111111111111111111111111111111111"},
 {"version":"4.19.1","payload":"r@sha256:2222222222222222222222222222222222222222222222222222222222222222"},
 {"version":"4.20.2","payload":"r@sha256:3333333333333333333333333333333333333333333333333333333333333333"},
 {"version":"4.20.5","payload":"r@sha256:4444444444444444444444444444444444444444444444444444444444444444"}],
 "edges":[[0,1]],
 "conditionalEdges":[{"edges":[{"from":"4.19.1","to":"4.20.2"}],
  "risks":[{"name":"SomeRisk","message":"Something fails.","url":"https://example.com/risk","matchingRules":[{"type":"Always"}]}]}]}`

// world is a cluster in memory with a service of that graph.
type world struct {
	t      *testing.T
	server *apiserver.Server
	state  openshift.State
}

func newWorld(t *testing.T) *world {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, updates) }))
	t.Cleanup(service.Close)
	w := &world{t: t, server: apiserver.Start(t), state: openshift.State{
		Version: "4.18.3", Image: "r@sha256:" + strings.Repeat("1", 64), Channel: "eus-4.20", Upstream: service.URL, Gates: map[string]string{},
	}}
	w.apply()
	return w
}

func (w *world) apply() {
	w.t.Helper()
	if err := openshift.Apply(w.t.Context(), w.server.Config(), w.state); err != nil {
		w.t.Fatal(err)
	}
}

// open reads the cluster, with these accepted risks.
func (w *world) open(accepted ...string) scene.Scene {
	w.t.Helper()
	reached, err := cluster.Connect(w.server.Config(), "test")
	if err != nil {
		w.t.Fatal(err)
	}
	var settings scene.Settings
	for _, each := range accepted {
		settings.Judgement.Accept = append(settings.Judgement.Accept, acceptance.Acceptance{Risk: each})
	}
	s, err := scene.OpenSettled(w.t.Context(), reached, settings)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func request(to string) planner.Request {
	return planner.Request{Target: updateplan.Target{Version: to}, Transport: http.DefaultTransport}
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		change   func(*world)
		accept   []string
		to       string
		decision updateplan.Decision
		// path are the versions of the updates, and shown is a part of the plan.
		path  []string
		shown string
	}{
		"Clear": {reason: "one update without a risk", to: "4.19.1", decision: updateplan.Clear, path: []string{"4.19.1"}},
		"Risk": {
			reason: "a risk that always applies", to: "4.20.2", decision: updateplan.OpenRisks, path: []string{"4.19.1", "4.20.2"},
			shown: `"name":"SomeRisk"`,
		},
		"Accepted": {
			reason: "the administrator accepts it", accept: []string{"SomeRisk"}, to: "4.20.2", decision: updateplan.Clear,
			path: []string{"4.19.1", "4.20.2"},
		},
		"Gate": {
			reason: "what blocks the first update blocks the path", to: "4.20.2", accept: []string{"SomeRisk"}, decision: updateplan.Blocked,
			path: []string{"4.19.1", "4.20.2"}, shown: "AdminAck-ack-4.18-api",
			change: func(w *world) { w.state.Gates["ack-4.18-api"] = "Migrate the clients." },
		},
		"Later": {
			reason: "the gates of a later update come with its release", to: "4.20.2", accept: []string{"SomeRisk"},
			decision: updateplan.Clear, path: []string{"4.19.1", "4.20.2"},
			shown: "admin acknowledgements to leave 4.19: its gates come with its release",
		},
		"Newest": {
			reason: "the newest that can be reached; a newer one is stated", accept: []string{"SomeRisk"}, decision: updateplan.Clear,
			path: []string{"4.19.1", "4.20.2"}, shown: "4.20.5 is newer than 4.20.2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.change != nil {
				tc.change(w)
				w.apply()
			}
			before := len(w.server.Writes())
			made, err := planner.Plan(t.Context(), w.open(tc.accept...), request(tc.to))
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(made)
			if err != nil {
				t.Fatal(err)
			}
			var path []string
			for _, each := range made.Updates {
				path = append(path, each.To)
			}
			if made.Decision != tc.decision || !slices.Equal(path, tc.path) || !strings.Contains(string(text), tc.shown) {
				t.Errorf("%s: %s by %q, want %s by %q, with %q\n%s", tc.reason, made.Decision, path, tc.decision, tc.path, tc.shown, text)
			}
			if len(w.server.Writes()) > before {
				t.Errorf("%s: a plan has written %q", tc.reason, w.server.Writes()[before:])
			}
		})
	}
}

// A target without a path is bad input, and the plan states why there is none.
func TestNoPath(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		reason, to string
		// stated is a part of the error.
		stated string
	}{
		"Unreached": {reason: "no update leads there", to: "4.20.5", stated: "4.20.5"},
		"Unknown":   {reason: "no channel has it", to: "4.21.0", stated: "4.21.0"},
		"Earlier":   {reason: "no update leads back", to: "4.17.9", stated: "4.17.9"},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := planner.Plan(t.Context(), w.open(), request(tc.to))
			_, unreachable := errors.AsType[*updateplan.Unreachable](err)
			if _, isInput := errors.AsType[*input.Error](err); !isInput || !unreachable || made.Decision != updateplan.NoPath ||
				made.NoPath == nil || !strings.Contains(err.Error(), tc.stated) {
				t.Errorf("%s: %s, %v", tc.reason, made.Decision, err)
			}
		})
	}
}

// A plan that is followed is complete when the cluster has the target, and compared before.
func TestFollowedPlan(t *testing.T) {
	w := newWorld(t)
	stored, err := planner.Plan(t.Context(), w.open("SomeRisk"), request("4.20.2"))
	if err != nil {
		t.Fatal(err)
	}
	followed := request("")
	followed.Stored = &stored
	w.state.Version, w.state.Image = "4.19.1", "r@sha256:"+strings.Repeat("2", 64)
	w.apply()
	made, err := planner.Plan(t.Context(), w.open("SomeRisk"), followed)
	if err != nil || made.Comparison == nil || !made.Comparison.Holds || !slices.Equal(made.Comparison.Rest, []string{"4.19.1", "4.20.2"}) {
		t.Errorf("after the first update: %+v, %v", made.Comparison, err)
	}
	w.state.Version, w.state.Image = "4.20.2", "r@sha256:"+strings.Repeat("3", 64)
	w.apply()
	made, err = planner.Plan(t.Context(), w.open(), followed)
	if err != nil || len(made.Updates) > 0 || made.Decision != updateplan.Clear {
		t.Errorf("at the target: %s, %d updates, %v", made.Decision, len(made.Updates), err)
	}
}

// Without a cluster each risk is open unless it is accepted, and what was not read is missing.
func TestPlanWithout(t *testing.T) {
	asked := request("4.20.2")
	asked.From, asked.Graph.Architecture = "4.18.3", "amd64"
	asked.Graph.Files = []graphsource.File{{Name: "eus-4.20.json", Content: []byte(updates)}}
	open, err := planner.PlanWithout(t.Context(), asked, scene.Settings{})
	if err != nil || open.Decision == updateplan.Clear || len(open.Missing) != 3 || open.Cluster != "" {
		t.Errorf("%s, missing %q, %v", open.Decision, open.Missing, err)
	}
	accepted, err := planner.PlanWithout(t.Context(), asked,
		scene.Settings{Judgement: scene.Judgement{Accept: []acceptance.Acceptance{{Risk: "SomeRisk"}}}})
	if err != nil || accepted.Updates[1].Risks[0].Open {
		t.Errorf("an accepted risk is %+v, %v", accepted.Updates[1].Risks, err)
	}
}

// Best and Graph are for a run of the path: the same path, and the graph that it is in.
func TestBest(t *testing.T) {
	w := newWorld(t)
	best, _, err := planner.Best(t.Context(), w.open("SomeRisk"), request("4.20.2"))
	if err != nil || len(best) != 2 || best[1].To.Version != "4.20.2" {
		t.Errorf("%+v, %v", best, err)
	}
	united, err := planner.Graph(t.Context(), w.open(), request("4.20.2"))
	if err != nil || len(united.Graph.Releases) != 4 || !slices.Equal(united.Sources, []string{"eus-4.20"}) {
		t.Errorf("%q, %v", united.Sources, err)
	}
	if _, _, err := planner.Best(t.Context(), w.open(), request("4.21.0")); err == nil {
		t.Error("a path to an unknown release")
	}
}
