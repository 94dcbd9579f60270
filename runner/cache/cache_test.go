package cache_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/updateplan/updateservice"
	"github.com/openshift/update-preflight/runner/cache"
)

const most = 1 << 20

func open(t *testing.T, path string, limit int64) *cache.Directory {
	t.Helper()
	directory, err := cache.Open(path, limit)
	if err != nil {
		t.Fatal(err)
	}
	return directory
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func put(t *testing.T, directory *cache.Directory, content []byte) {
	t.Helper()
	if err := directory.Put(digestOf(content), content); err != nil {
		t.Fatal(err)
	}
}

// files are the names and sizes of all files in the directory.
func files(t *testing.T, path string) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	entries, err := os.ReadDir(filepath.Join(path, "sha256"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		found[entry.Name()] = info.Size()
	}
	return found
}

func TestKept(t *testing.T) {
	path, content := t.TempDir(), []byte("content")
	put(t, open(t, path, most), content)
	got, ok := open(t, path, most).Get(digestOf(content), most)
	if !ok || !bytes.Equal(got, content) {
		t.Errorf("got %q, %t; want the stored content, also in another process", got, ok)
	}
	if _, ok := open(t, path, most).Get(digestOf([]byte("other")), most); ok {
		t.Error("got content that was not stored")
	}
	if _, ok := open(t, path, most).Get(digestOf(content), 6); ok {
		t.Error("got more bytes than the given limit")
	}
}

// TestCorrupt checks that no other content is ever returned, whatever the
// directory contains.
func TestCorrupt(t *testing.T) {
	content := []byte("the stored content")
	for name, tc := range map[string]struct {
		reason  string
		corrupt func(path string) error
		left    bool
	}{
		"Flipped": {reason: "modified content", corrupt: func(path string) error { return os.WriteFile(path, []byte("other content"), 0o600) }},
		"Cut":     {reason: "truncated content, as on a full disk", corrupt: func(path string) error { return os.Truncate(path, 5) }},
		"Empty":   {reason: "an empty file, as after a power loss", corrupt: func(path string) error { return os.Truncate(path, 0) }},
		"Longer":  {reason: "trailing content", corrupt: func(path string) error { return os.WriteFile(path, append(content, '!'), 0o600) }},
		"Directory": {
			reason: "it is not a file", corrupt: func(path string) error { _ = os.Remove(path); return os.Mkdir(path, 0o700) },
			left: true,
		},
		"Link": {reason: "a symbolic link is not followed", corrupt: func(path string) error {
			_ = os.Remove(path)
			return os.Symlink("/dev/zero", path)
		}, left: true},
		"Unreadable": {reason: "the file was deleted", corrupt: os.Remove},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			directory := open(t, path, most)
			put(t, directory, content)
			hash := strings.TrimPrefix(digestOf(content), "sha256:")
			if err := tc.corrupt(filepath.Join(path, "sha256", hash)); err != nil {
				t.Fatal(err)
			}
			if got, ok := directory.Get(digestOf(content), most); ok {
				t.Errorf("%s: got %q", tc.reason, got)
			}
			if _, exists := files(t, path)[hash]; exists != tc.left {
				t.Errorf("%s: the file exists: %t", tc.reason, exists)
			}
		})
	}
}

func TestPutRefuses(t *testing.T) {
	content := []byte("content")
	for name, tc := range map[string]struct {
		reason  string
		digest  string
		content []byte
	}{
		"Other":     {reason: "the digest must match the content", digest: digestOf([]byte("other")), content: content},
		"Path":      {reason: "a digest is not a path", digest: "sha256:../../../etc/passwd", content: content},
		"Algorithm": {reason: "only sha256 is supported", digest: "sha512:" + strings.Repeat("a", 128), content: content},
		"Large":     {reason: "one file cannot exceed the limit", digest: digestOf(make([]byte, 101)), content: make([]byte, 101)},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			if err := open(t, path, 100).Put(tc.digest, tc.content); err == nil {
				t.Errorf("stored: %s", tc.reason)
			}
			if left := files(t, path); len(left) > 0 {
				t.Errorf("%s: files left: %v", tc.reason, left)
			}
		})
	}
}

func TestLimit(t *testing.T) {
	path := t.TempDir()
	directory := open(t, path, 350)
	contents := make([][]byte, 4)
	for i := range contents {
		contents[i] = bytes.Repeat([]byte{byte(i)}, 100)
		put(t, directory, contents[i])
		old := time.Now().Add(time.Duration(i-10) * time.Minute)
		if i == 3 {
			continue
		}
		if err := os.Chtimes(filepath.Join(path, "sha256", strings.TrimPrefix(digestOf(contents[i]), "sha256:")), old, old); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			directory.Get(digestOf(contents[0]), most) // the oldest is now the most recently used
		}
	}
	for i, want := range []bool{true, false, true, true} {
		if _, ok := directory.Get(digestOf(contents[i]), most); ok != want {
			t.Errorf("content %d: stored %t, want %t: the least recently used is evicted first", i, ok, want)
		}
	}
}

func TestUnfinished(t *testing.T) {
	path := t.TempDir()
	directory := open(t, path, most)
	for name, age := range map[string]time.Duration{"unfinished-old": 2 * time.Hour, "unfinished-new": time.Minute} {
		file := filepath.Join(path, "sha256", name)
		if err := os.WriteFile(file, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Now(), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, directory, []byte("content"))
	left := files(t, path)
	if _, ok := left["unfinished-old"]; ok {
		t.Error("the abandoned unfinished file remains")
	}
	if _, ok := left["unfinished-new"]; !ok {
		t.Error("the unfinished file of another process was deleted")
	}
}

func TestUnusable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for reason, path := range map[string]string{
		"a file is not a directory": file, "a path below a file": filepath.Join(file, "below"),
		"a directory that cannot be created": "/proc/preflight",
	} {
		if _, err := cache.Open(path, most); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want an error of the cache", reason, err)
		}
	}
}

// TestConcurrent puts, gets and evicts the same content in one directory
// concurrently. Returned content must match its digest.
func TestConcurrent(t *testing.T) {
	path := t.TempDir()
	var users sync.WaitGroup
	for range 8 {
		directory := open(t, path, 3_500)
		users.Go(func() {
			for i := range 100 {
				content := bytes.Repeat([]byte{byte(i % 5)}, 1000)
				if err := directory.Put(digestOf(content), content); err != nil {
					t.Error(err)
				}
				if got, ok := directory.Get(digestOf(content), most); ok && !bytes.Equal(got, content) {
					t.Errorf("got %d bytes of other content", len(got))
				}
			}
		})
	}
	users.Wait()
	for name := range files(t, path) {
		if strings.HasPrefix(name, "unfinished-") {
			t.Errorf("unfinished file %s remains", name)
		}
	}
}

func FuzzGet(f *testing.F) {
	f.Add("sha256:"+strings.Repeat("a", 64), []byte("content"))
	f.Fuzz(func(t *testing.T, digest string, content []byte) {
		path := t.TempDir()
		directory := open(t, path, most)
		if err := directory.Put(digest, content); err == nil && digest != digestOf(content) {
			t.Errorf("stored under the digest %q", digest)
		}
		if err := os.WriteFile(filepath.Join(path, "sha256", strings.TrimPrefix(digestOf(nil), "sha256:")), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := directory.Get(digestOf(nil), most); ok && len(got) > 0 {
			t.Errorf("got %q without content stored", got)
		}
	})
}

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
		"Empty":   {reason: "an empty file"},
		"NotJSON": {reason: "a file that was overwritten", content: "<html>"},
		"OtherKey": {
			reason:  "a file that was copied from another graph",
			content: `{"url":"https://user:xxxxx@updates.example.com/graph","channel":"eus-4.20","architecture":"amd64","time":"2026-01-02T03:04:05Z","graph":{}}`,
		},
		"NoTime": {
			reason:  "the age is unknown",
			content: `{"url":"https://user:xxxxx@updates.example.com/graph","channel":"eus-4.18","architecture":"amd64","graph":{}}`,
		},
		"Large": {reason: "a file that is too large", content: strings.Repeat(" ", 18<<20)},
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
	f.Add([]byte(
		`{"url":"https://user:xxxxx@updates.example.com/graph","channel":"eus-4.18","architecture":"amd64","time":"2026-01-02T03:04:05Z","graph":{}}`))
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
