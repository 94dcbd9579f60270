// Package preflighttest answers: does a check report the right findings, and does
// the release ship the right manifest for it?
//
// [Run] runs one check in the process of the test. [Expect] and [Golden] compare
// its finding with the expected one. The test provides what the check reads, such
// as a fake client, a server of net/http/httptest or a real API server, through
// the function that declares the check. [Manifest] compares the manifest that a
// release ships with the one that the program prints.
//
//	func TestQuorum(t *testing.T) {
//		update := preflight.Update{From: "4.20.5", To: "4.21.3"}
//		for name, tc := range map[string]struct {
//			members []string
//			want    preflighttest.Want
//		}{
//			"Three": {[]string{"a", "b", "c"}, preflighttest.Want{Outcome: preflight.Pass}},
//			"Two":   {[]string{"a", "b"}, preflighttest.Want{Outcome: preflight.Fail, Message: "2 members", Remedy: "oc debug"}},
//		} {
//			t.Run(name, func(t *testing.T) {
//				preflighttest.Expect(t, preflighttest.Run(t, quorum(fake(tc.members)), update), tc.want)
//			})
//		}
//	}
//
// With UPDATE_GOLDEN=1 in the environment, [Golden] and [Manifest] write their
// files instead of comparing them. It is a variable because a flag might conflict
// with one of the package under test.
package preflighttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Run runs one check for an update and returns its finding, as the report has it
// without the fields that the runner sets. The log of the check is written to the
// log of the test. If the test has a deadline, the check ends shortly before it.
//
// An Unknown because of a panic, or of a declaration that [preflight.Main]
// rejects, ends the test as failed. A fail that was reported before a panic
// remains a fail, as in the report. To test the finding of an interrupted check,
// call [preflight.Check.Evaluate].
func Run(tb testing.TB, check preflight.Check, update preflight.Update) preflight.Finding {
	tb.Helper()
	ctx, cancel := withDeadlineOf(tb)
	defer cancel()

	finding := check.Evaluate(ctx, update, logger{tb})
	if finding.Outcome == preflight.Unknown && (finding.Reason == "Panic" || finding.Reason == "InvalidCheck") {
		tb.Fatalf("the check is defective: %s", format(finding))
	}
	return finding
}

// withDeadlineOf returns a context that ends before the deadline of the test, so
// that the test can report a timeout. The margin is a tenth of the remaining time,
// at most 5 seconds.
func withDeadlineOf(tb testing.TB) (context.Context, context.CancelFunc) {
	tb.Helper()
	ctx := context.Background() //nolint:forbidigo // testing.TB has no context in Go 1.23.
	if timed, ok := tb.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := timed.Deadline(); ok {
			margin := min(5*time.Second, time.Until(deadline)/10)
			return context.WithDeadline(ctx, deadline.Add(-margin))
		}
	}
	return context.WithCancel(ctx)
}

type logger struct{ tb testing.TB }

func (l logger) Write(line []byte) (int, error) {
	l.tb.Helper()
	l.tb.Logf("%s", bytes.TrimSuffix(line, []byte("\n")))
	return len(line), nil
}

// Want is the expectation for a finding. An empty field matches any value, except
// Outcome, which is required.
type Want struct {
	Outcome preflight.Outcome
	// Reason is the whole reason.
	Reason string
	// Message and Remedy are substrings of the message and of the remediation with its
	// commands.
	Message, Remedy string
}

// Expect fails the test unless the finding meets the expectation. The failure
// contains the whole finding.
func Expect(tb testing.TB, finding preflight.Finding, want Want) {
	tb.Helper()
	var violations []string
	if finding.Outcome != want.Outcome {
		violations = append(violations, "outcome: want "+string(want.Outcome))
	}
	if want.Reason != "" && finding.Reason != want.Reason {
		violations = append(violations, "reason: want "+want.Reason)
	}
	if !strings.Contains(finding.Message, want.Message) {
		violations = append(violations, "message: want the substring "+strconv.Quote(want.Message))
	}
	remedy := []string{finding.Remediation}
	for _, action := range finding.Actions {
		remedy = append(remedy, action.Command)
	}
	if !strings.Contains(strings.Join(remedy, "\n"), want.Remedy) {
		violations = append(violations, "remediation: want the substring "+strconv.Quote(want.Remedy))
	}
	switch {
	case want.Outcome == "":
		tb.Errorf("Want.Outcome is empty: set it; the finding is\n%s", format(finding))
	case len(violations) > 0:
		tb.Errorf("%s; got\n%s", strings.Join(violations, "; "), format(finding))
	}
}

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

// Manifest fails the test unless the content of file is the output of the program
// with --print-manifest and these options. program is a main package in the form
// that go build accepts, such as "." for the package in the directory of the test.
//
// The test has no list of checks of its own: the manifest covers the checks that
// the main function passes to [preflight.Main], so a check that is run without
// its rules being granted fails the test. The go command must be in PATH, as it
// is under go test.
func Manifest(tb testing.TB, program, file string, options preflight.ManifestOptions) {
	tb.Helper()
	ctx, cancel := withDeadlineOf(tb)
	defer cancel()

	// Windows requires the suffix; other systems ignore it.
	binary := filepath.Join(tb.TempDir(), "preflight.exe")
	if _, err := output(ctx, "go", "build", "-o", binary, program); err != nil {
		tb.Fatalf("cannot build the program %s: %v", program, err)
	}
	manifest, err := output(ctx, binary, "--print-manifest",
		"--name="+options.Name, "--namespace="+options.Namespace, "--image="+options.Image)
	if err != nil {
		tb.Fatalf("cannot print the manifest of the program %s: %v", program, err)
	}
	compare(tb, file, manifest)
}

// output runs a command and returns its standard output. The error contains its
// standard error.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...) //nolint:gosec // The caller is a test and names its own program.
	stdout, err := command.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("%w\n%s", err, bytes.TrimSpace(exit.Stderr))
	}
	return stdout, err
}
