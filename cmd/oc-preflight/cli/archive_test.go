package cli_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/targets"
)

const example = "../../../examples/archive"

// BenchmarkArchive judges an update of the cluster of a must-gather of 80 MB in a .tar.xz, and
// compares the time with the one that xz and tar take to list its files.
func BenchmarkArchive(b *testing.B) {
	path := filepath.Join(b.TempDir(), "must-gather.tar.xz")
	if err := generate(path); err != nil {
		b.Fatal(err)
	}
	listing, judging := time.Duration(0), time.Duration(0)
	for b.Loop() {
		start := time.Now()
		if out, err := exec.CommandContext(b.Context(), "sh", "-c", `xz -dc "$1" | tar -t > /dev/null`, "sh", path).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		listed := time.Now()
		judge(b, path)
		listing, judging = listing+listed.Sub(start), judging+time.Since(listed)
	}
	b.ReportMetric(float64(judging)/float64(listing), "xz-dc|tar-t")
}

func judge(b *testing.B, path string) {
	b.Helper()
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	client := cli.New(pflag.NewFlagSet("", pflag.ContinueOnError), streams)
	client.StartLog()
	verb := &cobra.Command{}
	client.ArchiveFlag(verb)
	if err := verb.Flags().Set("archive", path); err != nil {
		b.Fatal(err)
	}
	reached, err := client.Open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	s, err := scene.OpenSettled(b.Context(), reached, scene.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	judged, err := targets.Judge(b.Context(), s, "4.19.1")
	if err != nil || len(judged.Targets) != 1 {
		b.Fatalf("%d targets, %v", len(judged.Targets), err)
	}
}

// generate packs the example with as much of the rest as a must-gather of six nodes has.
func generate(path string) error {
	into, err := os.Create(path)
	if err != nil {
		return err
	}
	compress := exec.Command("xz", "-2") //nolint:noctx // it ends with its input
	compress.Stdout, compress.Stderr = into, os.Stderr
	plain, err := compress.StdinPipe()
	if err != nil {
		return err
	}
	if err := compress.Start(); err != nil {
		return err
	}
	g := generated{tar: tar.NewWriter(plain), words: rand.New(rand.NewPCG(1, 2))}
	return errors.Join(g.write(), g.tar.Close(), plain.Close(), compress.Wait(), into.Close())
}

// generated is an archive that is being written.
type generated struct {
	tar   *tar.Writer
	words *rand.Rand
	// root is the directory with the objects of the example.
	root string
}

func (g *generated) write() error {
	if err := g.example(); err != nil {
		return err
	}
	for i := range 100 {
		name := fmt.Sprintf("resources%d.example.com", i)
		g.object("cluster-scoped-resources/apiextensions.k8s.io/customresourcedefinitions/"+name, "apiextensions.k8s.io/v1",
			"CustomResourceDefinition", name, 33<<10)
	}
	for i := range 170 {
		name := fmt.Sprintf("resources%d.v1.example.com", i)
		g.object("cluster-scoped-resources/apiserver.openshift.io/apirequestcounts/"+name, "apiserver.openshift.io/v1", "APIRequestCount", name,
			13<<10)
	}
	for i := range 56 {
		namespace := fmt.Sprintf("openshift-%d", i)
		for pod := range 4 {
			name := fmt.Sprintf("pod-%d", pod)
			g.object("namespaces/"+namespace+"/pods/"+name+"/"+name, "v1", "Pod", name, 8<<10)
			g.file("namespaces/"+namespace+"/pods/"+name+"/c/c/logs/current.log", g.text("2025-06-03T08:17:40Z ", 200<<10))
		}
		for other := range 15 {
			name := fmt.Sprintf("other-%d", other)
			g.object("namespaces/"+namespace+"/example.com/resources/"+name, "example.com/v1", "Resource", name, 40<<10)
		}
	}
	return g.tar.Flush()
}

func (g *generated) example() error {
	files := os.DirFS(example)
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if filepath.Base(name) == "version" {
			g.root = filepath.Dir(name)
		}
		content, err := fs.ReadFile(files, name)
		return errors.Join(err, g.add(name, string(content)))
	})
}

// object adds an object of that size, in bytes.
func (g *generated) object(path, apiVersion, kind, name string, size int) {
	head := fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n  resourceVersion: \"7\"\nspec:\n", apiVersion, kind, name)
	g.file(path+".yaml", head+g.text("  ", size))
}

// file adds a file; an error ends the archive.
func (g *generated) file(path, content string) {
	if err := g.add(filepath.Join(g.root, path), content); err != nil {
		panic(err)
	}
}

func (g *generated) add(path, content string) error {
	err := g.tar.WriteHeader(&tar.Header{Name: path, Size: int64(len(content)), Mode: 0o644})
	_, writeErr := g.tar.Write([]byte(content))
	return errors.Join(err, writeErr)
}

// text has lines of keys with a few words each.
func (g *generated) text(prefix string, size int) string {
	var text strings.Builder
	for line := 0; text.Len() < size; line++ {
		fmt.Fprintf(&text, "%skey%d: ", prefix, line)
		for range 6 {
			fmt.Fprintf(&text, " word%d", g.words.IntN(400))
		}
		text.WriteByte('\n')
	}
	return text.String()
}
