package path_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/path"
)

// testCase is a solved case. Another implementation of the same rules computed it.
type testCase struct {
	Name     string   `json:"name"`
	Channels []string `json:"channels"`
	From     string   `json:"from"`
	To       string   `json:"to"`
	Assume   string   `json:"assume"`
	Accept   []string `json:"accept"`
	Expect   struct {
		Reason   string     `json:"reason"`
		Path     []string   `json:"path"`
		Open     int        `json:"openRisks"`
		Risks    [][]string `json:"risks"`
		Channels [][]string `json:"channelsPerHop"`
		Plain    []string   `json:"pathWithoutConditionalEdges"`
	} `json:"expect"`
}

func (c testCase) isOpen(_ graph.Node, risk graph.Risk) bool {
	return c.Assume != "no risk applies" && !slices.Contains(c.Accept, risk.Name)
}

func all(graph.Node, graph.Risk) bool { return true }

func readFile(tb testing.TB, name string) []byte {
	tb.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return content
}

// channel is the content of the graph of a channel.
func channel(tb testing.TB, name string) []byte {
	tb.Helper()
	return readFile(tb, filepath.Join("..", "graph", "testdata", name+".json"))
}

// parsed are the graphs of channels that have been parsed.
var parsed sync.Map

func parse(tb testing.TB, name string) *graph.Graph {
	tb.Helper()
	known, _ := parsed.Load(name)
	if found, ok := known.(*graph.Graph); ok {
		return found
	}
	found, err := graph.Parse(name, channel(tb, name))
	if err != nil {
		tb.Fatal(err)
	}
	parsed.Store(name, found)
	return found
}

func union(tb testing.TB, names ...string) *graph.Graph {
	tb.Helper()
	var graphs []*graph.Graph
	for _, name := range names {
		graphs = append(graphs, parse(tb, name))
	}
	united, err := graph.Union(graphs...)
	if err != nil {
		tb.Fatal(err)
	}
	return united
}

func cases(t *testing.T) []testCase {
	t.Helper()
	var solved struct {
		Cases []testCase `json:"cases"`
	}
	if err := json.Unmarshal(readFile(t, "testdata/paths.json"), &solved); err != nil {
		t.Fatal(err)
	}
	if len(solved.Cases) != 34 {
		t.Fatalf("%d cases, want 34", len(solved.Cases))
	}
	return solved.Cases
}

// result is a path in the form of a case.
func result(found path.Path) (versions []string, open int, risks, channels [][]string) {
	for _, hop := range found {
		names := []string{}
		for _, risk := range hop.Risks {
			names = append(names, risk.Name)
		}
		slices.Sort(names)
		risks, channels = append(risks, names), append(channels, hop.Sources)
	}
	return found.Versions(), found.Open(), risks, channels
}

func TestSolvedCases(t *testing.T) {
	t.Parallel()
	for _, tc := range cases(t) {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			finder := path.NewFinder(union(t, tc.Channels...), tc.isOpen)
			found, err := finder.Find(tc.From, tc.To)
			if failed, ok := err.(*path.Error); ok || tc.Expect.Reason != "" { //nolint:errorlint // it is documented
				if !ok || !reasonMatches(failed.Reason, tc.Expect.Reason) {
					t.Fatalf("got %v, want the reason %q", err, tc.Expect.Reason)
				}
				return
			}
			versions, open, risks, channels := result(found.Best)
			for i := range tc.Expect.Risks {
				slices.Sort(tc.Expect.Risks[i])
				slices.Sort(tc.Expect.Channels[i])
			}
			got := testCase{}
			got.Expect.Path, got.Expect.Open, got.Expect.Risks, got.Expect.Channels = versions, open, risks, channels
			want := testCase{Expect: tc.Expect}
			got.Expect.Plain, want.Expect.Plain = plain(found), tc.Expect.Plain
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// The cases have one reason for what is newer or has no path.
func reasonMatches(got path.Cause, want string) bool {
	return string(got) == want || got == path.TargetNotNewer && want == "NoPath"
}

// plain is the best path without conditional updates.
func plain(found path.Paths) []string {
	if found.Recommended != nil {
		return found.Recommended.Versions()
	}
	if slices.ContainsFunc(found.Best, func(hop path.Hop) bool { return len(hop.Risks) > 0 }) {
		return nil
	}
	return found.Best.Versions()
}

// The graphs of update services are unordered.
func TestOrderHasNoMeaning(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, tc := range cases(t) {
		var graphs []*graph.Graph
		for _, name := range tc.Channels {
			parsed, err := graph.Parse(name, shuffled(t, random, channel(t, name)))
			if err != nil {
				t.Fatal(err)
			}
			graphs = append(graphs, parsed)
		}
		united, err := graph.Union(graphs...)
		if err != nil {
			t.Fatal(err)
		}
		want, wantErr := path.NewFinder(union(t, tc.Channels...), tc.isOpen).Find(tc.From, tc.To)
		got, gotErr := path.NewFinder(united, tc.isOpen).Find(tc.From, tc.To)
		if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(wantErr) != fmt.Sprint(gotErr) {
			t.Errorf("%s: -ordered, +shuffled (%v, %v):\n%s", tc.Name, wantErr, gotErr, diff)
		}
	}
}

func shuffled(t *testing.T, random *rand.Rand, content []byte) []byte {
	t.Helper()
	var parsed struct {
		Nodes       []json.RawMessage `json:"nodes"`
		Edges       [][2]int          `json:"edges"`
		Conditional []struct {
			Edges []json.RawMessage `json:"edges"`
			Risks []json.RawMessage `json:"risks"`
		} `json:"conditionalEdges"`
	}
	if err := json.Unmarshal(content, &parsed); err != nil {
		t.Fatal(err)
	}
	moved := random.Perm(len(parsed.Nodes))
	nodes := make([]json.RawMessage, len(moved))
	for from, to := range moved {
		nodes[to] = parsed.Nodes[from]
	}
	parsed.Nodes = nodes
	for i, edge := range parsed.Edges {
		parsed.Edges[i] = [2]int{moved[edge[0]], moved[edge[1]]}
	}
	random.Shuffle(len(parsed.Edges), func(i, j int) { parsed.Edges[i], parsed.Edges[j] = parsed.Edges[j], parsed.Edges[i] })
	random.Shuffle(len(parsed.Conditional), func(i, j int) {
		parsed.Conditional[i], parsed.Conditional[j] = parsed.Conditional[j], parsed.Conditional[i]
	})
	for _, group := range parsed.Conditional {
		random.Shuffle(len(group.Edges), func(i, j int) { group.Edges[i], group.Edges[j] = group.Edges[j], group.Edges[i] })
	}
	written, err := json.Marshal(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

// Planning again from any version of a path returns the rest of it.
func TestTheRestOfThePlan(t *testing.T) {
	t.Parallel()
	for _, tc := range cases(t) {
		finder := path.NewFinder(union(t, tc.Channels...), tc.isOpen)
		found, err := finder.Find(tc.From, tc.To)
		if err != nil {
			continue
		}
		for i := 1; i < len(found.Best); i++ {
			rest, err := finder.Find(found.Best[i].From.Version, tc.To)
			if err != nil {
				t.Fatalf("%s: no path from %s on: %v", tc.Name, found.Best[i].From.Version, err)
			}
			if diff := cmp.Diff(found.Best[i:], rest.Best); diff != "" {
				t.Errorf("%s: the plan from %s on is another one: -rest, +again:\n%s", tc.Name, found.Best[i].From.Version, diff)
			}
		}
	}
}

// Accepting a risk never leaves more risks open.
func TestAcceptingMore(t *testing.T) {
	t.Parallel()
	g := union(t, "eus-4.14")
	names := map[string]bool{}
	for _, found := range g.Updates {
		for _, risk := range found.Risks {
			names[risk.Name] = true
		}
	}
	for _, from := range []string{"4.12.0", "4.12.28", "4.12.47", "4.13.13"} {
		before, err := path.NewFinder(g, all).Find(from, "4.14.16")
		if err != nil {
			continue
		}
		for name := range names {
			after, err := path.NewFinder(g, func(_ graph.Node, risk graph.Risk) bool { return risk.Name != name }).Find(from, "4.14.16")
			if err != nil || after.Best.Open() > before.Best.Open() {
				t.Errorf("%d risks are open from %s, and %d (%v) when %s is accepted", before.Best.Open(), from, after.Best.Open(), err, name)
			}
		}
	}
}

func TestAlternatives(t *testing.T) {
	t.Parallel()
	found, err := path.NewFinder(union(t, "eus-4.14"), all).Find("4.12.28", "4.14.16")
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Best) != 3 || found.Best.Open() != 6 || len(found.Fewest) != 2 || found.Fewest.Open() != 7 || found.Recommended != nil {
		t.Errorf("best %v (%d open), fewest %v (%d open), recommended %v; want 3 updates with 6 and 2 with 7 open risks, and none recommended",
			found.Best.Versions(), found.Best.Open(), found.Fewest.Versions(), found.Fewest.Open(), found.Recommended.Versions())
	}
}

func TestNewest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, from, minor, reachable, newest string
		err                                    path.Cause
	}{
		"Head": {reason: "the newest of the channel is reachable", from: "4.16.27", reachable: "4.18.52", newest: "4.18.52"},
		"Last": {reason: "nothing is newer", from: "4.18.52", err: path.NoPath},
		"OfMinor": {
			reason: "the newest of the minor version is reachable", from: "4.16.27", minor: "4.17", reachable: "4.17.56",
			newest: "4.17.56",
		},
		"NoSuch":    {reason: "the graph has no release of the minor version", from: "4.16.27", minor: "4.20", err: path.TargetNotInChannel},
		"OldMinor":  {reason: "no newer release of the minor version", from: "4.18.17", minor: "4.17", err: path.NoPath},
		"NotInside": {reason: "the channel head of eus-4.16 is not in eus-4.18", from: "4.16.68", err: path.SourceNotInChannel},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reachable, newest, err := path.NewFinder(union(t, "eus-4.18"), all).Newest(tc.from, tc.minor)
			failed, _ := err.(*path.Error) //nolint:errorlint // it is documented
			if tc.err != "" && (failed == nil || failed.Reason != tc.err) || reachable.Version != tc.reachable || newest.Version != tc.newest {
				t.Errorf("%s: got %q, %q, %v", tc.reason, reachable.Version, newest.Version, err)
			}
		})
	}
}

func TestRisks(t *testing.T) {
	t.Parallel()
	var names []string
	for _, risk := range path.Risks(union(t, "eus-4.18"), "4.17.33", "4.18.17") {
		names = append(names, risk.Name)
	}
	slices.Sort(names)
	for _, name := range []string{"OVNEgressIPFailure", "WhereaboutsControllerCreateContainerError"} {
		if !slices.Contains(names, name) {
			t.Errorf("the risks of the paths lack %s: %q", name, slices.Compact(names))
		}
	}
	if got := path.Risks(union(t, "eus-4.18"), "4.17.33", "4.99.0"); got != nil {
		t.Errorf("a version that the graph lacks has no risks, got %v", got)
	}
}
