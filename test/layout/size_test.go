package layout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The limits of a type, with the members of the types that it embeds.
const maxMethods, maxFields = 15, 12

// wide are the types with more methods or fields, with the reason.
func wide() map[string]string {
	return map[string]string{
		"preflight-sdk.T":            "the API of an author has the shape of testing.T, and its methods stay",
		"collector/snapshot.Cluster": "each method reads one resource once for all checks",
		"runner/record.Record":       "a record is its intent and what became of it, and both are public",
		"runner/payload.Release":     "it is the release of the signature with what the image says of it",

		"collector/finding.Finding":             "its fields are those of the JSON document, on one level",
		"collector/report.TargetFinding":        "its fields are those of the JSON document, on one level",
		"collector/document/reportview.Report":  "a view is the value that is written as JSON, with the methods of its document",
		"collector/document/reportview.Path":    "a view is the value that is written as JSON, with the methods of its document",
		"collector/document/reportview.Targets": "a view is the value that is written as JSON, with the methods of its document",
		"collector/document/reportview.shared":  "the finding of several updates of a path has the methods of its own document",
		"collector/document/afterview.Report":   "a view is the value that is written as JSON, with the methods of its document",
		"collector/document/planview.Plan":      "a view is the value that is written as JSON, with the methods of its document",
		"collector/internal/checktest.View":     "a test of a check reads by the methods of the snapshot",
		"collector/drain.pod":                   "a pod of the simulation is the pod with its state, and each step reads both",
	}
}

// TestTypesAreComposed checks that no type collects methods and fields by embedding other
// types of this repository, of its own package or of another one.
func TestTypesAreComposed(t *testing.T) {
	types := declarations{}
	for dir, files := range sources(t) {
		types.read(t, dir, files)
	}
	for name, each := range types {
		methods, fields := types.members(name, nil)
		reason, exempt := wide()[name]
		switch isWide := methods > maxMethods || fields > maxFields && len(each.embedded) > 0; {
		case isWide && !exempt:
			t.Errorf("%s has %d methods and %d fields with those of embedded types, more than %d or %d: compose it", name, methods, fields,
				maxMethods, maxFields)
		case !isWide && exempt:
			t.Errorf("%s has %d methods and %d fields, and needs no exception (%s)", name, methods, fields, reason)
		}
	}
}

// sources are the files of each package of the product, without tests and generated code.
func sources(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, wing := range []string{"preflight-sdk", "signature", "collector", "runner", "cmd"} {
		err := filepath.WalkDir(filepath.Join("../..", wing), func(path string, entry fs.DirEntry, err error) error {
			switch name := entry.Name(); {
			case err != nil:
				return err
			case entry.IsDir() && name == "testdata":
				return fs.SkipDir
			case entry.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"), strings.HasPrefix(name, "zz_generated"):
				return nil
			}
			dir, err := filepath.Rel("../..", filepath.Dir(path))
			found[dir] = append(found[dir], path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// declared is a type of a package.
type declared struct {
	methods, fields int
	// embedded are the types of this repository that it embeds, as keys of declarations.
	embedded []string
}

// declarations are the types of the product, each by the directory of its package and its name.
type declarations map[string]declared

// read counts what the files of a package declare.
func (d declarations) read(t *testing.T, dir string, files []string) {
	t.Helper()
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		in := scope{dir: dir, imports: importsOf(file)}
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					name := in.nameOf(n.Recv.List[0].Type)
					counted := d[name]
					counted.methods++
					d[name] = counted
				}
				return false
			case *ast.TypeSpec:
				d.addType(n, in)
				return false
			}
			return true
		})
	}
}

func (d declarations) addType(spec *ast.TypeSpec, in scope) {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	key := in.nameOf(spec.Name)
	counted := d[key]
	for _, field := range structure.Fields.List {
		counted.fields += max(1, len(field.Names))
		if name := in.nameOf(field.Type); len(field.Names) == 0 && name != "" {
			counted.embedded = append(counted.embedded, name)
		}
	}
	d[key] = counted
}

// members counts the methods and fields of a type with those of the types that it embeds.
func (d declarations) members(name string, seen []string) (methods, fields int) {
	if slices.Contains(seen, name) {
		return 0, 0
	}
	counted := d[name]
	methods, fields = counted.methods, counted.fields
	for _, each := range counted.embedded {
		m, f := d.members(each, append(seen, name))
		methods, fields = methods+m, fields+f
	}
	return methods, fields
}

// scope is what the names in a file mean.
type scope struct {
	dir string
	// imports has the directories of the packages of this repository, by their names in the file.
	imports map[string]string
}

func importsOf(file *ast.File) map[string]string {
	found := map[string]string{}
	for _, spec := range file.Imports {
		dir, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
		name := filepath.Base(dir)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if ok {
			found[name] = dir
		}
	}
	return found
}

// nameOf is the key of a type in declarations; empty for one of another repository.
func (s scope) nameOf(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return s.dir + "." + e.Name
	case *ast.StarExpr:
		return s.nameOf(e.X)
	case *ast.IndexExpr:
		return s.nameOf(e.X)
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok && s.imports[of.Name] != "" {
			return s.imports[of.Name] + "." + e.Sel.Name
		}
	}
	return ""
}
