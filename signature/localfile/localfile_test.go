package localfile_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/openshift/update-preflight/signature/localfile"
)

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	path := func(name string) string { return filepath.Join(directory, name) }
	if err := errors.Join(
		os.WriteFile(path("file"), []byte("content"), 0o600),
		syscall.Mkfifo(path("pipe"), 0o600),
		os.Symlink("file", path("link")),
		os.Symlink("/dev/zero", path("device")),
		os.Mkdir(path("directory"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason string
		want   error
	}{
		"file":      {reason: "a regular file is opened"},
		"link":      {reason: "ConfigMap volumes consist of symbolic links"},
		"device":    {reason: "a device has no end", want: localfile.ErrNotRegular},
		"pipe":      {reason: "a pipe without a writer blocks", want: localfile.ErrNotRegular},
		"directory": {reason: "a directory has no content", want: localfile.ErrNotRegular},
		"missing":   {reason: "the error of a missing file is kept", want: os.ErrNotExist},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := localfile.OpenRegular(path(name))
			if !errors.Is(err, tc.want) {
				t.Fatalf("%s: OpenRegular returned %v, want %v", tc.reason, err, tc.want)
			}
			if err != nil {
				return
			}
			content, err := io.ReadAll(file)
			if err := errors.Join(err, file.Close()); err != nil || string(content) != "content" {
				t.Errorf("%s: read %q, %v", tc.reason, content, err)
			}
		})
	}
}

func TestRegularFileBelowARoot(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	root, err := os.OpenRoot(directory)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := syscall.Mkfifo(filepath.Join(directory, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := localfile.OpenRegularIn(root, "pipe"); !errors.Is(err, localfile.ErrNotRegular) {
		t.Errorf("OpenRegularIn of a pipe returned %v, want %v", err, localfile.ErrNotRegular)
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("while it opens a pipe without a writer", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := localfile.Open(ctx, pipe); !errors.Is(err, context.Canceled) {
			t.Errorf("Open returned %v, want %v", err, context.Canceled)
		}
	})
	t.Run("while it reads a pipe whose writer is silent", func(t *testing.T) {
		writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = writer.Close() }()
		ctx, cancel := context.WithCancel(t.Context())
		file, err := localfile.Open(ctx, pipe)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		read := make(chan error)
		go func() {
			_, err := file.Read(make([]byte, 1))
			read <- err
		}()
		cancel()
		if err := <-read; !errors.Is(err, os.ErrClosed) {
			t.Errorf("Read returned %v, want %v", err, os.ErrClosed)
		}
	})
}

// TestReadAll reads no more than the limit, and closes the file.
func TestReadAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]string{3: "con", 100: "content"} {
		file, err := localfile.OpenRegular(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := localfile.ReadAll(file, limit); string(got) != want || err != nil {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
		if err := file.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("the file is still open: %v", err)
		}
	}
}
