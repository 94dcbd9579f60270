package modules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// Publish adds a version of the module to the module proxy in the directory
// proxy, in the layout of https://go.dev/ref/mod#goproxy-protocol. The content
// is that of the working tree of root: all files that git tracks or would add.
// GOPROXY=file://DIRECTORY makes the Go tool use it.
func (m Module) Publish(ctx context.Context, root, proxy, version string) error {
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	dir := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text, err := m.File.Format()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"list":            []byte(version + "\n"),
		version + ".info": fmt.Appendf(nil, `{"Version":%q,"Time":"2026-01-31T10:00:00Z"}`, version),
		version + ".mod":  text,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	files, err := m.files(ctx, root)
	if err != nil {
		return err
	}
	archive, err := os.Create(filepath.Join(dir, version+".zip")) //nolint:gosec // in the caller's directory
	if err != nil {
		return err
	}
	return errors.Join(zip.Create(archive, module.Version{Path: m.Path, Version: version}, files), archive.Close())
}

// files lists the files of the module as its archive has them: those of nested
// modules are left out.
func (m Module) files(ctx context.Context, root string) ([]zip.File, error) {
	dir := filepath.Join(root, filepath.FromSlash(m.Dir))
	git := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = dir
	var stderr bytes.Buffer
	git.Stderr = &stderr
	listed, err := git.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w: %s", dir, err, stderr.String())
	}
	all, err := All(dir)
	if err != nil {
		return nil, err
	}
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimRight(string(listed), "\x00"), "\x00") {
		candidate := file{root: dir, name: name}
		info, err := candidate.Lstat()
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted in the working tree
		}
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() && !nested(name, all) {
			files = append(files, candidate)
		}
	}
	return files, nil
}

// nested reports whether the file belongs to one of the modules other than the
// one in ".".
func nested(name string, modules []Module) bool {
	for _, other := range modules {
		if other.Dir != "." && strings.HasPrefix(name, other.Dir+"/") {
			return true
		}
	}
	return false
}

// file is a file of the working tree. It implements zip.File.
type file struct{ root, name string }

// Path implements zip.File.
func (f file) Path() string { return f.name }

// Lstat implements zip.File.
func (f file) Lstat() (os.FileInfo, error) { return os.Lstat(f.path()) }

// Open implements zip.File.
func (f file) Open() (io.ReadCloser, error) { return os.Open(f.path()) }

func (f file) path() string { return filepath.Join(f.root, filepath.FromSlash(f.name)) }
