package path_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/path"
)

// On small graphs, all paths can be compared.
func TestBestOfAllPaths(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	found := 0
	for range 500 {
		g := randomGraph(t, random)
		isOpen := func(_ graph.Node, risk graph.Risk) bool { return risk.Name != "Accepted" }
		last := len(g.Releases) - 1
		got, err := path.NewFinder(g, isOpen).Find(g.Releases[0].Version, g.Releases[last].Version)
		var best []int
		for _, each := range everyPath(g, 0, last) {
			if best == nil || less(g, each, best) {
				best = each
			}
		}
		if best == nil {
			if err == nil {
				t.Fatalf("got %v, but there is no path", got.Best.Versions())
			}
			continue
		}
		found++
		var want []string
		for _, release := range best {
			want = append(want, g.Releases[release].Version)
		}
		if err != nil || !slices.Equal(got.Best.Versions(), want) {
			t.Fatalf("got %v (%v), want %v", got.Best.Versions(), err, want)
		}
	}
	if found < 100 {
		t.Errorf("only %d of the graphs have a path", found)
	}
}

// randomGraph has eight releases of three minor versions, and random updates.
func randomGraph(t *testing.T, random *rand.Rand) *graph.Graph {
	t.Helper()
	versions := []string{"4.16.0", "4.16.1", "4.16.2", "4.17.0", "4.17.1", "4.17.2", "4.18.0", "4.18.1"}
	document := map[string]any{}
	var nodes, conditional []map[string]any
	var edges [][2]int
	for i, version := range versions {
		nodes = append(nodes, map[string]any{"version": version, "payload": fmt.Sprintf("registry.example.com/release@sha256:%064d", i)})
		for to := range versions {
			switch random.IntN(6) {
			case 0:
				edges = append(edges, [2]int{i, to})
			case 1:
				var risks []map[string]any
				for _, name := range []string{"A", "B", "Accepted"}[:1+random.IntN(3)] {
					risks = append(risks, map[string]any{"name": name, "matchingRules": []map[string]string{{"type": "Always"}}})
				}
				conditional = append(conditional, map[string]any{"edges": []map[string]string{{"from": version, "to": versions[to]}}, "risks": risks})
			}
		}
	}
	document["nodes"], document["edges"], document["conditionalEdges"] = nodes, edges, conditional
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := graph.Parse("random", text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// everyPath are all paths between two releases, as releases.
func everyPath(g *graph.Graph, from, to int) [][]int {
	if from == to {
		return [][]int{{to}}
	}
	var all [][]int
	for _, update := range g.Updates {
		if update.From != from {
			continue
		}
		for _, rest := range everyPath(g, update.To, to) {
			all = append(all, append([]int{from}, rest...))
		}
	}
	return all
}

// less reports whether a path is better than another.
func less(g *graph.Graph, a, b []int) bool {
	openA, openB := openOf(g, a), openOf(g, b)
	switch {
	case openA != openB:
		return openA < openB
	case len(a) != len(b):
		return len(a) < len(b)
	}
	return slices.Compare(a, b) > 0 // the newest first
}

func openOf(g *graph.Graph, releases []int) int {
	count := 0
	for i := range releases[1:] {
		for _, update := range g.Updates {
			if update.From != releases[i] || update.To != releases[i+1] {
				continue
			}
			for _, risk := range update.Risks {
				if risk.Name != "Accepted" {
					count++
				}
			}
		}
	}
	return count
}

func BenchmarkFind(b *testing.B) {
	for name, channels := range map[string][]string{
		"Channel":     {"eus-4.14"},
		"AllChannels": {"eus-4.12", "eus-4.14", "eus-4.16", "eus-4.18", "eus-4.20", "eus-4.22"},
	} {
		contents := map[string][]byte{}
		for _, each := range channels {
			contents[each] = channel(b, each)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var graphs []*graph.Graph
				for _, each := range channels {
					parsed, err := graph.Parse(each, contents[each])
					if err != nil {
						b.Fatal(err)
					}
					graphs = append(graphs, parsed)
				}
				united, err := graph.Union(graphs...)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := path.NewFinder(united, all).Find("4.12.28", "4.14.16"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
