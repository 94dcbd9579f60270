package documents_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/openshift/update-preflight/cmd/oc-preflight/explain"
)

// start matches a command that starts an update; permitted are the words of a document that permits one.
var (
	start     = regexp.MustCompile(`adm upgrade [^\n]*--to\b|patch (hostedcluster|nodepool)\b[^\n]*release`)
	permitted = regexp.MustCompile(`Verdict: Ready, |Decision for the path: Ready|(?m)^Clear: |[1-9]\d* Clear, |"decision": "Ready"`)
	refused   = regexp.MustCompile(`Decision for the path: [^R]|(?m)^  "decision": "[^R]`)
)

// TestNoStart fails for a golden file of a report that is neither Ready nor Clear and has a command that starts an
// update, and for a remedy with one.
func TestNoStart(t *testing.T) {
	starting := 0
	for _, directory := range []string{"collector/document", "test/commands/testdata"} {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Base(filepath.Dir(path)) != "testdata" {
				return err
			}
			text, err := os.ReadFile(path)
			if found := start.Find(text); found != nil {
				starting++
				if !permitted.Match(text) || refused.Match(text) {
					t.Errorf("%s is no verdict that permits the update, and has %q", path, found)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if starting == 0 {
		t.Error("no golden file of a report has a command that starts the update")
	}
	for _, entry := range explain.Entries() {
		if found := start.FindString(entry.Remedy); found != "" {
			t.Errorf("the remedy of %s has %q; only a verdict that permits the update has such a command", entry.Name, found)
		}
	}
}
