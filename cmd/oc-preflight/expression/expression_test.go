package expression_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/expression"
	"github.com/openshift/update-preflight/collector/document/format"
)

// page is a document with values of each kind of JSON.
type page struct {
	Kind    string   `json:"kind"`
	Checks  int64    `json:"checks"`
	Ready   bool     `json:"ready"`
	Targets []target `json:"targets"`
}

type target struct {
	Version string `json:"version"`
	Message string `json:"message,omitempty"`
}

func document() page {
	return page{Kind: "Page", Checks: 12345678, Targets: []target{{Version: "4.19.1"}, {Version: "4.19.2", Message: "of\x1b[2J\u202eout"}}}
}

func TestExpressions(t *testing.T) {
	directory := t.TempDir()
	file := func(content string) string {
		path := filepath.Join(directory, "expression")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tc := range map[string]struct {
		reason, output, content string
		want, err               string
	}{
		"Path": {
			reason: "values as kubectl writes them: without a line end", output: "jsonpath={.kind} {.targets[*].version}",
			want: "Page 4.19.1 4.19.2",
		},
		"Bare":    {reason: "braces and the dot may be left out of a column only", output: "jsonpath=.kind", want: ".kind"},
		"Filter":  {reason: "a filter", output: `jsonpath={.targets[?(@.version=="4.19.2")].version}`, want: "4.19.2"},
		"Number":  {reason: "a whole number has no exponent", output: "jsonpath={.checks}", want: "12345678"},
		"Lacking": {reason: "a field that the document lacks is empty", output: "jsonpath={.nosuch}", want: ""},
		"Terminal": {
			reason: "text of a cluster does not reach the terminal as it is", output: "jsonpath={.targets[1].message}",
			want: "ofout",
		},
		"AsJSON": {reason: "what is selected is a list", output: "jsonpath-as-json={.ready}", want: "[\n    false\n]\n"},
		"Template": {
			reason: "the fields are those of JSON", output: `go-template={{range .targets}}{{.version}};{{end}}{{.checks}}`,
			want: "4.19.1;4.19.2;12345678",
		},
		"NoMethods": {
			reason: "a template calls no method", output: "go-template={{.kind.String}}",
			err: "could not apply go-template={{.kind.String}}: ",
		},
		"Columns": {
			reason: "one row for the document",
			output: "custom-columns=KIND:.kind,VERSION:targets[*].version,READY:{.ready},NONE:.nosuch",
			want:   "KIND   VERSION         READY   NONE\nPage   4.19.1,4.19.2   false   <none>\n",
		},
		"ColumnLines": {reason: "text of a cluster makes no row or column", output: "custom-columns=M:.targets[1].message", want: "M\nofout\n"},
		"File":        {reason: "the expression of a file", output: "jsonpath-file=", content: "{.kind}{\"\\n\"}", want: "Page\n"},
		"ColumnsFile": {
			reason: "a line of titles and one of paths", output: "custom-columns-file=", content: "KIND  READY\n.kind .ready\n",
			want: "KIND   READY\nPage   false\n",
		},
		"Format": {reason: "a format without an expression", output: "json", want: "{\n  \"kind\": \"Page\""},
		"Equals": {reason: "an equals sign makes no expression of another format", output: "json=x", err: `unknown output format "json=x"`},
		"Empty": {
			reason: "nothing would be written, which looks like a good answer", output: "jsonpath= ",
			err: "jsonpath= has no expression",
		},
		"EmptyFile":   {reason: "the same in a file", output: "jsonpath-file=", content: "\n", err: "jsonpath= has no expression"},
		"BadPath":     {reason: "found when the flag is read", output: "jsonpath={.kind", err: "unclosed action"},
		"BadTemplate": {reason: "found when the flag is read", output: "go-template={{.kind", err: "unclosed action"},
		"BadColumn":   {reason: "a column has a title", output: "custom-columns=.kind", err: `the column ".kind" is not TITLE:PATH`},
		"BadColumns":  {reason: "each column has a path", output: "custom-columns-file=", content: "A B\n.kind\n", err: "2 titles, but 1 paths"},
		"UnknownFile": {reason: "no format is called so", output: "yaml-file=x", err: `unknown output format "yaml-file=x"`},
		"MissingFile": {reason: "the error has the name", output: "go-template-file=missing", err: "open missing: "},
		"TooLarge": {
			reason: "a file is bounded", output: "jsonpath-file=", content: strings.Repeat("x", 1<<20+1),
			err: "more than 1048576 bytes",
		},
		"WithoutEqual": {reason: "a format with an expression needs one", output: "jsonpath", err: `unknown output format "jsonpath"`},
	} {
		t.Run(name, func(t *testing.T) {
			c, output := &cobra.Command{}, "text"
			c.SetContext(t.Context())
			given := tc.output
			if tc.content != "" {
				given += file(tc.content)
			}
			err := expression.Flag(c, &output).Set(given)
			if err == nil {
				err = expression.Check(output, document())
			}
			var got strings.Builder
			if err == nil {
				err = expression.Write(&got, output, document(), format.Style{})
			}
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			if got.String() != tc.want && (tc.output != "json" || !strings.HasPrefix(got.String(), tc.want)) {
				t.Errorf("%s: got %q, want %q", tc.reason, got.String(), tc.want)
			}
		})
	}
}
