package graph_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/updateplan/graph"
)

const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// document is a graph of these versions, with more members.
func document(versions []string, more string) string {
	var nodes []string
	for _, version := range versions {
		nodes = append(nodes, fmt.Sprintf(`{"version":%q,"payload":"registry.example.com/%s%s"}`, version, version, digest))
	}
	return `{"nodes":[` + strings.Join(nodes, ",") + `]` + more + `}`
}

func conditional(risk string, edges ...string) string {
	var all []string
	for _, edge := range edges {
		from, to, _ := strings.Cut(edge, " ")
		all = append(all, fmt.Sprintf(`{"from":%q,"to":%q}`, from, to))
	}
	risks := ""
	if risk != "" {
		risks = fmt.Sprintf(`{"name":%q,"matchingRules":[{"type":"Always"}]}`, risk)
	}
	return `{"edges":[` + strings.Join(all, ",") + `],"risks":[` + risks + `]}`
}

func TestRefusedGraphs(t *testing.T) {
	t.Parallel()
	versions := []string{"4.18.1", "4.18.2"}
	for name, tc := range map[string]struct {
		reason, content string
		want            graph.Cause
	}{
		"NotJSON":   {reason: "an error page of a proxy", content: "<html>", want: graph.Malformed},
		"Cut":       {reason: "the connection ended", content: `{"nodes":[`, want: graph.Malformed},
		"OtherType": {reason: "metadata are strings", content: `{"nodes":[{"metadata":{"a":1}}]}`, want: graph.Malformed},
		"Deep": {
			reason: "depth is bounded", content: `{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
			want: graph.Malformed,
		},
		"Version":   {reason: "versions are compared", content: document([]string{"4.18"}, ""), want: graph.InvalidVersion},
		"Twice":     {reason: "a duplicate is ambiguous", content: document([]string{"4.18.1", "4.18.1"}, ""), want: graph.DuplicateVersion},
		"Beyond":    {reason: "CVO panics here", content: document(versions, `,"edges":[[0,2]]`), want: graph.InvalidEdge},
		"Negative":  {reason: "indexes are not negative", content: document(versions, `,"edges":[[-1,1]]`), want: graph.InvalidEdge},
		"ManyBytes": {reason: "sizes are bounded", content: strings.Repeat(" ", graph.MaxBytes+1), want: graph.TooLarge},
		"ManyReleases": {
			reason: "counts are bounded", content: `{"nodes":[{}` + strings.Repeat(`,{}`, graph.MaxReleases) + `]}`,
			want: graph.TooLarge,
		},
		"ManyUpdates": {
			reason:  "counts are bounded",
			content: document(versions, `,"edges":[[0,1]`+strings.Repeat(`,[0,1]`, graph.MaxUpdates)+`]`), want: graph.TooLarge,
		},
		"ManyElsewhere": {
			reason:  "conditional updates count, too",
			content: document(versions, `,"conditionalEdges":[{"edges":[{}`+strings.Repeat(`,{}`, graph.MaxUpdates)+`]}]`), want: graph.TooLarge,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := graph.Parse("eus-4.18", []byte(tc.content))
			failed, ok := err.(*graph.Error) //nolint:errorlint // it is documented
			if !ok || failed.Reason != tc.want || !strings.Contains(err.Error(), "eus-4.18") {
				t.Errorf("%s: got %.200v, want the reason %s and the name of the graph", tc.reason, err, tc.want)
			}
		})
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	versions := []string{"4.18.1", "4.18.2", "4.19.1", "4.20.1", "4.22.0", "5.0.0"}
	for name, tc := range map[string]struct {
		reason, more string
		// updates are the versions of those that are left.
		updates string
		want    graph.Cause
	}{
		"Plain": {reason: "an update", more: `,"edges":[[0,1],[1,2],[4,5]]`, updates: "4.18.1>4.18.2 4.18.2>4.19.1 4.22.0>5.0.0"},
		"Conditional": {
			reason: "conditional takes precedence",
			more:   `,"edges":[[0,1]],"conditionalEdges":[` + conditional("Risk", "4.18.1 4.18.2") + `]`, updates: "4.18.1>4.18.2!Risk",
		},
		"Self":      {reason: "it changes nothing", more: `,"edges":[[1,1]]`, want: graph.SelfEdge},
		"Older":     {reason: "a rollback is another command", more: `,"edges":[[1,0]]`, want: graph.NotOneHop},
		"TwoMinors": {reason: "minor versions are not skipped", more: `,"edges":[[0,3]]`, want: graph.NotOneHop},
		"TwoGroups": {reason: "CVO ignores it", more: `,"edges":[[0,1]],"conditionalEdges":[` + conditional("A", "4.18.1 4.18.2") + "," +
			conditional("B", "4.18.1 4.18.2") + `]`, want: graph.AmbiguousRisks},
		"UnknownRelease": {
			reason: "the channel has been filtered", more: `,"conditionalEdges":[` + conditional("A", "4.18.1 4.18.9") + `]`,
			want: graph.UnknownRelease,
		},
		"NoRisks": {
			reason: "conditional on nothing is not recommended",
			more:   `,"edges":[[0,1]],"conditionalEdges":[` + conditional("", "4.18.1 4.18.2") + `]`, want: graph.NoRisks,
		},
		"RiskName": {reason: "the API refuses it in acceptRisks", more: `,"conditionalEdges":[` + conditional("a risk", "4.18.1 4.18.2") +
			`]`, updates: "4.18.1>4.18.2!a risk", want: graph.InvalidRiskName},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parsed, err := graph.Parse("eus-4.18", []byte(document(versions, tc.more)))
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(parsed); got != tc.updates {
				t.Errorf("%s: the updates are %q, want %q", tc.reason, got, tc.updates)
			}
			var reason graph.Cause
			if len(parsed.Notices) > 0 {
				reason = parsed.Notices[0].Reason
			}
			if len(parsed.Notices) > 1 || reason != tc.want {
				t.Errorf("%s: the notices are %+v, want one with the reason %q", tc.reason, parsed.Notices, tc.want)
			}
		})
	}
}

func TestReleasesWithoutImages(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, without, updates string }{
		"From": {reason: "the release from which an update starts runs already", without: "4.18.1", updates: "4.18.1>4.18.2 4.18.2>4.19.1"},
		"To":   {reason: "an update to a release without an image cannot be made", without: "4.18.2", updates: "4.18.2>4.19.1"},
	} {
		image := fmt.Sprintf("registry.example.com/%s%s", tc.without, digest)
		text := strings.Replace(document([]string{"4.18.1", "4.18.2", "4.19.1"}, `,"edges":[[0,1],[1,2]]`), image, "", 1)
		parsed, err := graph.Parse("eus-4.18", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(parsed); got != tc.updates || len(parsed.Notices) != 1 || parsed.Notices[0].Reason != graph.NoImage {
			t.Errorf("%s (%s): the updates are %q, want %q; notices %+v", name, tc.reason, got, tc.updates, parsed.Notices)
		}
	}
}

// describe is FROM>TO!RISK for each update.
func describe(g *graph.Graph) string {
	var all []string
	for _, update := range g.Updates {
		text := g.Releases[update.From].Version + ">" + g.Releases[update.To].Version
		for _, risk := range update.Risks {
			text += "!" + risk.Name
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestUnion(t *testing.T) {
	t.Parallel()
	parse := func(source, content string) *graph.Graph {
		parsed, err := graph.Parse(source, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	first := parse("eus-4.16", document([]string{"4.16.1", "4.16.2"}, `,"edges":[[0,1]]`))
	second := parse("eus-4.18", document([]string{"4.16.2", "4.16.1", "4.17.1"},
		`,"edges":[[0,2]],"conditionalEdges":[`+conditional("Risk", "4.16.1 4.16.2")+`]`))
	united, err := graph.Union(first, second)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := describe(united), "4.16.1>4.16.2!Risk 4.16.2>4.17.1"; got != want {
		t.Errorf("the updates are %q, want %q", got, want)
	}
	if got := strings.Join(united.Updates[0].Sources, " "); got != "eus-4.16 eus-4.18" {
		t.Errorf("the update is in %q, want both graphs", got)
	}
	if got := strings.Join(united.Sources(2), " "); got != "eus-4.18" {
		t.Errorf("4.17.1 is in %q, want eus-4.18", got)
	}
	other := parse("mirror", strings.Replace(document([]string{"4.16.1"}, ""), "0123", "3210", 1))
	_, err = graph.Union(first, other)
	if failed, ok := err.(*graph.Error); !ok || failed.Reason != graph.Contradictory { //nolint:errorlint // it is documented
		t.Errorf("two images of one version: got %v, want the reason Contradictory", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(document([]string{"4.18.1", "4.18.2"}, `,"edges":[[0,1]],"conditionalEdges":[`+conditional("Risk", "4.18.1 4.18.2")+`]`)))
	files, err := filepath.Glob("testdata/eus-4.22.json")
	if err != nil || len(files) != 1 {
		f.Fatal(err, files)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Fuzz(func(t *testing.T, content []byte) {
		parsed, err := graph.Parse("fuzz", content)
		if err != nil {
			return
		}
		for _, update := range parsed.Updates {
			if update.From < 0 || update.From >= update.To || update.To >= len(parsed.Releases) {
				t.Fatalf("an update from %d to %d of %d releases", update.From, update.To, len(parsed.Releases))
			}
		}
		if again, err := graph.Union(parsed, parsed); err != nil || describe(again) != describe(parsed) {
			t.Fatalf("the union with itself is another graph: %v", err)
		}
	})
}
