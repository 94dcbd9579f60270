// Package layout answers: do the packages import each other in one direction, and are they tested?
package layout_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	module = "github.com/openshift/update-preflight/"
	sdk    = "preflight-sdk"
)

// listed has the required fields of the output of "go list -json".
type listed struct {
	ImportPath   string   `json:"ImportPath"`
	Imports      []string `json:"Imports"`
	TestImports  []string `json:"TestImports"`
	XTestImports []string `json:"XTestImports"`
}

// TestOrder checks the order of order.txt: an import of a package that is not
// above its importer fails, and so does a package that has no line.
func TestOrder(t *testing.T) {
	order := readOrder(t)
	seen := map[string]bool{}
	for _, p := range product(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		line, ok := order[name]
		if !ok {
			t.Errorf("package %s is not in order.txt: add it below the packages that it imports", name)
			continue
		}
		seen[name] = true
		for _, imported := range own(p.Imports) {
			if at, ok := order[imported]; !ok || at >= line {
				t.Errorf("package %s (line %d of order.txt) imports %s (line %d): a package imports only packages above it", name, line, imported, at)
			}
		}
	}
	for name := range order {
		if !seen[name] && !ofSDK(name) {
			t.Errorf("order.txt names package %s, which does not exist", name)
		}
	}
}

// ofSDK reports whether a package belongs to the SDK, which is a separate module.
func ofSDK(name string) bool {
	sources, err := filepath.Glob(filepath.Join("../..", name, "*.go"))
	return wing(name) == sdk && err == nil && len(sources) > 0
}

// TestTestsFollowTheWings checks the direction between the wings for tests, too: a test
// of collector that imports runner belongs to runner.
func TestTestsFollowTheWings(t *testing.T) {
	wings := map[string]int{sdk: 0, "signature": 1, "collector": 2, "runner": 3, "cmd": 4}
	for _, p := range product(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, imported := range own(append(p.TestImports, p.XTestImports...)) {
			at, ok := wings[wing(imported)]
			if ok && at > wings[wing(name)] {
				t.Errorf("a test of %s imports %s: a test imports only packages of its own wing and of those below", name, imported)
			}
		}
	}
}

// TestReadmes checks that the README of a wing names each of its packages.
func TestReadmes(t *testing.T) {
	for _, root := range []string{"collector", "runner", "cmd/oc-preflight"} {
		text, err := os.ReadFile(filepath.Join("../..", root, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range product(t) {
			name, ok := strings.CutPrefix(strings.TrimPrefix(p.ImportPath, module), root+"/")
			if ok && !strings.Contains(string(text), "| `"+name+"` |") {
				t.Errorf("%s/README.md has no row for %s", root, name)
			}
		}
	}
}

// own returns the packages of this repository among imports, without the module.
func own(imports []string) []string {
	var names []string
	for _, path := range imports {
		if name, ok := strings.CutPrefix(path, module); ok {
			names = append(names, name)
		}
	}
	return names
}

func wing(name string) string {
	first, _, _ := strings.Cut(name, "/")
	return first
}

// readOrder maps each package of order.txt to its line.
func readOrder(t *testing.T) map[string]int {
	t.Helper()
	file, err := os.Open("order.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	order := map[string]int{}
	scanner := bufio.NewScanner(file)
	for line := 1; scanner.Scan(); line++ {
		text, _, _ := strings.Cut(scanner.Text(), "#")
		for name := range strings.FieldsSeq(text) {
			if first, ok := order[name]; ok {
				t.Errorf("order.txt names %s in line %d and in line %d", name, first, line)
			}
			order[name] = line
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return order
}

// product returns the packages of the wings that are in this module.
func product(t *testing.T) []listed {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports",
		module+"signature/...", module+"collector/...", module+"runner/...", module+"cmd/...")
	command.Dir = "../.."
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		packages = append(packages, p)
	}
}
