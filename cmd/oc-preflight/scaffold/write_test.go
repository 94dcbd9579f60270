package scaffold_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/cmd/oc-preflight/scaffold"
)

// newDirectory returns a directory with files. A content that begins with "-> " is
// the target of a symbolic link.
func newDirectory(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for path, content := range files {
		path = filepath.Join(directory, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		write := func() error { return os.WriteFile(path, []byte(content), 0o600) }
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			write = func() error { return os.Symlink(target, path) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// list returns the paths of all entries below a directory.
func list(t *testing.T, directory string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(directory, func(path string, _ os.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestWrite(t *testing.T) {
	directory := newDirectory(t, map[string]string{"cmd/operator/main.go": "package main", "manifests/0000_50_deployment.yaml": "{}"})
	created := newScaffold(t, storageDriver)
	if err := created.Write(directory); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"cmd/operator/main.go": "package main", "manifests/0000_50_deployment.yaml": "{}"}
	for _, file := range created.Files {
		want[file.Path] = string(file.Content)
	}
	if diff := cmp.Diff(want, readAll(t, directory)); diff != "" {
		t.Errorf("want the new files and the existing ones (-want +got):\n%s", diff)
	}
}

// TestWriteNothing tests the cases in which no file is written.
func TestWriteNothing(t *testing.T) {
	const (
		check = "cmd/storage-driver-preflight/check.go"
		job   = "manifests/0000_50_cluster-foo-operator_11_preflight-job.yaml"
	)
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		exists []string
	}{
		"Files":            {"the error lists the existing files in order", map[string]string{job: "mine", check: "mine"}, []string{check, job}},
		"DanglingLink":     {"a dangling link is an existing file", map[string]string{check: "-> nowhere"}, []string{check}},
		"FileForDirectory": {"a file is not a directory", map[string]string{"cmd": "mine"}, nil},
		"LinkOutside":      {"files are not written outside of the repository", map[string]string{"cmd": "-> /"}, nil},
		"Halfway":          {"files that were written before a failure are removed", map[string]string{"manifests": "-> nowhere"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			directory := newDirectory(t, tc.files)
			before := list(t, directory)
			err := newScaffold(t, storageDriver).Write(directory)
			if err == nil {
				t.Fatalf("%s: want an error", tc.reason)
			}
			var got []string
			if exists, ok := errors.AsType[*scaffold.ExistsError](err); ok {
				got = exists.Paths
			}
			if diff := cmp.Diff(tc.exists, got); diff != "" {
				t.Errorf("%s, not %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if diff := cmp.Diff(before, list(t, directory)); diff != "" {
				t.Errorf("%s: the directory changed (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if err := newScaffold(t, storageDriver).Write(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a missing repository: want an error")
	}
}

func TestReadReferences(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		want   string
		fails  bool
	}{
		"Exists": {reason: "the content is not changed", files: map[string]string{"manifests/image-references": "tags"}, want: "tags"},
		"None":   {reason: "image-references is optional"},
		"TooLong": {
			reason: "the size is limited", files: map[string]string{"manifests/image-references": strings.Repeat(" ", 1<<20+1)},
			fails: true,
		},
		"Outside": {
			reason: "files outside of the repository are not read",
			files:  map[string]string{"manifests/image-references": "-> /etc/hostname"}, fails: true,
		},
		"Directory": {reason: "a directory is an error", files: map[string]string{"manifests/image-references/x": ""}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := scaffold.References(newDirectory(t, tc.files))
			if (err != nil) != tc.fails || string(got) != tc.want {
				t.Errorf("%s: want %q and an error: %t; got %q and %v", tc.reason, tc.want, tc.fails, got, err)
			}
		})
	}
	if _, err := scaffold.References(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a missing repository: want an error")
	}
}
