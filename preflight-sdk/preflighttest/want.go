package preflighttest

import (
	"strconv"
	"strings"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

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
