package modules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Tidy returns the changes of "go mod tidy" to go.mod and go.sum of the
// module: the new content by file name, only of files that would change.
// Siblings, which may not be published yet, are taken from the working tree.
func (m Module) Tidy(ctx context.Context, root string, published []Module) (map[string][]byte, error) {
	return m.change(ctx, root, published, "mod", "tidy")
}

// Get is Tidy for "go get" of packages or modules, each as PATH@VERSION.
func (m Module) Get(ctx context.Context, root string, published []Module, queries ...string) (map[string][]byte, error) {
	return m.change(ctx, root, published, append([]string{"get"}, queries...)...)
}

// change returns the files that a command of the Go tool changes.
func (m Module) change(ctx context.Context, root string, published []Module, args ...string) (changed map[string][]byte, err error) {
	scratch, err := os.MkdirTemp("", "preflight-tidy-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	dir := filepath.Join(root, filepath.FromSlash(m.Dir))
	if err := m.copyWithReplacements(scratch, root, published); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, "go", args...) //nolint:gosec // our own arguments
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-modfile="+filepath.Join(scratch, "go.mod"))
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go %s in %s: %w: %s", strings.Join(args, " "), m.Dir, err, output)
	}
	if err := m.removeReplacements(scratch, published); err != nil {
		return nil, err
	}
	return differing(scratch, dir)
}

// copyWithReplacements writes copies of go.mod, with a replacement for each sibling, and of
// go.sum to scratch.
func (m Module) copyWithReplacements(scratch, root string, published []Module) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	copied, err := parse(root, m.Dir)
	if err != nil {
		return err
	}
	siblings := m.siblings(published)
	for _, sibling := range published {
		version, required := siblings[sibling.Path]
		if !required {
			continue
		}
		if err := copied.File.AddReplace(sibling.Path, version, filepath.Join(root, filepath.FromSlash(sibling.Dir)), ""); err != nil {
			return err
		}
	}
	if err := copied.write(scratch); err != nil {
		return err
	}
	sums, err := readIfPresent(filepath.Join(root, filepath.FromSlash(m.Dir), "go.sum"))
	if err != nil || sums == nil {
		return err
	}
	return os.WriteFile(filepath.Join(scratch, "go.sum"), sums, 0o600)
}

// removeReplacements removes the replacements that copyWithReplacements has added.
func (m Module) removeReplacements(scratch string, published []Module) error {
	tidied, err := parse(scratch, ".")
	if err != nil {
		return err
	}
	for path, version := range m.siblings(published) {
		if err := tidied.File.DropReplace(path, version); err != nil {
			return err
		}
	}
	return tidied.write(scratch)
}

// write writes go.mod to dir.
func (m Module) write(dir string) error {
	m.File.Cleanup()
	text, err := m.File.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o600)
}

// differing returns the files of scratch whose content is not that of dir.
func differing(scratch, dir string) (map[string][]byte, error) {
	changed := map[string][]byte{}
	for _, name := range []string{"go.mod", "go.sum"} {
		tidied, err := readIfPresent(filepath.Join(scratch, name))
		if err != nil {
			return nil, err
		}
		current, err := readIfPresent(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(tidied, current) {
			changed[name] = tidied
		}
	}
	return changed, nil
}

// readIfPresent returns nil for a file that does not exist.
func readIfPresent(path string) ([]byte, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the repository's own file
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return data, err
}
