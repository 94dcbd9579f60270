package writing_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/archive/packaging"
	"github.com/openshift/update-preflight/collector/archive/writing"
)

// fill writes a file and one that is dropped.
func fill(t *testing.T, w *writing.Writer) {
	t.Helper()
	err := w.Begin("a/b.yaml")
	_, writeErr := io.WriteString(w, "b")
	if err := errors.Join(err, writeErr, w.End(), w.Begin("a/c.yaml"), w.Drop()); err != nil {
		t.Fatal(err)
	}
}

// names are those in the directory, also hidden ones.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

func TestWriter(t *testing.T) {
	for name, prefix := range map[string]string{"x.tar.gz": "x/", "x.tgz": "x/", "x": ""} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			w, err := writing.Create(path, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			fill(t, w)
			size, err := w.Commit()
			if err := errors.Join(err, w.Close()); err != nil || size == 0 {
				t.Fatalf("size %d, %v", size, err)
			}
			found := map[string]string{}
			err = packaging.Walk(context.Background(), path, func(file string, _ int64, content io.Reader) error {
				text, err := io.ReadAll(content)
				found[file] = string(text)
				return err
			}, func(entry packaging.Entry) { t.Errorf("%s: %s", entry.Path, entry.Cause) })
			if diff := cmp.Diff(map[string]string{prefix + "a/b.yaml": "b"}, found); err != nil || diff != "" {
				t.Errorf("%v; -want, +got:\n%s", err, diff)
			}
			if diff := cmp.Diff([]string{name}, names(t, dir)); diff != "" {
				t.Errorf("beside the archive; -want, +got:\n%s", diff)
			}
			if _, err := writing.Create(path, time.Now()); !errors.Is(err, writing.ErrExists) {
				t.Errorf("a second one: %v", err)
			}
		})
	}
}

func TestNothingIsLeft(t *testing.T) {
	for _, name := range []string{"x.tar.gz", "x"} {
		for state, do := range map[string]func(*testing.T, *writing.Writer){
			"Complete":  fill,
			"InAFile":   func(t *testing.T, w *writing.Writer) { t.Helper(); fill(t, w); _ = w.Begin("d") },
			"WrongPath": func(t *testing.T, w *writing.Writer) { t.Helper(); checkPaths(t, w) },
		} {
			t.Run(name+state, func(t *testing.T) {
				dir := t.TempDir()
				w, err := writing.Create(filepath.Join(dir, name), time.Now())
				if err != nil {
					t.Fatal(err)
				}
				do(t, w)
				if err := errors.Join(w.Close(), w.Close()); err != nil {
					t.Error(err)
				}
				if left := names(t, dir); len(left) > 0 {
					t.Errorf("left %q", left)
				}
			})
		}
	}
}

func checkPaths(t *testing.T, w *writing.Writer) {
	t.Helper()
	for _, path := range []string{"", "/a", "../a", "a/../../b"} {
		if err := w.Begin(path); err == nil {
			t.Errorf("the path %q is accepted", path)
		}
	}
}

// A file that was made at the path meanwhile is not overwritten.
func TestMadeMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.tar.gz")
	w, err := writing.Create(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = w.Commit()
	if text, readErr := os.ReadFile(path); !errors.Is(err, writing.ErrExists) || readErr != nil || string(text) != "other" {
		t.Errorf("got %v; the file has %q, %v", err, text, readErr)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
