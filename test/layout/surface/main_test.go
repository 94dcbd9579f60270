package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// A surface is the exported names of a package times the packages that import it, in any of their files.
func TestSurface(t *testing.T) {
	files := map[string]*ast.File{}
	for name, text := range map[string]string{
		"collector/a/a.go": "package a\n\ntype T struct{}\n\nfunc (T) M() {}\n\nfunc unexported() {}\n\nconst C, d = 1, 2\n",
		"runner/b/b.go":    "package b\n\nimport \"" + module + "collector/a\"\n\nvar _ a.T\n",
		"runner/b/c.go":    "package b\n\nimport \"" + module + "collector/a\"\n\nvar V a.T\n",
		"cmd/c/c.go":       "package c\n\nimport (\n\t\"fmt\"\n\t\"" + module + "collector/a\"\n)\n\nvar _ = fmt.Sprint(a.C)\n",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
	}
	var out bytes.Buffer
	write(&out, measure(files), []surface{{name: "collector/a", importers: 1, exported: 2}}, "v1.0.0")
	const want = `cmd                 0 of   4200      +0 since v1.0.0
collector           6 of  35000      +4 since v1.0.0
preflight-sdk       0 of   2700      +0 since v1.0.0
runner              0 of   8800      +0 since v1.0.0
signature           0 of    500      +0 since v1.0.0

collector/a                             6 =   2 importers x   3 exported names
cmd/c                                   0 =   0 importers x   0 exported names
runner/b                                0 =   0 importers x   1 exported names
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}
