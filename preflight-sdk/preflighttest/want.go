package preflighttest

import (
	"strings"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Want is what a finding has to be. What is empty may be anything, except for
// the outcome, which is required.
type Want struct {
	Outcome preflight.Outcome
	// Reason is the whole reason.
	Reason string
	// Message and Remedy are parts of the message and of the remediation.
	Message, Remedy string
}

// Expect fails the test where the finding is not as wanted, and shows all of
// the finding.
func Expect(tb testing.TB, finding preflight.Finding, want Want) {
	tb.Helper()
	var wrong []string
	if finding.Outcome != want.Outcome {
		wrong = append(wrong, "outcome: want "+string(want.Outcome))
	}
	if want.Reason != "" && finding.Reason != want.Reason {
		wrong = append(wrong, "reason: want "+want.Reason)
	}
	if !strings.Contains(finding.Message, want.Message) {
		wrong = append(wrong, "message: want a part "+want.Message)
	}
	if !strings.Contains(finding.Remediation, want.Remedy) {
		wrong = append(wrong, "remediation: want a part "+want.Remedy)
	}
	switch {
	case want.Outcome == "":
		tb.Errorf("no outcome is wanted: set Want.Outcome; the finding is\n%s", show(finding))
	case len(wrong) > 0:
		tb.Errorf("%s; got\n%s", strings.Join(wrong, "; "), show(finding))
	}
}
