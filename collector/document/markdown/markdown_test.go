package markdown_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/markdown"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		block  document.Block
		want   string
	}{
		"Text": {
			reason: "data does not form elements", block: document.Paragraph{Text: "<b> *x* [y](z) |"},
			want: `&lt;b\> \*x\* \[y\](z) \|` + "\n\n",
		},
		"Mention": {
			reason: "no user or issue is linked", block: document.Paragraph{Text: "@ann #1"},
			want: `\@<!-- -->ann \#<!-- -->1` + "\n\n",
		},
		"URL": {
			reason: "no URL is linked", block: document.Paragraph{Text: "https://example.com"},
			want: "https:<!-- -->//example.com\n\n",
		},
		"Lines": {
			reason: "a line is not an item of a list", block: document.Paragraph{Text: "a\n\n- b\n1. c"},
			want: "a<br>\n\\- b<br>\n1\\. c\n\n",
		},
		"Names": {
			reason: "the fence is longer than the backticks inside",
			block:  document.List{Lead: "L", Entries: []string{"a``b", "c"}, Names: true}, want: "**L** ```a``b```, `c`\n\n",
		},
		"Table": {
			reason: "a cell is one cell", block: document.Table{Rows: [][]string{{"a|b", "c d|e"}, {"x", "y-|z"}}},
			want: "|  |  |\n| --- | --- |\n| a\\|b | c d\\|e |\n| x | `y-\\|z` |\n\n",
		},
		"Command": {
			reason: "a command is not escaped", block: document.Command{Lead: "Do:", Text: " oc get <pods> "},
			want: "Do:\n\n```sh\noc get <pods>\n```\n\n",
		},
		"NoCommand": {reason: "an empty command is omitted", block: document.Command{Text: " "}},
		"Picture": {
			reason: "the lines of a picture are kept, and cannot end it", block: document.Picture{Text: "  a\n```\n b\n\n"},
			want: "````text\n  a\n```\n b\n````\n\n",
		},
		"Terminal": {reason: "escape sequences are not written", block: document.List{Entries: []string{"a\x1b[2Jb"}}, want: "- ab\n\n"},
		"Details": {reason: "details are closed", block: document.Details{
			Summary: "more",
			Blocks:  []document.Block{document.Paragraph{Text: "x"}},
		}, want: "<details><summary>more</summary>\n\nx\n\n</details>\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got strings.Builder
			if err := markdown.Write(&got, document.Document{Blocks: []document.Block{tc.block}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
