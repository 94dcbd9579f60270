package site_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/runner/site"
)

// newDirectory returns a directory with files. A content that begins with "-> " is the
// target of a symbolic link.
func newDirectory(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for file, content := range files {
		file = filepath.Join(directory, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		write := func() error { return os.WriteFile(file, []byte(content), 0o600) }
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			write = func() error { return os.Symlink(target, file) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// many are n files with an extension.
func many(n int, extension string) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("f%05d%s", i, extension)] = "{}"
	}
	return files
}

func TestAttacksByDirectory(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		want   []string
		err    string
	}{
		"Manifests": {
			reason: "the extensions are those of a release",
			files:  map[string]string{"a.yaml": "a", "b.yml": "b", "c.json": "c", "README.md": "d", "e.sh": "e"}, want: []string{"a.yaml", "b.yml", "c.json"},
		},
		"Below": {
			reason: "directories below are read, hidden ones are not",
			files:  map[string]string{"x/y/a.yaml": "a", ".git/b.yaml": "b", ".c.yaml": "c"}, want: []string{"x/y/a.yaml"},
		},
		"LinkWithin": {
			reason: "a link to a file of the directory is that file, as in a mounted ConfigMap",
			files:  map[string]string{"..data/a.yaml": "a", "a.yaml": "-> ..data/a.yaml"}, want: []string{"a.yaml"},
		},
		"LinkOutside": {
			reason: "no file outside of the directory is read",
			files:  map[string]string{"a.yaml": "-> /etc/hostname"}, err: "escapes",
		},
		"LinkToParent": {
			reason: "no file outside of the directory is read by a relative path",
			files:  map[string]string{"a.yaml": "-> ../../../../etc/hostname"}, err: "escapes",
		},
		"LinkToDirectory": {
			reason: "manifests behind a link would be lost",
			files:  map[string]string{"a.yaml": "a", "x/b.yaml": "b", "y": "-> x"}, err: `"y" is a link to a directory`,
		},
		"NotRegular": {
			reason: "a directory is no manifest",
			files:  map[string]string{"a.yaml": "a", "b.yaml/c.txt": "c", "d.yaml": "-> b.yaml"}, err: "not a regular file",
		},
		"TooManyEntries":   {reason: "10 000 files", files: many(10_000, ".txt"), err: "more than 1000 entries"},
		"TooManyManifests": {reason: "the manifests are counted, too", files: many(201, ".yaml"), err: "more than 200 manifests"},
		"TooDeep":          {reason: "the depth is bounded", files: map[string]string{"1/2/3/4/a.yaml": "a"}, err: "more than 4 levels deep"},
		"TooLarge":         {reason: "the error names the file", files: map[string]string{"big.yaml": strings.Repeat("#", 1<<20+1)}, err: `"big.yaml" has more than 1048576 bytes`},
		"TooMuch": {
			reason: "the total is bounded",
			files: func() map[string]string {
				files := map[string]string{}
				for i := range 5 {
					files[fmt.Sprintf("%d.yaml", i)] = strings.Repeat("#", 1<<20)
				}
				return files
			}(), err: "more than 4194304 bytes in total",
		},
		"Empty": {reason: "a directory without a manifest is an error, never ignored", files: map[string]string{"a.txt": "a"}, err: "no file is a manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			directory := newDirectory(t, tc.files)
			got, err := site.Directory(directory)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s: %v, want an error with %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(got.Files))); diff != "" || got.Name != directory || got.IsImage() {
				t.Errorf("%s: %q, (-want, +got):\n%s", tc.reason, got.Name, diff)
			}
		})
	}
	for name, path := range map[string]string{"Missing": filepath.Join(t.TempDir(), "missing"), "File": filepath.Join(newDirectory(t, map[string]string{"a.yaml": "a"}), "a.yaml")} {
		if _, err := site.Directory(path); err == nil {
			t.Errorf("%s: want an error for what is not a directory", name)
		}
	}
}

func directoryOf(t *testing.T, files map[string]string) site.Source {
	t.Helper()
	source, err := site.Directory(newDirectory(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return source
}

const pullSpec = "registry.example.com/checks@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestID(t *testing.T) {
	base := directoryOf(t, map[string]string{"a.yaml": "a", "b.yaml": "b"})
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		same   bool
	}{
		"Same":    {reason: "the name of the directory does not count", files: map[string]string{"a.yaml": "a", "b.yaml": "b", "README": "x"}, same: true},
		"Content": {reason: "other content is another check", files: map[string]string{"a.yaml": "a", "b.yaml": "c"}},
		"Name":    {reason: "the names of files are in messages and in the order of the checks", files: map[string]string{"a.yaml": "a", "c.yaml": "b"}},
		"Split":   {reason: "names and contents cannot be exchanged", files: map[string]string{"a.yaml": "a6 b.yaml 1 b", "b.yaml": ""}},
	} {
		if got := directoryOf(t, tc.files).ID(); (got == base.ID()) != tc.same {
			t.Errorf("%s (%s): %s and %s", name, tc.reason, got, base.ID())
		}
	}
	image, err := site.Image(pullSpec)
	if err != nil || image.ID() != pullSpec || !image.IsImage() {
		t.Errorf("an image is its pull spec: %+v, %v", image, err)
	}
	forward, backward := []site.Source{base, image, base}, []site.Source{image, base}
	if diff := cmp.Diff(site.IDs(forward), site.IDs(backward)); diff != "" {
		t.Errorf("the order of the request and repetitions do not count: %s", diff)
	}
	if diff := cmp.Diff(site.Canonical(forward), site.Canonical(backward)); diff != "" {
		t.Errorf("the order of the checks does not depend on that of the request: %s", diff)
	}
}

func TestImage(t *testing.T) {
	for name, tc := range map[string]struct{ reason, pullSpec string }{
		"Tag":     {"a tag is moved", "registry.example.com/checks:v1"},
		"Both":    {"a tag beside the digest has no meaning", "registry.example.com/checks:v1@" + strings.SplitN(pullSpec, "@", 2)[1]},
		"Short":   {"an invalid digest", "registry.example.com/checks@sha256:abc"},
		"NoPlace": {"a name without a registry", "checks"},
		"Text":    {"any text", "Not A Pull Spec"},
	} {
		if got, err := site.Image(tc.pullSpec); err == nil || !strings.Contains(err.Error(), tc.pullSpec) {
			t.Errorf("%s (%s): %+v, %v; want an error with the pull spec", name, tc.reason, got, err)
		}
	}
}
