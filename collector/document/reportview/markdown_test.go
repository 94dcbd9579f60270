package reportview_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
)

// hostile returns texts with markup.
func hostile() []string {
	return []string{
		"<script>alert(1)</script>", "<img src=https://example.com/a>", "</details>", "[a](https://example.com)",
		"![a](https://example.com/a.png)",
		"https://example.com/x", "www.example.com", "mailto:a@example.com", "@octocat and @org/team", "#123 and org/repo#4", "!17",
		"a | b | c", "| a | b |\n|---|---|\n| c | d |", "# heading", "## heading", "- item", "1. item", "2) item", "> quote", "---", "===",
		"+ item",
		"```\ncode\n```", "`````", "a `code` b", "**bold** _it_ ~~gone~~", "    indented", "\\", "\\`", "&lt;b&gt;", "[x]: https://example.com",
		"[^1]", "- [ ] task",
		"\x1b[31mred\x1b[0m", "first\r\nsecond\u2028third",
	}
}

// Parsed as GitHub does, hostile text in every field of every document has no effect.
func TestMarkdownIsOnlyText(t *testing.T) {
	t.Parallel()
	for name, document := range hostileDocuments() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := structure(t, encoded(t, "markdown", document("text")))
			for _, what := range hostile() {
				got := structure(t, encoded(t, "markdown", document(what)))
				if strings.Contains(got, "Link") || strings.Contains(got, "Image") || strings.Contains(got, "RawHTML <s") {
					t.Errorf("%q makes links, images or HTML: %s", what, got)
				}
				if lines := strings.Count(strings.TrimSpace(what), "\n"); lines == 0 && got != plain {
					t.Errorf("%q changes the structure:\n%s\nwant\n%s", what, got, plain)
				}
			}
		})
	}
}

// structure are the kinds of the blocks and links of a document, with the raw HTML.
func structure(t *testing.T, source []byte) string {
	t.Helper()
	parser := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote)).Parser()
	var all []string
	err := ast.Walk(parser.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n.Kind() == ast.KindText || n.Kind() == ast.KindString || n.Kind() == ast.KindCodeSpan {
			return ast.WalkContinue, nil
		}
		switch node := n.(type) {
		case *ast.RawHTML:
			if raw := string(node.Segments.Value(source)); raw != "<!-- -->" && raw != "<br>" {
				all = append(all, "RawHTML "+raw)
			}
		case *ast.Heading:
			all = append(all, fmt.Sprintf("Heading %d", node.Level))
		case *extast.TableRow, *extast.TableHeader:
			all = append(all, fmt.Sprintf("Row of %d", n.ChildCount()))
		default:
			all = append(all, n.Kind().String())
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, ", ")
}

func TestMarkdownIsBounded(t *testing.T) {
	t.Parallel()
	doc := blocked()
	var many []finding.Finding
	for i := range 2000 {
		many = append(many, finding.Fail(finding.ReportedReason("Reason"), "%d %s", i,
			strings.Repeat("word ", 500)).Named(fmt.Sprintf("Check%04d", i)).From(finding.SourceJob))
	}
	doc.Verdict, doc.Findings = verdict.Fold(many, verdict.Expectation{Checks: 2000, Reported: 2000}, verdict.Policy{})
	out := encoded(t, "markdown", doc)
	if len(out) > 65_536 || !strings.Contains(string(out), "This document is bounded and omits: ") {
		t.Errorf("the document has %d bytes, and must state what it leaves out:\n...%s", len(out), out[max(0, len(out)-300):])
	}
}
