package source

import (
	"go/ast"
	"slices"
	"strings"
)

// names makes the entries of names that are made from parts, such as "MachineSet-" and the
// name of an object, and of those in a table of rules.
func (p *parsed) names(file *ast.File) {
	check := p.documented(file)
	for _, declared := range file.Decls {
		function, ok := declared.(*ast.FuncDecl)
		if !ok {
			continue
		}
		about := check
		if about == "" && function.Doc != nil {
			about = meaning(function.Doc.Text())
		}
		ast.Inspect(function, func(node ast.Node) bool {
			switch typed := node.(type) {
			case *ast.CallExpr:
				p.named(typed, about)
			case *ast.CompositeLit:
				p.rule(typed)
			}
			return true
		})
	}
}

// documented is the meaning of the first check of a file; empty where it has none.
func (p *parsed) documented(file *ast.File) string {
	for _, declared := range file.Decls {
		function, ok := declared.(*ast.FuncDecl)
		if ok && function.Recv == nil && function.Doc != nil && returnsCheck(function) {
			return meaning(function.Doc.Text())
		}
	}
	return ""
}

// named is about a call of Named with a name that begins with a literal, of NameOf, or of a
// function that makes a rule from a name.
func (p *parsed) named(call *ast.CallExpr, about string) {
	if len(call.Args) == 0 {
		return
	}
	first := call.Args[0]
	called := ""
	switch function := call.Fun.(type) {
	case *ast.SelectorExpr:
		called = function.Sel.Name
	case *ast.Ident:
		called = function.Name
	}
	switch {
	case called == "Named":
		joined, ok := first.(*ast.BinaryExpr)
		if !ok {
			return
		}
		for left, ok := joined.X.(*ast.BinaryExpr); ok; left, ok = left.X.(*ast.BinaryExpr) {
			joined = left
		}
		first = joined.X
	case called != "NameOf" && !strings.HasSuffix(called, "Rule"):
		return
	}
	if name, ok := literal(first); ok {
		p.name(Entry{Name: strings.TrimSuffix(name, "-"), Meaning: about})
	}
}

// rule is about a composite with the fields name, a literal, and reason, a constant.
func (p *parsed) rule(composite *ast.CompositeLit) {
	var name string
	var reason *ast.Ident
	for _, element := range composite.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		switch key, _ := pair.Key.(*ast.Ident); {
		case key == nil:
		case key.Name == "name":
			name, _ = literal(pair.Value)
		case key.Name == "reason":
			reason, _ = pair.Value.(*ast.Ident)
		}
	}
	if name == "" || reason == nil {
		return
	}
	for _, entry := range p.entries {
		if entry.Kind == KindReason && entry.constant == reason.Name {
			p.name(Entry{Name: name, Meaning: entry.Meaning, Cause: entry.Cause, Remedy: entry.Remedy})
		}
	}
}

// name adds the entry of a name, unless there is one.
func (p *parsed) name(entry Entry) {
	entry.Kind, entry.Package = KindFinding, p.path
	known := slices.ContainsFunc(p.entries, func(e Entry) bool { return e.Kind == KindFinding && e.Name == entry.Name })
	if known || entry.Meaning == "" || strings.ContainsAny(entry.Name, " ") || !ast.IsExported(entry.Name) {
		return
	}
	p.entries = append(p.entries, entry)
}
