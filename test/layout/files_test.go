package layout_test

import (
	"fmt"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// references are the names that a file of a package uses of the others: the user, then
// the file that declares the name.
type references map[string]map[string][]string

// TestFilesAreInOrder fails where files of a package refer to each other, also through other
// files: a package can be read file by file, each after those that it uses.
func TestFilesAreInOrder(t *testing.T) {
	config := &packages.Config{
		Context: t.Context(), Dir: "../..",
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedExportFile | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
	}
	loaded, err := packages.Load(config, "./cmd/...", "./runner/...", "./runner/trigger/cvo/...", "./collector/...", "./signature/...", "./preflight-sdk/...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range loaded {
		for _, failure := range p.Errors {
			t.Error(failure)
		}
		found := referencesOf(p)
		for _, files := range found.cycles() {
			t.Errorf("files of package %s refer to each other: %s\n%s", strings.TrimPrefix(p.PkgPath, module), strings.Join(files, " "), found.among(files))
		}
	}
}

func referencesOf(p *packages.Package) references {
	found := references{}
	for use, object := range p.TypesInfo.Uses {
		if object.Pkg() != p.Types {
			continue
		}
		user, declaring := filepath.Base(p.Fset.Position(use.Pos()).Filename), filepath.Base(p.Fset.Position(object.Pos()).Filename)
		if _, ok := object.(*types.PkgName); ok || user == declaring {
			continue
		}
		if found[user] == nil {
			found[user] = map[string][]string{}
		}
		if !slices.Contains(found[user][declaring], object.Name()) {
			found[user][declaring] = append(found[user][declaring], object.Name())
		}
	}
	return found
}

// cycles returns the largest groups of files in which each file uses, directly or through
// others, each other file.
func (r references) cycles() [][]string {
	var groups [][]string
	uses := map[string]map[string]bool{}
	for file := range r {
		uses[file] = r.reachable(file)
	}
	for _, file := range slices.Sorted(maps.Keys(r)) {
		group := []string{file}
		for other := range uses[file] {
			if other != file && uses[other][file] {
				group = append(group, other)
			}
		}
		if slices.Sort(group); len(group) > 1 && group[0] == file {
			groups = append(groups, group)
		}
	}
	return groups
}

// reachable returns the files that a file uses, directly or through others.
func (r references) reachable(file string) map[string]bool {
	seen := map[string]bool{}
	for next := []string{file}; len(next) > 0; next = next[1:] {
		for used := range r[next[0]] {
			if !seen[used] {
				seen[used] = true
				next = append(next, used)
			}
		}
	}
	return seen
}

// among prints the references among files.
func (r references) among(files []string) string {
	var lines strings.Builder
	for _, user := range files {
		for _, declaring := range files {
			if names := slices.Sorted(slices.Values(r[user][declaring])); len(names) > 0 {
				fmt.Fprintf(&lines, "\t%s uses of %s: %s\n", user, declaring, strings.Join(names, " "))
			}
		}
	}
	return lines.String()
}
