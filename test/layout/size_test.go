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

const (
	maxFiles              = 12
	maxMethods, maxFields = 15, 12
)

// wide are the types with more methods or fields, with the reason.
func wide() map[string]string {
	return map[string]string{
		"preflight-sdk.T":            "the API of an author has the shape of testing.T, and its methods stay",
		"collector/snapshot.Cluster": "each method reads one resource once for all checks",
		"runner/record.Record":       "a record is its intent and what became of it, and both are public",
	}
}

// TestPackagesAreSmall checks that a package can be read in one sitting. Lines are not counted: they
// say nothing about how many ideas a package has.
func TestPackagesAreSmall(t *testing.T) {
	for dir, files := range sources(t) {
		if len(files) > maxFiles {
			t.Errorf("package %s has %d files, more than %d: make packages of its ideas", dir, len(files), maxFiles)
		}
	}
}

// TestTypesAreComposed checks that no type collects methods and fields by embedding other
// types of this repository.
func TestTypesAreComposed(t *testing.T) {
	for dir, files := range sources(t) {
		types := read(t, files)
		for name := range types {
			methods, fields := types.members(name, nil)
			reason, exempt := wide()[dir+"."+name]
			switch isWide := methods > maxMethods || fields > maxFields && len(types[name].embedded) > 0; {
			case isWide && !exempt:
				t.Errorf("%s.%s has %d methods and %d fields with those of embedded types, more than %d or %d: compose it", dir, name, methods, fields, maxMethods, maxFields)
			case !isWide && exempt:
				t.Errorf("%s.%s has %d methods and %d fields, and needs no exception (%s)", dir, name, methods, fields, reason)
			}
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
	// embedded are the types of the same package that it embeds.
	embedded []string
}

type declarations map[string]declared

// read counts what the files of a package declare.
func read(t *testing.T, files []string) declarations {
	t.Helper()
	types := declarations{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					name := typeName(n.Recv.List[0].Type)
					counted := types[name]
					counted.methods++
					types[name] = counted
				}
				return false
			case *ast.TypeSpec:
				types.addType(n)
				return false
			}
			return true
		})
	}
	return types
}

func (d declarations) addType(spec *ast.TypeSpec) {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	counted := d[spec.Name.Name]
	for _, field := range structure.Fields.List {
		counted.fields += max(1, len(field.Names))
		if name := typeName(field.Type); len(field.Names) == 0 && name != "" {
			counted.embedded = append(counted.embedded, name)
		}
	}
	d[spec.Name.Name] = counted
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

// typeName is the name of a type of the same package; empty for another one.
func typeName(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	}
	return ""
}
