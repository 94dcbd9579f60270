package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Change replaces a text of a source file of the Go standard library.
type Change struct {
	// File is the path of the file, relative to the directory of the standard library.
	File string
	// Old is the text that is replaced: the file has it exactly once. If it is empty, there is
	// no such file, and New is its content.
	Old, New string
}

// writeOverlay writes the changed files to a temporary directory, with the list of them that
// "go build -overlay" reads: no source file is modified. Without changes there is no list.
func writeOverlay(ctx context.Context, changes []Change) (list string, remove func(), err error) {
	if len(changes) == 0 {
		return "", func() {}, nil
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", nil, fmt.Errorf("find the standard library: %w", err)
	}
	directory, err := os.MkdirTemp("", "preflight-overlay-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(directory) } // at most a temporary directory is left
	list, err = writeChanges(directory, filepath.Join(strings.TrimSpace(string(root)), "src"), changes)
	if err != nil {
		remove()
	}
	return list, remove, err
}

// writeChanges writes the changed files of the library into a directory.
func writeChanges(directory, library string, changes []Change) (list string, err error) {
	replace := map[string]string{}
	for i, c := range changes {
		file := filepath.Join(library, filepath.FromSlash(c.File))
		text, err := c.apply(file)
		if err != nil {
			return "", err
		}
		replace[file] = filepath.Join(directory, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(replace[file], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(directory, "overlay.json")
	return list, os.WriteFile(list, content, 0o600)
}

// apply returns the changed text of a file.
func (c Change) apply(file string) (string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // a file of the standard library
	if c.Old == "" && errors.Is(err, os.ErrNotExist) {
		return c.New, nil
	}
	if err != nil {
		return "", err
	}
	if c.Old == "" || strings.Count(string(text), c.Old) != 1 {
		return "", fmt.Errorf("change %s: want %q in it exactly once", file, c.Old)
	}
	return strings.Replace(string(text), c.Old, c.New, 1), nil
}
