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
