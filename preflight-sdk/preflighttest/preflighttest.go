// Package preflighttest answers for the author of a check: does it say the
// right thing, to the administrator and to the release?
//
// [Run] asks one check in the process of the test, and [Expect] or [Golden]
// hold what it said against what it should say. What the check reads is the
// business of the test: a fake client, a server of net/http/httptest or a real
// API server, handed to the function that declares the check. [Manifest] holds
// the manifests that a release ships against the declarations.
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
// With UPDATE_GOLDEN=1 in the environment, [Golden] and [Manifest] write the
// files that they otherwise compare with. It is a variable and no flag, for a
// flag may be taken by the package under test.
package preflighttest

import (
	"bytes"
	"context"
	"testing"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Run asks one check about an update and gives its finding, as the report has
// it but for what only the runner knows. The check's log goes to that of the
// test. Where the test has a deadline, the check's is shortly before it.
//
// An Unknown for a panic of the check, or for a declaration that
// [preflight.Main] would refuse, ends the test: neither is an answer that
// somebody could want. A fail that was told before a panic stands, as in the
// report. To see what a check says when it is interrupted, call
// [preflight.Check.Evaluate].
func Run(tb testing.TB, check preflight.Check, update preflight.Update) preflight.Finding {
	tb.Helper()
	ctx, cancel := withDeadlineOf(tb)
	defer cancel()

	finding := check.Evaluate(ctx, update, logger{tb})
	if finding.Outcome == preflight.Unknown && (finding.Reason == "Panic" || finding.Reason == "InvalidCheck") {
		tb.Fatalf("the check is defective: %s", show(finding))
	}
	return finding
}

// withDeadlineOf leaves a tenth of the time, at most 5 seconds, for the test
// to tell at what the check was when its time was up.
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

// logger writes lines to the log of the test.
type logger struct{ tb testing.TB }

func (l logger) Write(line []byte) (int, error) {
	l.tb.Helper()
	l.tb.Logf("%s", bytes.TrimSuffix(line, []byte("\n")))
	return len(line), nil
}
