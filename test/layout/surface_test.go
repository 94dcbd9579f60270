package layout_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// maxSurface bounds the sum of the surfaces of all packages. A change that needs more raises it, and states why: errors
// have their commands as package finding has them.
const maxSurface = 50_000 // 49 200 without the page and the console of the controller: they read records, and write documents and objects

// surface is how much of the product may depend on what a package exports: its importers times its exported names.
// Lines are only printed: they say how long a package takes to read, not how hard it is to change.
type surface struct {
	name                       string
	lines, importers, exported int
}

func (s surface) size() int { return s.importers * s.exported }

// TestSurface checks that the product does not grow together: "go test -v -run Surface" prints the largest surfaces.
func TestSurface(t *testing.T) {
	importers := map[string]int{}
	for _, p := range product(t) {
		for _, imported := range own(p.Imports) {
			importers[imported]++
		}
	}
	var all []surface
	sum := 0
	for dir, files := range sources(t) {
		each := surface{name: dir, importers: importers[dir]}
		for _, path := range files {
			lines, exported := measure(t, path)
			each.lines += lines
			each.exported += exported
		}
		all = append(all, each)
		sum += each.size()
	}
	slices.SortFunc(all, func(a, b surface) int { return cmp.Compare(b.size(), a.size()) })
	const shown = 20
	for _, each := range all[:shown] {
		t.Logf("%-40s %6d = %3d importers x %3d exported names; %5d lines", each.name, each.size(), each.importers, each.exported, each.lines)
	}
	t.Logf("%d packages, %d together", len(all), sum)
	if sum > maxSurface {
		t.Errorf("the surfaces of all packages are %d together, more than %d: export less, or raise the limit and state why", sum, maxSurface)
	}
}

// measure counts the lines of a file, and the names that it exports: of functions, methods, types and values.
func measure(t *testing.T, path string) (lines, exported int) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			exported += exportedOf(d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					exported += exportedOf(s.Name)
				case *ast.ValueSpec:
					exported += exportedOf(s.Names...)
				}
			}
		}
	}
	return files.Position(file.FileEnd).Line, exported
}

func exportedOf(names ...*ast.Ident) int {
	count := 0
	for _, name := range names {
		if name.IsExported() {
			count++
		}
	}
	return count
}
