package documents_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/cmd/oc-preflight/explain"
	"github.com/openshift/update-preflight/test/documents"
)

const (
	troubleshooting = "cmd/oc-preflight/TROUBLESHOOTING.md"
	disconnected    = "cmd/oc-preflight/DISCONNECTED.md"
)

// TestReasonsAreExplained fails for a reason that "oc preflight explain" does not know.
func TestReasonsAreExplained(t *testing.T) {
	names := map[string]bool{}
	for _, entry := range explain.Entries() {
		names[entry.Name] = true
	}
	found := regexp.MustCompile(`(?m)^\(([A-Z]\w+)\)$`).FindAllStringSubmatch(printed(read(t, troubleshooting)), -1)
	for _, span := range append(documents.Spans(read(t, troubleshooting)), documents.Spans(read(t, disconnected))...) {
		found = append(found, regexp.MustCompile(`^([A-Z][a-z]+(?:[A-Z]\w*)?)$`).FindAllStringSubmatch(span, 1)...)
	}
	const least = 30
	if len(found) < least {
		t.Errorf("%d reasons were found, want at least %d", len(found), least)
	}
	for _, match := range found {
		if !names[match[1]] {
			t.Errorf("the documents name %s, which oc preflight explain does not know", match[1])
		}
	}
}

// printed are the blocks with output.
func printed(text string) string {
	var all strings.Builder
	for _, block := range documents.Blocks(text) {
		if block.Language == "text" {
			all.WriteString(block.Text)
		}
	}
	return all.String()
}

// TestPrintedTexts fails for output that the program does not print: each part between the
// ellipses of a line is in its source, or in a golden file of a report.
func TestPrintedTexts(t *testing.T) {
	sources := sources(t)
	for line := range strings.Lines(printed(read(t, troubleshooting))) {
		for part := range strings.SplitSeq(strings.TrimSpace(line), "…") {
			part = strings.Trim(part, " (),")
			if reason := regexp.MustCompile(`^[A-Z]\w+$`).MatchString(part); !reason && !strings.Contains(sources, part) {
				t.Errorf("%s quotes %q, which the program does not print", troubleshooting, part)
			}
		}
	}
}

// sources are the Go files of the program and the golden files of its reports. Errors of
// the standard library are in the goldens.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, wing := range []string{"cmd", "runner", "collector", "signature"} {
		err := filepath.WalkDir(filepath.Join(root, wing), func(path string, entry fs.DirEntry, err error) error {
			golden := filepath.Ext(path) == ".text" || filepath.Ext(path) == ".txt"
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" && !golden {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// TestContents fails for a link to a section, or to a file, that does not exist.
func TestContents(t *testing.T) {
	for path, text := range markdown(t) {
		for _, match := range regexp.MustCompile(`\]\(([^)#:\s]*)(#[^)\s]*)?\)`).FindAllStringSubmatch(text, -1) {
			file := filepath.Join(filepath.Dir(path), match[1])
			if match[1] == "" {
				file = path
			}
			content, err := documents.Read(root, file)
			if _, isDirectory := os.Stat(filepath.Join(root, file)); err != nil && isDirectory != nil {
				t.Errorf("%s links to %s, which does not exist", path, match[1])
			}
			if match[2] != "" && !anchors(content)[match[2]] {
				t.Errorf("%s links to %s%s, and the file has no such section", path, match[1], match[2])
			}
		}
	}
}

// anchors returns the anchors of the headings of a file on GitHub.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(match[1]), "")
		all["#"+strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}
