package evidencesource_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/evidence"
	"github.com/openshift/update-preflight/runner/fleet/evidencesource"
	"github.com/openshift/update-preflight/runner/fleet/hub"
)

func write(tb testing.TB, path string, text []byte) {
	tb.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		tb.Fatal(err)
	}
}

func statement(tb testing.TB) []byte {
	tb.Helper()
	text, err := evidence.Encode(evidence.Statement{
		Cluster: "a", From: "4.18.9", To: "4.19.12", Release: "sha256:1111111111111111111111111111111111111111111111111111111111111111",
		Decision: afterupdate.Good, JudgedTime: "2027-01-02T11:00:00Z",
	})
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func items(tb testing.TB, source string) ([]evidence.Item, error) {
	tb.Helper()
	parsed, err := evidencesource.Parse(source)
	if err != nil {
		tb.Fatal(err)
	}
	return parsed.Read(tb.Context(), nil, hub.Query{})
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"hub": "hub", "./hub": "directory", "evidence": "directory", "configmap/ns/name": "ns/name", "configmap/ns/name.with.dots": "ns/name.with.dots",
		"": "refused", "configmap/ns": "refused", "configmap/": "refused", "configmap/ns/name/more": "refused", "configmap/NS/name": "refused",
	} {
		parsed, err := evidencesource.Parse(text)
		got := "directory"
		switch {
		case err != nil:
			got = "refused"
		case parsed.OnHub():
			got = "hub"
		case parsed.OnCluster():
			got = parsed.ConfigMap().String()
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// Whatever a directory has, each entry is a statement or is named with its problem.
func TestHostileDirectory(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret.json")
	write(t, outside, statement(t))
	write(t, filepath.Join(dir, "good.json"), statement(t))
	write(t, filepath.Join(dir, "text.json"), []byte("all is well"))
	write(t, filepath.Join(dir, "README.md"), []byte("# Evidence"))
	write(t, filepath.Join(dir, "huge.json"), bytes.Repeat([]byte(" "), 8<<20))
	for name, target := range map[string]string{"outside.json": outside, "device.json": "/dev/zero", "dangling.json": "nothing.json", "inside.json": "good.json"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "directory.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "..data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := items(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	known := evidence.Collect(found, nil)
	if len(known.Statements) != 2 || len(known.Refused) != 8 {
		t.Errorf("%d statements count, of good.json and inside.json; refused are %d", len(known.Statements), len(known.Refused))
	}
	refused := strings.Join(known.Refused, "\n")
	for _, want := range []string{
		"text.json: it is no statement", "README.md: its name does not end in .json", "huge.json: it is larger than 64 KiB", "outside.json: it cannot be opened",
		"device.json: it cannot be opened", "dangling.json: it cannot be opened", "directory.json: it cannot be opened", "pipe.json: it cannot be opened",
	} {
		if !strings.Contains(refused, want) {
			t.Errorf("%q is not in:\n%s", want, refused)
		}
	}
}

// The keys of clusters are files named by their IDs, or directories of them; each cluster has one, and each key one cluster.
func TestKeys(t *testing.T) {
	public := func() []byte {
		key, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		text, err := cryptoutils.MarshalPublicKeyToPEM(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	dir, other, same := t.TempDir(), t.TempDir(), public()
	write(t, filepath.Join(dir, "a.pub"), same)
	write(t, filepath.Join(dir, "b.pub"), public())
	write(t, filepath.Join(dir, "notes.txt"), []byte("keys"))
	write(t, filepath.Join(other, "a.pub"), public())
	write(t, filepath.Join(other, "c.pub"), same)
	for name, tc := range map[string]struct {
		reason string
		paths  []string
		known  string
		want   string
	}{
		"File":      {"one key", []string{filepath.Join(dir, "a.pub")}, "a", ""},
		"Files":     {"two keys", []string{filepath.Join(dir, "a.pub"), filepath.Join(dir, "b.pub")}, "ab", ""},
		"Directory": {"all of a directory", []string{dir}, "ab", ""},
		"Case":      {"an ID in any case of its letters", []string{filepath.Join(dir, "a.pub")}, "A", ""},
		"Twice":     {"which of two keys is that of the cluster", []string{dir, other}, "", "the cluster a has two keys"},
		"Shared":    {"each could sign for the other", []string{dir, filepath.Join(other, "c.pub")}, "", "the clusters a and c have the same key"},
		"NoKey":     {"a file with another name is no key", []string{filepath.Join(dir, "notes.txt")}, "", "cannot be read"},
		"Missing":   {"a key that does not exist", []string{filepath.Join(dir, "c.pub")}, "", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := hub.ReadKeys(t.Context(), tc.paths...)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%s: %v, want %q", tc.reason, err, tc.want)
			}
			for cluster := range strings.SplitSeq(tc.known, "") {
				if read.OfStatements()(cluster) == nil {
					t.Errorf("%s: no key of %s", tc.reason, cluster)
				}
			}
		})
	}
	if (hub.Keys{}).OfStatements() != nil {
		t.Error("no keys are keys of no cluster")
	}
}

func TestBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		fill   func(dir string)
		want   string
	}{
		"Empty": {"nothing is known", func(string) {}, ""},
		"Files": {"it has too many files", func(dir string) {
			for i := range evidencesource.MaxFiles + 1 {
				write(t, filepath.Join(dir, fmt.Sprintf("%d.json", i)), nil)
			}
		}, "more than 10000 files"},
		"Bytes": {"it is too large", func(dir string) {
			full := bytes.Repeat([]byte(" "), evidence.MaxText)
			for i := range evidencesource.MaxBytes/evidence.MaxText + 1 {
				write(t, filepath.Join(dir, fmt.Sprintf("%d.json", i)), full)
			}
		}, "more than 64 MiB"},
		"None": {"a directory that does not exist is no empty one", func(dir string) {
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
		}, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tc.fill(dir)
			_, err := items(t, dir)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
