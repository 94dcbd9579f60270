package cache_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openshift/update-preflight/runner/cache"
)

// TestAttacks reads a shared directory in which another user planted files.
func TestAttacks(t *testing.T) {
	content := []byte("the stored content")
	hash := strings.TrimPrefix(digestOf(content), "sha256:")
	for name, tc := range map[string]struct {
		reason string
		// plant prepares the cache directory.
		plant func(t *testing.T, path string)
	}{
		"LinkedDirectory": {
			reason: "the files of a directory that the cache is linked to are not deleted to enforce its limit",
			plant: func(t *testing.T, path string) {
				t.Helper()
				foreign := t.TempDir()
				for _, private := range []string{"id_ed25519", "notes"} {
					file := filepath.Join(foreign, private)
					if err := os.WriteFile(file, make([]byte, 2*most), 0o600); err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() {
						if _, err := os.Stat(file); err != nil {
							t.Errorf("a file that is not of the cache was deleted: %v", err)
						}
					})
				}
				if err := os.Symlink(foreign, filepath.Join(path, "sha256")); err != nil {
					t.Fatal(err)
				}
			},
		},
		"Pipe": {
			reason: "a named pipe without a writer is not opened for reading",
			plant:  func(t *testing.T, path string) { t.Helper(); plant(t, path, hash, fifo) },
		},
		"LinkToPipe": {
			reason: "a link within the directory to a named pipe does not block either",
			plant: func(t *testing.T, path string) {
				t.Helper()
				plant(t, path, "pipe", fifo)
				plant(t, path, hash, func(file string) error { return os.Symlink("pipe", file) })
			},
		},
		"LinkToFile": {
			reason: "a link to a file outside of the directory is not read",
			plant: func(t *testing.T, path string) {
				t.Helper()
				outside := filepath.Join(t.TempDir(), "outside")
				if err := os.WriteFile(outside, content, 0o600); err != nil {
					t.Fatal(err)
				}
				plant(t, path, hash, func(file string) error { return os.Symlink(outside, file) })
			},
		},
		"OtherContent": {
			reason: "content that another user wrote is hashed",
			plant: func(t *testing.T, path string) {
				t.Helper()
				plant(t, path, hash, func(file string) error { return os.WriteFile(file, []byte("other content"), 0o666) })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			if err := os.Chmod(path, 0o777); err != nil {
				t.Fatal(err)
			}
			tc.plant(t, path)
			directory := open(t, path, most)
			if got, ok := directory.Get(digestOf(content), most); ok {
				t.Errorf("%s: got %q before it was stored", tc.reason, got)
			}
			put(t, directory, content)
			if got, ok := directory.Get(digestOf(content), most); !ok || !bytes.Equal(got, content) {
				t.Errorf("%s: got %q, %t after it was stored", tc.reason, got, ok)
			}
		})
	}
}

// TestAttacksWhileRead replaces a file between every check of it and its use.
func TestAttacksWhileRead(t *testing.T) {
	path, content := t.TempDir(), []byte("the stored content")
	directory := open(t, path, most)
	file := filepath.Join(path, "sha256", strings.TrimPrefix(digestOf(content), "sha256:"))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			for _, kind := range []func(string) error{
				fifo, func(name string) error { return os.Symlink("/dev/zero", name) },
				func(name string) error { return os.WriteFile(name, content, 0o600) },
			} {
				select {
				case <-stop:
					return
				default:
				}
				// Errors are expected: the cache deletes files that do not match.
				_ = kind(file + ".new")
				_ = os.Rename(file+".new", file)
				_ = os.Remove(file + ".new")
			}
		}
	}()
	for range 2_000 {
		if got, ok := get(t, directory, digestOf(content)); ok && !bytes.Equal(got, content) {
			t.Fatalf("got %q", got)
		}
	}
	close(stop)
	<-stopped
}

// get fails the test if a file blocks the read.
func get(t *testing.T, directory *cache.Directory, digest string) ([]byte, bool) {
	t.Helper()
	blocked := time.AfterFunc(time.Minute, func() { panic("reading the cache blocks") })
	defer blocked.Stop()
	return directory.Get(digest, most)
}

func plant(t *testing.T, path, name string, create func(string) error) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(path, "sha256"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := create(filepath.Join(path, "sha256", name)); err != nil {
		t.Fatal(err)
	}
}

func fifo(name string) error { return syscall.Mkfifo(name, 0o666) }
