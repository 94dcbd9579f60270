package markdown_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	gfm "github.com/openshift/update-preflight/collector/document/markdown"
)

func TestDocument(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		write  func(*gfm.Document)
		want   string
	}{
		"Text":        {reason: "data does not form elements", write: func(d *gfm.Document) { d.Line(gfm.Text("<b> *x* [y](z) |")) }, want: `&lt;b\> \*x\* \[y\](z) \|` + "\n"},
		"Mention":     {reason: "no user or issue is linked", write: func(d *gfm.Document) { d.Line(gfm.Text("@ann #1")) }, want: `\@<!-- -->ann \#<!-- -->1` + "\n"},
		"URL":         {reason: "no URL is linked", write: func(d *gfm.Document) { d.Line(gfm.Text("https://example.com")) }, want: "https:<!-- -->//example.com\n"},
		"Lines":       {reason: "a line is not an item of a list", write: func(d *gfm.Document) { d.Line(gfm.Lines("a\n\n- b\n1. c")) }, want: "a<br>\n\\- b<br>\n1\\. c\n"},
		"Code":        {reason: "the fence is longer than the backticks inside", write: func(d *gfm.Document) { d.Line(gfm.Code("a``b")) }, want: "```a``b```\n"},
		"Codes":       {reason: "the number of names is bounded", write: func(d *gfm.Document) { d.Line(gfm.Codes([]string{"a", "b", "c"}, 2)) }, want: "`a`, `b`, and 1 more\n"},
		"Row":         {reason: "a cell is one cell", write: func(d *gfm.Document) { d.Row("a|b", gfm.Code("c|d"), gfm.Text("e|f")) }, want: "| a\\|b | `c\\|d` | e\\|f |\n"},
		"Command":     {reason: "a command is not escaped", write: func(d *gfm.Document) { d.Command(" oc get <pods> ") }, want: "```sh\noc get <pods>\n```\n\n"},
		"NoCommand":   {reason: "an empty command is omitted", write: func(d *gfm.Document) { d.Command(" ") }},
		"Block":       {reason: "the lines of a block are kept, and cannot end it", write: func(d *gfm.Document) { d.Block("  a\n```\n b\n\n") }, want: "````text\n  a\n```\n b\n````\n\n"},
		"Appended":    {reason: "documents are joined", write: func(d *gfm.Document) { var other gfm.Document; other.Paragraph(" x "); d.Append(&other) }, want: "x\n\n"},
		"Unprintable": {reason: "escape sequences are not written", write: func(d *gfm.Document) { d.Line(gfm.Code("a\x1b[2Jb")) }, want: "`ab`\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var document gfm.Document
			tc.write(&document)
			var got strings.Builder
			if document.Len() != len(tc.want) {
				t.Errorf("%s: the size is %d, want %d", tc.reason, document.Len(), len(tc.want))
			}
			if _, err := document.WriteTo(&got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
