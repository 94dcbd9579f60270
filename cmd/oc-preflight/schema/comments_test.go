package schema_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

const module = "github.com/openshift/update-preflight/"

// comments are those of the types of a package and of their fields: "Type" and "Type.Field".
type comments map[string]string

var (
	parsed      = map[string]comments{} // by package path
	parsedMutex sync.Mutex
)

// commentsOf are the comments in the source of a package of this repository; none of others.
func commentsOf(t *testing.T, path string) comments {
	t.Helper()
	parsedMutex.Lock()
	defer parsedMutex.Unlock()
	directory, own := strings.CutPrefix(path, module)
	if found, ok := parsed[path]; ok || !own {
		return found
	}
	files, err := filepath.Glob(filepath.Join("../../..", directory, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := comments{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found.read(file)
	}
	parsed[path] = found
	return found
}

func (c comments) read(file *ast.File) {
	for _, declared := range file.Decls {
		group, ok := declared.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		for _, spec := range group.Specs {
			typed, _ := spec.(*ast.TypeSpec)
			text := typed.Doc.Text()
			if text == "" {
				text = group.Doc.Text()
			}
			c[typed.Name.Name] = text
			structure, ok := typed.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range structure.Fields.List {
				for _, name := range field.Names {
					c[typed.Name.Name+"."+name.Name] = field.Doc.Text()
				}
			}
		}
	}
}

// describe puts the comments of a type, and of what it consists of, into its schema.
func describe(t *testing.T, s *jsonschema.Schema, of reflect.Type) {
	t.Helper()
	if s == nil {
		return
	}
	switch of.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Pointer:
		describe(t, s, of.Elem())
	case reflect.Slice, reflect.Array:
		describe(t, s.Items, of.Elem())
	case reflect.Map:
		describe(t, s.AdditionalProperties, of.Elem())
	case reflect.Struct:
		describeStruct(t, s, of)
	}
}

func describeStruct(t *testing.T, s *jsonschema.Schema, of reflect.Type) {
	t.Helper()
	found := commentsOf(t, of.PkgPath())
	if s.Description == "" {
		s.Description = meaning(found[of.Name()], of.Name())
	}
	for field := range of.Fields() {
		if field.Anonymous {
			describeStruct(t, s, field.Type)
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		property := s.Properties[name]
		if property == nil {
			continue
		}
		describe(t, property, field.Type)
		if text := meaning(found[of.Name()+"."+field.Name], field.Name); text != "" {
			property.Description = text
		}
	}
}

// meaning is a comment without the identifier that it begins with, which no document has.
func meaning(comment, identifier string) string {
	text := strings.Join(strings.Fields(comment), " ")
	for _, verb := range []string{" is ", " are "} {
		if rest, ok := strings.CutPrefix(text, identifier+verb); ok {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return text
}
