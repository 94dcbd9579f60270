package documents_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/test/golden"
)

// expectGenerated fails unless the part of a document between the comment with this name and
// the next "end" is what was generated.
func expectGenerated(t *testing.T, path, name, generated string) {
	t.Helper()
	text := read(t, path)
	before, rest, begins := strings.Cut(text, "<!-- generated: "+name+" -->\n")
	current, after, ends := strings.Cut(rest, "<!-- end -->\n")
	if !begins || !ends {
		t.Fatalf("%s has no generated part %q", path, name)
	}
	if !golden.Update() {
		if diff := cmp.Diff(generated, current); diff != "" {
			t.Errorf("%s, part %q is stale; rewrite it with: go test ./test/documents -update: -want +got:\n%s", path, name, diff)
		}
		return
	}
	text = before + "<!-- generated: " + name + " -->\n" + generated + "<!-- end -->\n" + after
	if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// table is a table in Markdown.
func table(rows ...[]string) string {
	var all strings.Builder
	for i, row := range rows {
		for _, cell := range row {
			all.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		all.WriteString("|\n")
		if i == 0 {
			all.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return all.String()
}
