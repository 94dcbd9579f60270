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

// Golden fails the test where the finding is not that of the file: as -o json
// prints it, with all its objects and evidence. What differs from run to run,
// as a time or a port, does not belong into it; use [Expect] for those.
func Golden(tb testing.TB, file string, finding preflight.Finding) {
	tb.Helper()
	compare(tb, file, []byte(show(finding)))
}

// Manifest fails the test where the file is not what [preflight.Manifest]
// makes of the options and checks, so that what a release ships does not drift
// from what the checks declare.
func Manifest(tb testing.TB, file string, options preflight.ManifestOptions, checks ...preflight.Check) {
	tb.Helper()
	manifest, err := preflight.Manifest(options, checks...)
	if err != nil {
		tb.Fatalf("no manifest for %s: %v", file, err)
	}
	compare(tb, file, manifest)
}

// compare fails the test where the file has not that content, or gives it to
// the file where the environment says so.
func compare(tb testing.TB, file string, content []byte) {
	tb.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" { //nolint:forbidigo // The switch that the package comment tells of.
		rewrite(tb, file, content)
		return
	}
	had, err := os.ReadFile(file) //nolint:gosec // The test names its own file.
	if err != nil {
		tb.Fatalf("%v; write it with UPDATE_GOLDEN=1 go test", err)
	}
	// Git may have given the file the line ends of the system.
	had = bytes.ReplaceAll(had, []byte("\r\n"), []byte("\n"))
	if bytes.Equal(had, content) {
		return
	}
	line, have, want := firstDifference(string(had), string(content))
	tb.Errorf("%s:%d: the file has\n\t%q\nand should have\n\t%q\nif that is right, write it with UPDATE_GOLDEN=1 go test",
		file, line, have, want)
}

// rewrite writes only what is new, to leave the time of the file alone.
func rewrite(tb testing.TB, file string, content []byte) {
	tb.Helper()
	if had, err := os.ReadFile(file); err == nil && bytes.Equal(had, content) { //nolint:gosec // The test names its own file.
		return
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // As git makes it.
		tb.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil { //nolint:gosec // As git makes it.
		tb.Fatal(err)
	}
	tb.Logf("wrote %s", file)
}

// firstDifference is the first line, from 1, in which two texts differ, and
// that line of both. It is empty in the one that has ended.
func firstDifference(a, b string) (line int, ofA, ofB string) {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	before := strings.Count(a[:same], "\n")
	return before + 1, strings.Split(a, "\n")[before], strings.Split(b, "\n")[before]
}

// show is the finding as a check can say it: without the fields of the runner.
func show(f preflight.Finding) string {
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
		URL         string             `json:"url,omitempty"`
		Objects     []preflight.Object `json:"objects,omitempty"`
		Evidence    map[string]string  `json:"evidence,omitempty"`
	}{f.Name, f.Outcome, f.Reason, f.Message, f.Remediation, f.URL, f.Objects, f.Evidence})
	if err != nil {
		return err.Error() // Not with these types.
	}
	return text.String()
}
