package preflighttest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Golden fails the test unless the content of file is the finding as -o json
// prints it, with its objects and evidence. Use [Expect] for a finding that
// contains values that change, such as a time or a port.
func Golden(tb testing.TB, file string, finding preflight.Finding) {
	tb.Helper()
	compare(tb, file, []byte(format(finding)))
}

// compare fails the test unless the file has the content. If UPDATE_GOLDEN is
// set, it writes the content to the file instead.
func compare(tb testing.TB, file string, content []byte) {
	tb.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" { //nolint:forbidigo // Documented in the package comment.
		rewrite(tb, file, content)
		return
	}
	current, err := os.ReadFile(file) //nolint:gosec // The test names its own file.
	if err != nil {
		tb.Fatalf("%v; create it with UPDATE_GOLDEN=1 go test", err)
	}
	// Git may have converted the line endings.
	current = bytes.ReplaceAll(current, []byte("\r\n"), []byte("\n"))
	if bytes.Equal(current, content) {
		return
	}
	line, got, want := firstDifference(string(current), string(content))
	tb.Errorf("%s:%d: the file has\n\t%q\nwant\n\t%q\nif this is intended, update it with UPDATE_GOLDEN=1 go test",
		file, line, got, want)
}

// rewrite writes the file only if its content changes, to keep its modification
// time.
func rewrite(tb testing.TB, file string, content []byte) {
	tb.Helper()
	if current, err := os.ReadFile(file); err == nil && bytes.Equal(current, content) { //nolint:gosec // The test names its own file.
		return
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // The permissions that git uses.
		tb.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil { //nolint:gosec // The permissions that git uses.
		tb.Fatal(err)
	}
	tb.Logf("wrote %s", file)
}

// firstDifference returns the number of the first line in which two texts differ,
// counted from 1, and this line of both texts. It is empty in a text that has
// ended.
func firstDifference(a, b string) (line int, ofA, ofB string) {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	before := strings.Count(a[:same], "\n")
	return before + 1, strings.Split(a, "\n")[before], strings.Split(b, "\n")[before]
}

func format(f preflight.Finding) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(struct {
		Name        string             `json:"name"`
		Outcome     preflight.Outcome  `json:"outcome"`
		Reason      string             `json:"reason"`
		Message     string             `json:"message,omitempty"`
		Remediation string             `json:"remediation,omitempty"`
		Actions     []preflight.Action `json:"actions,omitempty"`
		URL         string             `json:"url,omitempty"`
		Objects     []preflight.Object `json:"objects,omitempty"`
		Evidence    map[string]string  `json:"evidence,omitempty"`
	}{f.Name, f.Outcome, f.Reason, f.Message, f.Remediation, f.Actions, f.URL, f.Objects, f.Evidence})
	if err != nil {
		return err.Error() // Impossible for these types.
	}
	return text.String()
}
