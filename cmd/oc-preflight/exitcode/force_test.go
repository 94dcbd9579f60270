package exitcode_test

import (
	"io"
	"testing"

	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
)

// A script does not pass by force: the exit code is that of the decision without it.
func TestForce(t *testing.T) {
	reason := finding.ReportedReason("Reason")
	failed, unknown := finding.Fail(reason, "no quorum"), finding.Unknown(reason, "no result")
	passed := finding.Pass(gap.Proven("a test"), reason, "")
	acked := finding.Fail(reason, "a gate").Bypassed(finding.Bypass{By: finding.ByAdminAck})
	whole, accepted := verdict.Expectation{Checks: 1, Reported: 1}, map[string]string{"Check": "--accept"}
	for name, tc := range map[string]struct {
		reason   string
		finding  finding.Finding
		expected verdict.Expectation
		policy   verdict.Policy
		phase    string
		standing *report.Standing
		want     int
	}{
		"Passed": {reason: "force was not needed", finding: passed, expected: whole, want: exitcode.Ready},
		"Accepted": {
			reason: "the acceptance bypasses it already", finding: failed, expected: whole,
			policy: verdict.Policy{Accepted: accepted}, want: exitcode.Ready,
		},
		"Acknowledged": {reason: "the acknowledgement bypasses it already", finding: acked, expected: whole, want: exitcode.Ready},
		"Failed":       {reason: "it blocks without force, too", finding: failed, expected: whole, want: exitcode.Blocked},
		"Unknown":      {reason: "it is inconclusive without force, too", finding: unknown, expected: whole, want: exitcode.Undecided},
		"Missing": {
			reason: "a check has not reported", finding: passed, expected: verdict.Expectation{Checks: 2, Reported: 1},
			want: exitcode.Undecided,
		},
		"NoChecks": {reason: "nothing was expected", finding: passed, want: exitcode.Undecided},
		"Provisional": {
			reason: "a later update of a path is never Ready", finding: failed, expected: whole,
			policy: verdict.Policy{Provisional: true}, want: exitcode.Blocked,
		},
		"Interrupted": {
			reason: "the run has not ended", finding: failed, expected: whole, phase: report.PhaseInterrupted,
			want: exitcode.Interrupted,
		},
		"Outdated": {
			reason: "no decision holds", finding: failed, expected: whole, standing: &report.Standing{Ended: []string{"changed"}},
			want: exitcode.Undecided,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.finding = tc.finding.Named("Check").From(finding.SourceJob)
			tc.policy.Force, tc.policy.ForceReason = true, "an outage"
			decided := report.Report{Run: report.Run{Phase: tc.phase}, Expected: tc.expected, Standing: tc.standing}
			decided.Verdict, decided.Findings = verdict.Fold([]finding.Finding{tc.finding}, tc.expected, tc.policy)
			if got := exitcode.Code(exitcode.Of(decided), nil, io.Discard); got != tc.want {
				t.Errorf("%s: a report has the exit code %d, want %d", tc.reason, got, tc.want)
			}
			path := report.NewPath([]string{"4.18.3", "4.18.9"}, []report.Report{decided})
			if got := exitcode.Code(exitcode.OfPath(path), nil, io.Discard); got != tc.want {
				t.Errorf("%s: a path has the exit code %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
