package cache_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/updateplan/updateservice"
	"github.com/openshift/update-preflight/runner/cache"
)

// key is that of a graph in these tests.
func key(channel string) updateservice.Key {
	return updateservice.Key{URL: "https://user:secret@updates.example.com/graph", Channel: channel, Architecture: "amd64"}
}

// graphFiles are the files of the graphs in a directory.
func graphFiles(t *testing.T, directory string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(directory, "graphs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestGraphs(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	graphs, err := cache.OpenGraphs(directory)
	if err != nil {
		t.Fatal(err)
	}
	received := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, content := range []string{`{"nodes":[1]}`, `{"nodes":[]}`} {
		if err := graphs.Put(key("eus-4.18"), received, []byte(content)); err != nil {
			t.Fatal(err)
		}
		got, at, ok := graphs.Get(key("eus-4.18"))
		if !ok || string(got) != content || !at.Equal(received) {
			t.Errorf("the newest graph is stored: got %s of %v, %t", got, at, ok)
		}
	}
	other := key("eus-4.18")
	other.Architecture = "arm64"
	for reason, absent := range map[string]updateservice.Key{"another channel": key("eus-4.20"), "another architecture": other} {
		if got, _, ok := graphs.Get(absent); ok {
			t.Errorf("%s has no stored graph, got %s", reason, got)
		}
	}
	if err := graphs.Put(key("eus-4.18"), received, []byte("<html>")); err == nil {
		t.Error("content that is not JSON is stored")
	}
	for _, file := range graphFiles(t, directory) {
		content, err := os.ReadFile(file)
		info, failed := os.Stat(file)
		if err != nil || failed != nil || strings.Contains(string(content), "secret") || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the password, or is not private: %v %v %v", file, err, failed, info.Mode())
		}
	}
}

func TestForeignGraphs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, content string }{
		"Empty":    {reason: "an empty file"},
		"NotJSON":  {reason: "a file that was overwritten", content: "<html>"},
		"OtherKey": {reason: "a file that was copied from another graph", content: `{"url":"https://user:xxxxx@updates.example.com/graph","channel":"eus-4.20","architecture":"amd64","time":"2026-01-02T03:04:05Z","graph":{}}`},
		"NoTime":   {reason: "the age is unknown", content: `{"url":"https://user:xxxxx@updates.example.com/graph","channel":"eus-4.18","architecture":"amd64","graph":{}}`},
		"Large":    {reason: "a file that is too large", content: strings.Repeat(" ", 18<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			directory := t.TempDir()
			graphs, err := cache.OpenGraphs(directory)
			if err != nil {
				t.Fatal(err)
			}
			if err := graphs.Put(key("eus-4.18"), time.Now(), []byte("{}")); err != nil {
				t.Fatal(err)
			}
			for _, file := range graphFiles(t, directory) {
				if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, _, ok := graphs.Get(key("eus-4.18")); ok {
				t.Errorf("%s: got %.80s", tc.reason, got)
			}
		})
	}
}

// The oldest graphs are deleted when all have more than 256 MiB.
func TestGraphsAreBounded(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	graphs, err := cache.OpenGraphs(directory)
	if err != nil {
		t.Fatal(err)
	}
	large := []byte(`"` + strings.Repeat("x", 16<<20) + `"`)
	const count = 18
	for i := range count {
		if err := graphs.Put(key(fmt.Sprint("c", i)), time.Now(), large); err != nil {
			t.Fatal(err)
		}
	}
	var total int64
	for _, file := range graphFiles(t, directory) {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if _, _, ok := graphs.Get(key(fmt.Sprint("c", count-1))); !ok || total > 256<<20 {
		t.Errorf("the newest graph is stored: %t; all have %d bytes", ok, total)
	}
}

func FuzzStoredGraph(f *testing.F) {
	f.Add([]byte(`{"url":"https://user:xxxxx@updates.example.com/graph","channel":"eus-4.18","architecture":"amd64","time":"2026-01-02T03:04:05Z","graph":{}}`))
	f.Add([]byte(`{"graph":`))
	f.Fuzz(func(t *testing.T, content []byte) {
		directory := t.TempDir()
		graphs, err := cache.OpenGraphs(directory)
		if err != nil {
			t.Fatal(err)
		}
		if err := graphs.Put(key("eus-4.18"), time.Now(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		for _, file := range graphFiles(t, directory) {
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, _, ok := graphs.Get(key("eus-4.18")); ok && !json.Valid(got) {
			t.Errorf("a stored graph is JSON, got %q", got)
		}
	})
}
