package documents_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/test/documents"
)

// TestFilesOfPages fails for a source file that a page names or links and that does not exist, beside the page, below
// its wing or in the root of the repository. Files without a directory are examples of the reader's own.
func TestFilesOfPages(t *testing.T) {
	source := regexp.MustCompile(`^[a-z][\w./-]*/[\w-]+\.(go|txt|sh|mk|yml)$`)
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	names := 0
	for path, text := range markdown(t) {
		if filepath.Base(path) == "CHANGELOG.md" {
			continue
		}
		var named []string
		for _, span := range documents.Spans(text) {
			if source.MatchString(span) {
				named = append(named, span)
			}
		}
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			named = append(named, match[1])
		}
		names += len(named)
		for _, name := range named {
			if !strings.HasPrefix(name, "pkg/") && !exists(filepath.Dir(path), name) { // this repository has no pkg: it is CVO's
				t.Errorf("%s names %s, which does not exist", path, name)
			}
		}
	}
	const least = 100 // fewer are a failure of this test to find them
	if names < least {
		t.Errorf("%d files were found, want at least %d", names, least)
	}
}

// exists reports whether a file is in a directory of the repository, in one above it, or below a wing.
func exists(directory, name string) bool {
	places := []string{"collector", "runner", "cmd", "cmd/oc-preflight"}
	for at := directory; at != "."; at = filepath.Dir(at) {
		places = append(places, at)
	}
	for _, place := range append(places, ".") {
		if _, err := os.Stat(filepath.Join(root, place, name)); err == nil {
			return true
		}
	}
	return false
}
