// Surface prints how much of the product may depend on what its packages export, for each wing: its budget, its surface,
// and the change since the last release. Nothing fails: a budget that is exceeded is a reason to read the largest
// packages, which it prints as well.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

const module = "github.com/openshift/update-preflight/"

// budgets are the surfaces that the wings keep to. Raise one in the change that needs it.
func budgets() map[string]int {
	return map[string]int{"preflight-sdk": 2_700, "signature": 500, "collector": 35_000, "runner": 8_800, "cmd": 4_200}
}

// surface is how many uses of a package are possible: its importers times the names that it exports.
type surface struct {
	name                string
	importers, exported int
}

func (s surface) size() int { return s.importers * s.exported }

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run prints the surfaces of the commit that is checked out.
func run(ctx context.Context, out io.Writer) error {
	now, err := at(ctx, "HEAD")
	if err != nil {
		return err
	}
	var before []surface
	release, err := git(ctx, "describe", "--tags", "--abbrev=0", "--match", "v*")
	tag := strings.TrimSpace(string(release))
	if err == nil {
		if before, err = at(ctx, tag); err != nil {
			return err
		}
	}
	write(out, now, before, tag)
	return nil
}

// write prints the wings, and the packages with the largest surfaces. Without a tag there was no release.
func write(out io.Writer, now, before []surface, tag string) {
	sums, earlier := sum(now), sum(before)
	for _, wing := range slices.Sorted(maps.Keys(budgets())) {
		change := ""
		if tag != "" {
			change = fmt.Sprintf("  %+6d since %s", sums[wing]-earlier[wing], tag)
		}
		fmt.Fprintf(out, "%-14s %6d of %6d%s\n", wing, sums[wing], budgets()[wing], change)
	}
	slices.SortFunc(now, func(a, b surface) int { return cmp.Or(cmp.Compare(b.size(), a.size()), cmp.Compare(a.name, b.name)) })
	const shown = 12
	fmt.Fprintln(out)
	for _, each := range now[:min(shown, len(now))] {
		fmt.Fprintf(out, "%-34s %6d = %3d importers x %3d exported names\n", each.name, each.size(), each.importers, each.exported)
	}
}

func sum(all []surface) map[string]int {
	wings := map[string]int{}
	for _, each := range all {
		wing, _, _ := strings.Cut(each.name, "/")
		wings[wing] += each.size()
	}
	return wings
}

// at returns the surfaces of the packages of a commit.
func at(ctx context.Context, commit string) ([]surface, error) {
	archive, err := git(ctx, "archive", "--format=tar", commit)
	if err != nil {
		return nil, err
	}
	files := map[string]*ast.File{}
	for content := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := content.Next()
		if errors.Is(err, io.EOF) {
			return measure(files), nil
		}
		if err != nil {
			return nil, err
		}
		if !ofProduct(header.Name) {
			continue
		}
		if files[header.Name], err = parser.ParseFile(token.NewFileSet(), header.Name, content, 0); err != nil {
			return nil, err
		}
	}
}

func ofProduct(name string) bool {
	wing, _, _ := strings.Cut(name, "/")
	_, known := budgets()[wing]
	return known && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
		!strings.HasPrefix(path.Base(name), "zz_generated") && !strings.Contains(name, "/testdata/")
}

// measure counts what each package exports, and the packages that import it.
func measure(files map[string]*ast.File) []surface {
	exported, importers := map[string]int{}, map[string]map[string]bool{}
	for name, file := range files {
		dir := path.Dir(name)
		exported[dir] += exportedNames(file)
		for _, each := range file.Imports {
			imported, own := strings.CutPrefix(strings.Trim(each.Path.Value, `"`), module)
			if !own {
				continue
			}
			if importers[imported] == nil {
				importers[imported] = map[string]bool{}
			}
			importers[imported][dir] = true
		}
	}
	var all []surface
	for dir, names := range exported {
		all = append(all, surface{name: dir, importers: len(importers[dir]), exported: names})
	}
	return all
}

// exportedNames counts the functions, methods, types and values that a file exports.
func exportedNames(file *ast.File) int {
	count := 0
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			count += exportedOf(d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					count += exportedOf(s.Name)
				case *ast.ValueSpec:
					count += exportedOf(s.Names...)
				}
			}
		}
	}
	return count
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

func git(ctx context.Context, args ...string) ([]byte, error) {
	output, err := exec.CommandContext(ctx, "git", args...).Output() //nolint:gosec // the arguments are constants and a tag
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return output, nil
}
