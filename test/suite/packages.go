// Package suite answers: in which order, with which flags and how many at a time
// do the tests run, so that the first results come early and no core is idle?
package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// module is the path of the root module.
const module = "github.com/openshift/update-preflight"

// Package is a package that has tests.
type Package struct {
	// Path is the import path.
	Path string
	// Cluster reports whether its tests start a cluster.
	Cluster bool
	// Concurrent reports whether its own code uses goroutines, or that of a package without
	// tests that it imports, so that its tests run under the race detector.
	Concurrent bool
	// Client reports whether its tests are built from the client of Kubernetes, whose two thousand packages
	// are compiled again for the race detector.
	Client bool
	// folders are those of the packages that its tests are built from, in this workspace:
	// relative to its root, with slashes.
	folders map[string]bool
	// near are the folders whose nearest tests, from below, are among those of this package: its own,
	// those that it imports, and beyond these what packages without tests import.
	near map[string]bool
	// imports are the import paths of the package, and of its tests.
	imports []string
}

// listed is a package in the output of "go list -json -test". The package for
// which a test variant was compiled is ForTest.
type listed struct {
	ImportPath string   `json:"ImportPath"`
	ForTest    string   `json:"ForTest"`
	Imports    []string `json:"Imports"`
	Deps       []string `json:"Deps"`
}

// List returns the packages with tests of the modules of the workspace in root,
// by import path.
func List(ctx context.Context, root string) ([]Package, error) {
	patterns, err := goTool(ctx, root, "list", "-m", "-f", "{{.Dir}}/...")
	if err != nil {
		return nil, err
	}
	output, err := goTool(ctx, root, append([]string{"list", "-test", "-json=ImportPath,ForTest,Imports,Deps"},
		strings.Fields(string(patterns))...)...)
	if err != nil {
		return nil, err
	}
	return parse(bytes.NewReader(output))
}

// parse reads the output of "go list -json -test".
func parse(output io.Reader) ([]Package, error) {
	imports, packages := map[string][]string{}, map[string]*Package{}
	for decoder := json.NewDecoder(output); ; {
		var found listed
		if err := decoder.Decode(&found); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if found.ForTest == "" {
			imports[found.ImportPath] = found.Imports
			continue
		}
		if packages[found.ForTest] == nil {
			packages[found.ForTest] = &Package{Path: found.ForTest, folders: map[string]bool{folderOf(found.ForTest): true}}
		}
		packages[found.ForTest].dependOn(found.Deps)
		packages[found.ForTest].imports = append(packages[found.ForTest].imports, found.Imports...)
	}
	var all []Package
	for _, tested := range packages {
		tested.Concurrent = isConcurrent(tested.Path, imports, packages)
		tested.near = map[string]bool{folderOf(tested.Path): true}
		tested.approach(slices.Concat(tested.imports, imports[tested.Path]), imports, packages)
		all = append(all, *tested)
	}
	slices.SortFunc(all, func(a, b Package) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// isConcurrent reports whether a package uses goroutines, or one that it imports and that
// has no tests of its own.
func isConcurrent(path string, imports map[string][]string, tested map[string]*Package) bool {
	return slices.ContainsFunc(imports[path], func(imported string) bool {
		if imported == "sync" || imported == "golang.org/x/sync/errgroup" {
			return true
		}
		return strings.HasPrefix(imported, module+"/") && tested[imported] == nil && isConcurrent(imported, imports, tested)
	})
}

// approach adds these packages to the near folders, and what they import if they have no tests. Servers
// and releases for tests have no promise of their own, so what is below them is as near.
func (p *Package) approach(paths []string, imports map[string][]string, tested map[string]*Package) {
	for _, imported := range paths {
		imported, _, _ = strings.Cut(imported, " ")
		folder := folderOf(imported)
		if !ofWorkspace(imported) || p.near[folder] {
			continue
		}
		p.near[folder] = true
		if tested[imported] == nil || strings.HasPrefix(folder, "test/") {
			p.approach(imports[imported], imports, tested)
		}
	}
}

// ofWorkspace reports whether a package is one of the modules of the workspace.
func ofWorkspace(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// dependOn adds the packages that a variant of the tests is built from.
func (p *Package) dependOn(paths []string) {
	for _, dependency := range paths {
		if path, _, _ := strings.Cut(dependency, " "); ofWorkspace(path) {
			p.folders[folderOf(path)] = true
		}
	}
	p.Cluster = p.Cluster || p.Path == clusterPackage || slices.Contains(paths, clusterPackage)
	p.Client = p.Client || slices.Contains(paths, clientPackage)
}

// folderOf returns the folder of a package, relative to the root of the workspace. The
// modules of the workspace are in the folders that their paths name.
func folderOf(path string) string {
	if folder, ok := strings.CutPrefix(path, module+"/"); ok {
		return folder
	}
	return "."
}

// clusterPackage starts clusters, and clientPackage is the client of Kubernetes.
const (
	clusterPackage = module + "/test/cluster"
	clientPackage  = "k8s.io/client-go/kubernetes"
)

func goTool(ctx context.Context, dir string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...) //nolint:gosec // our own arguments
	command.Dir = dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return output, nil
}
