package imageset_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/imageset"
	"github.com/openshift/update-preflight/collector/updateplan/path"
)

func union(t *testing.T, channels ...string) *graph.Graph {
	t.Helper()
	var graphs []*graph.Graph
	for _, channel := range channels {
		content, err := os.ReadFile(filepath.Join("..", "graph", "testdata", channel+".json"))
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := graph.Parse(channel, content)
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, parsed)
	}
	united, err := graph.Union(graphs...)
	if err != nil {
		t.Fatal(err)
	}
	return united
}

func open(graph.Node, graph.Risk) bool { return true }

// parsed has the fields of a configuration that oc-mirror searches by.
type parsed struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Storage    any    `json:"storageConfig"`
	Mirror     struct {
		Platform struct {
			Graph         bool     `json:"graph"`
			Architectures []string `json:"architectures"`
			Channels      []struct {
				Name         string `json:"name"`
				Type         string `json:"type"`
				Min          string `json:"minVersion"`
				Max          string `json:"maxVersion"`
				ShortestPath bool   `json:"shortestPath"`
			} `json:"channels"`
		} `json:"platform"`
	} `json:"mirror"`
}

// mirrored are the versions that oc-mirror mirrors for a file: the shortest path, or all
// releases of the channel from the minimum to the maximum.
func mirrored(t *testing.T, g *graph.Graph, file imageset.File) []string {
	t.Helper()
	var p parsed
	if err := yaml.UnmarshalStrict(file.Content, &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Mirror.Platform.Channels) != 1 || !p.Mirror.Platform.Graph {
		t.Fatalf("a file has one channel and the graph:\n%s", file.Content)
	}
	c := p.Mirror.Platform.Channels[0]
	if c.ShortestPath {
		return imageset.Search(g, c.Name, c.Min, c.Max)
	}
	var versions []string
	for i := g.Find(c.Min); i <= g.Find(c.Max); i++ {
		if slices.Contains(g.Sources(i), c.Name) {
			versions = append(versions, g.Releases[i].Version)
		}
	}
	return versions
}

// The files of any path have exactly its releases.
func TestFilesMirrorThePath(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	compared, single := 0, 0
	for _, channels := range [][]string{
		{"eus-4.12"},
		{"eus-4.14"},
		{"eus-4.16"},
		{"eus-4.18"},
		{"eus-4.20"},
		{"eus-4.22"},
		{"eus-4.16", "eus-4.18"},
	} {
		g := union(t, channels...)
		finder := path.NewFinder(g, open)
		for range 150 {
			from, to := random.IntN(len(g.Releases)), random.IntN(len(g.Releases))
			found, err := finder.Find(g.Releases[from].Version, g.Releases[to].Version)
			if err != nil {
				continue
			}
			files, err := imageset.Files(g, found.Best, "amd64", imageset.V2)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, file := range files {
				versions := mirrored(t, g, file)
				if diff := cmp.Diff(file.Releases, versions); diff != "" {
					t.Errorf("%s: -promised, +mirrored:\n%s", file.Name, diff)
				}
				got = append(got, versions...)
			}
			compared++
			if len(files) == 1 {
				single++
			}
			if diff := cmp.Diff(found.Best.Versions(), got); diff != "" {
				t.Errorf("-path, +mirrored:\n%s", diff)
			}
		}
	}
	if compared < 200 || single < 50 || single == compared {
		t.Errorf("%d paths were compared, %d of them with one file: the test has too few of a kind", compared, single)
	}
}

// A path of recommended updates in one channel is the one that oc-mirror finds.
func TestOneFileForRecommendedUpdates(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	compared := 0
	for _, channel := range []string{"eus-4.12", "eus-4.14", "eus-4.16", "eus-4.18", "eus-4.20", "eus-4.22"} {
		g := union(t, channel)
		finder := path.NewFinder(g, open)
		for range 100 {
			from, to := random.IntN(len(g.Releases)), random.IntN(len(g.Releases))
			found, err := finder.Find(g.Releases[from].Version, g.Releases[to].Version)
			if err != nil || found.Best.Open() > 0 {
				continue
			}
			compared++
			if want := imageset.Search(g, channel, g.Releases[from].Version, g.Releases[to].Version); !slices.Equal(found.Best.Versions(), want) {
				t.Errorf("%s: got %v, oc-mirror finds %v", channel, found.Best.Versions(), want)
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d paths were compared", compared)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	g := union(t, "eus-4.18")
	found, err := path.NewFinder(g, open).Find("4.16.35", "4.18.52")
	if err != nil {
		t.Fatal(err)
	}
	for format, want := range map[imageset.Format]string{
		imageset.V2: `apiVersion: mirror.openshift.io/v2alpha1
kind: ImageSetConfiguration
mirror:
  platform:
    architectures:
    - multi
    channels:
    - maxVersion: 4.18.52
      minVersion: 4.16.35
      name: eus-4.18
      shortestPath: true
      type: ocp
    graph: true
`,
		imageset.V1: "storageConfig:\n  local:\n    path: ./oc-mirror\n",
	} {
		files, err := imageset.Files(g, found.Best, "multi", format)
		if err != nil || len(files) != 1 || !strings.HasSuffix(string(files[0].Content), want) {
			t.Errorf("%s: got %+v (%v), want the end\n%s", format, files, err, want)
		}
	}
}
