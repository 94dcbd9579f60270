// Package modules answers: which Go modules does this repository have, and can
// those that it publishes be installed from a module proxy?
//
// The published modules are those of go.work. They require each other by
// version, as a module that is installed by name must, and go.work replaces
// these versions by the working tree. The remaining modules, below test/tools,
// pin programs and are never published.
package modules

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// workFile is the name of the workspace file, in the root of the repository.
const workFile = "go.work"

// Module is a Go module of the repository.
type Module struct {
	// Path is the module path.
	Path string
	// Dir is the directory of the module, slash-separated and relative to the
	// root of the repository; "." is the root.
	Dir string
	// File is the parsed go.mod file.
	File *modfile.File
}

// Published returns the modules that go.work in root lists, ordered by
// directory.
func Published(root string) ([]Module, error) {
	work, err := parseWork(root)
	if err != nil {
		return nil, err
	}
	var published []Module
	for _, use := range work.Use {
		module, err := parse(root, path.Clean(use.Path))
		if err != nil {
			return nil, err
		}
		published = append(published, module)
	}
	sortByDir(published)
	return published, nil
}

// All returns every module below root, ordered by directory. Directories that
// the Go tool ignores are not searched: those named testdata, and those that
// begin with "." or "_".
func All(root string) ([]Module, error) {
	var all []Module
	err := fs.WalkDir(os.DirFS(root), ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && ignored(entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || entry.Name() != "go.mod":
			return nil
		}
		module, err := parse(root, path.Dir(file))
		all = append(all, module)
		return err
	})
	sortByDir(all)
	return all, err
}

// ignored reports whether the Go tool ignores a directory of that name.
func ignored(name string) bool {
	return name == "testdata" || (name != "." && strings.HasPrefix(name, ".")) || strings.HasPrefix(name, "_")
}

func sortByDir(modules []Module) {
	slices.SortFunc(modules, func(a, b Module) int { return strings.Compare(a.Dir, b.Dir) })
}

func parseWork(root string) (*modfile.WorkFile, error) {
	file := filepath.Join(root, workFile)
	data, err := os.ReadFile(file) //nolint:gosec // the repository's own file
	if err != nil {
		return nil, err
	}
	return modfile.ParseWork(file, data, nil)
}

func parse(root, dir string) (Module, error) {
	file := filepath.Join(root, filepath.FromSlash(dir), "go.mod")
	data, err := os.ReadFile(file) //nolint:gosec // the repository's own file
	if err != nil {
		return Module{}, err
	}
	parsed, err := modfile.Parse(file, data, nil)
	if err != nil {
		return Module{}, err
	}
	if parsed.Module == nil {
		return Module{}, fmt.Errorf("%s: no module directive", file)
	}
	return Module{Path: parsed.Module.Mod.Path, Dir: dir, File: parsed}, nil
}

// siblings returns the modules of others that m requires, with the required
// version.
func (m Module) siblings(others []Module) map[string]string {
	siblings := map[string]string{}
	for _, require := range m.File.Require {
		if slices.ContainsFunc(others, func(other Module) bool { return other.Path == require.Mod.Path }) {
			siblings[require.Mod.Path] = require.Mod.Version
		}
	}
	return siblings
}
