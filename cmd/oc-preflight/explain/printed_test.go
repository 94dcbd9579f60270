package explain_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/cmd/oc-preflight/explain"
	"github.com/openshift/update-preflight/collector/finding"
)

// Every reason that the sources have as a literal is explained: those in a field or a constant named reason, and those
// of a call that makes a row or a problem of a fleet.
func TestEveryReasonIsExplained(t *testing.T) {
	entries := explain.Entries()
	found := 0
	for _, directory := range []string{"collector", "runner", "signature"} {
		err := filepath.WalkDir(filepath.Join("../../..", directory), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/internal/") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			for _, name := range reasonsOf(file) {
				found++
				if _, err := explain.Find(entries, name); err != nil {
					t.Errorf("%s: the reason %s is not explained: %v", path, name, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if least := 80; found < least {
		t.Errorf("%d reasons were found in the sources, want at least %d", found, least)
	}
}

// reasonName is how a reason is named in the sources.
var reasonName = regexp.MustCompile("^(reason|Reason)[A-Z]?")

// reasonsOf are the literals of a file that are reasons.
func reasonsOf(file *ast.File) []string {
	var names []string
	add := func(expression ast.Expr) {
		literal, ok := expression.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && finding.ValidName(text) {
			names = append(names, text)
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.KeyValueExpr:
			if key, ok := node.Key.(*ast.Ident); ok && strings.EqualFold(key.Name, "reason") {
				add(node.Value)
			}
		case *ast.ValueSpec:
			for i, value := range node.Values {
				if reasonName.MatchString(node.Names[i].Name) {
					add(value)
				}
			}
		case *ast.CallExpr:
			if called, ok := node.Fun.(*ast.Ident); ok && (called.Name == "problemf" || called.Name == "failure") {
				add(node.Args[0])
			}
			if called, ok := node.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Unread" && len(node.Args) > 1 {
				add(node.Args[1])
			}
		}
		return true
	})
	return names
}
