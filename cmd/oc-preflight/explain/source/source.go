// Package source answers: what does the source code state about the reasons and
// the names of findings?
//
// A reason is a constant of a type named Reason. Its comment has this form:
//
//	// ReasonX is reported when <meaning>.
//	//
//	// Cause: <what causes it>.
//	//
//	// Remedy: <what to do>.
//
// The name of a finding is either that of a built-in check, described by the
// comment of the function that returns the check, a constant whose comment
// contains "names the finding", or the first part of a name that is made for each
// object, described by the check in the same file. In a table of rules with the fields
// name and reason, a name has the meaning of its reason.
package source

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The kinds of entries.
const (
	KindReason  = "Reason"
	KindFinding = "Finding"
)

// Entry documents one reason or one name of findings.
type Entry struct {
	Kind string `json:"kind"`
	// Name is the value that a report has.
	Name string `json:"name"`
	// Package is the directory of the package, from the root of the module.
	Package string `json:"package"`
	// Meaning is one or more sentences. Cause and Remedy are those of a reason.
	Meaning string `json:"meaning"`
	Cause   string `json:"cause,omitempty"`
	Remedy  string `json:"remedy,omitempty"`

	constant string
}

// Parse reads the Go files of the directories under root, without tests, and
// returns the entries sorted by name, and what violates the rules of this package.
func Parse(root string, directories ...string) (entries []Entry, violations []string, err error) {
	for _, directory := range directories {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			if entry.Name() == "testdata" {
				return fs.SkipDir
			}
			p, err := parsePackage(root, path)
			if err != nil {
				return err
			}
			entries, violations = append(entries, p.entries...), append(violations, p.violations...)
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Package, b.Package))
	})
	return entries, violations, nil
}

// parsed is what one package states.
type parsed struct {
	path       string
	set        *token.FileSet
	values     map[string]string // of the constants, by identifier
	used       map[string]bool
	entries    []Entry
	violations []string
}

func parsePackage(root, path string) (*parsed, error) {
	relative, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	p := &parsed{path: filepath.ToSlash(relative), set: token.NewFileSet(), values: map[string]string{}, used: map[string]bool{}}
	files, err := p.files(path)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		p.constants(file)
	}
	for _, file := range files {
		p.checks(file)
		ast.Inspect(file, p.inspect)
	}
	for _, file := range files {
		p.names(file)
	}
	for _, entry := range p.entries {
		if entry.Kind == KindReason && !ast.IsExported(entry.constant) && !p.used[entry.constant] {
			p.violations = append(p.violations, fmt.Sprintf("%s: %s is not used", p.path, entry.constant))
		}
	}
	return p, nil
}

// files are the Go files of a directory without its tests.
func (p *parsed) files(path string) ([]*ast.File, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, entry := range entries {
		if entry.IsDir() || !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(p.set, filepath.Join(path, entry.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// constants records the string constants of a file, and makes the entries of those
// that are reasons or names.
func (p *parsed) constants(file *ast.File) {
	for _, declared := range file.Decls {
		group, ok := declared.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok {
				p.constant(group, value)
			}
		}
	}
}

func (p *parsed) constant(group *ast.GenDecl, spec *ast.ValueSpec) {
	doc := spec.Doc.Text()
	if doc == "" && len(group.Specs) == 1 {
		doc = group.Doc.Text()
	}
	for i, name := range spec.Names {
		if i >= len(spec.Values) {
			continue
		}
		value, ok := literal(spec.Values[i])
		if !ok {
			if isReason(spec.Type) {
				p.violations = append(p.violations, fmt.Sprintf("%s: the reason %s is computed: use a literal", p.set.Position(name.Pos()), name.Name))
			}
			continue
		}
		p.values[name.Name] = value
		switch {
		case isReason(spec.Type):
			p.reason(name, value, doc)
		case strings.Contains(oneLine(doc), "names the finding"):
			p.entries = append(p.entries, Entry{Kind: KindFinding, Name: value, Package: p.path, Meaning: meaning(doc), constant: name.Name})
		}
	}
}

// isCopied reports whether the value of a conversion to a reason is one that another object
// reports, in a field such as Reason or ErrorReason, or no reason.
func isCopied(value ast.Expr) (copied bool) {
	if text, ok := literal(value); ok {
		return text == ""
	}
	ast.Inspect(value, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		copied = copied || ok && strings.HasSuffix(selector.Sel.Name, "Reason")
		return !copied
	})
	return copied
}

// isReason reports whether a type is named Reason, of this or another package.
func isReason(expression ast.Expr) bool {
	switch typed := expression.(type) {
	case *ast.Ident:
		return typed.Name == "Reason"
	case *ast.SelectorExpr:
		return typed.Sel.Name == "Reason"
	}
	return false
}

func (p *parsed) reason(name *ast.Ident, value, doc string) {
	meant, rest, found := strings.Cut(doc, "\n\nCause: ")
	cause, remedy, complete := strings.Cut(rest, "\n\nRemedy: ")
	stated, reported := strings.CutPrefix(oneLine(meant), name.Name+" is reported ")
	if !found || !complete || !reported {
		p.violations = append(p.violations, fmt.Sprintf("%s: the comment of %s does not have the form of a reason", p.set.Position(name.Pos()), name.Name))
		return
	}
	p.entries = append(p.entries, Entry{
		Kind: KindReason, Name: value, Package: p.path, constant: name.Name,
		Meaning: "Reported " + stated, Cause: sentence(cause), Remedy: sentence(remedy),
	})
}

// checks makes the entries of the functions that return a built-in check.
func (p *parsed) checks(file *ast.File) {
	for _, declared := range file.Decls {
		function, ok := declared.(*ast.FuncDecl)
		if !ok || function.Recv != nil || !returnsCheck(function) {
			continue
		}
		name := p.checkName(function)
		if name == "" {
			continue
		}
		if function.Doc == nil {
			p.violations = append(p.violations, fmt.Sprintf("%s: %s has no comment", p.set.Position(function.Pos()), function.Name.Name))
			continue
		}
		p.entries = append(p.entries, Entry{Kind: KindFinding, Name: name, Package: p.path, Meaning: meaning(function.Doc.Text())})
	}
}

func returnsCheck(function *ast.FuncDecl) bool {
	results := function.Type.Results
	if results == nil || len(results.List) != 1 {
		return false
	}
	selector, ok := results.List[0].Type.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "Check"
}

// checkName is the value of the field Name of the check that the function returns.
func (p *parsed) checkName(function *ast.FuncDecl) (name string) {
	ast.Inspect(function, func(node ast.Node) bool {
		composite, ok := node.(*ast.CompositeLit)
		if !ok || name != "" || !isCheck(composite.Type) {
			return name == ""
		}
		for _, element := range composite.Elts {
			pair, ok := element.(*ast.KeyValueExpr)
			if key, isIdent := pair.Key.(*ast.Ident); ok && isIdent && key.Name == "Name" {
				name = p.value(pair.Value)
			}
		}
		return false
	})
	return name
}

func isCheck(expression ast.Expr) bool {
	selector, ok := expression.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "Check"
}

// value is the text of a string literal or of a constant of the package.
func (p *parsed) value(expression ast.Expr) string {
	if text, ok := literal(expression); ok {
		return text
	}
	if name, ok := expression.(*ast.Ident); ok {
		return p.values[name.Name]
	}
	return ""
}

// inspect notes which constants are used, and finds calls that pass a reason or a
// name as a literal.
func (p *parsed) inspect(node ast.Node) bool {
	switch typed := node.(type) {
	case *ast.ValueSpec:
		for _, value := range typed.Values {
			ast.Inspect(value, p.inspect)
		}
		return false
	case *ast.Ident:
		p.used[typed.Name] = true
	case *ast.CallExpr:
		p.call(typed)
	}
	return true
}

func (p *parsed) call(call *ast.CallExpr) {
	if isReason(call.Fun) && len(call.Args) == 1 && !isCopied(call.Args[0]) {
		p.violations = append(p.violations, fmt.Sprintf("%s: the reason is computed: use a constant", p.set.Position(call.Pos())))
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	reason := -1
	switch receiver, _ := selector.X.(*ast.Ident); {
	case receiver == nil || receiver.Name != "finding":
		if selector.Sel.Name == "Named" && len(call.Args) == 1 {
			p.literalName(call.Args[0])
		}
		return
	case slices.Contains([]string{"Pass", "Fail", "Warn", "Unknown", "Skipped"}, selector.Sel.Name):
		reason = 0
	case selector.Sel.Name == "New":
		reason = 1
	}
	if reason < 0 || reason >= len(call.Args) {
		return
	}
	if text, ok := literal(call.Args[reason]); ok {
		p.violations = append(p.violations, fmt.Sprintf("%s: the reason %q is not a constant", p.set.Position(call.Pos()), text))
	}
}

func (p *parsed) literalName(argument ast.Expr) {
	text, ok := literal(argument)
	if ok {
		p.violations = append(p.violations, fmt.Sprintf("%s: the name %q is not a constant", p.set.Position(argument.Pos()), text))
	}
}

func literal(expression ast.Expr) (string, bool) {
	basic, ok := expression.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(basic.Value)
	return text, err == nil
}

// meaning is a comment without the identifier and the verb that it begins with.
func meaning(doc string) string {
	_, rest, _ := strings.Cut(oneLine(doc), " ")
	for _, verb := range []string{"is ", "names "} {
		rest = strings.TrimPrefix(rest, verb)
	}
	return sentence(rest)
}

// sentence is text on one line that begins with a capital letter.
func sentence(text string) string {
	text = oneLine(text)
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
