package scale_test

import (
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/cluster"
)

// maxRequests is the limit for each Job of a run: a dry run, a creation, the deletion of
// the Job and of its pod, and a share of all other requests.
const maxRequests = 4.5

// TestHundredChecksAtOnce verifies that a hundred concurrent checks all report, that each
// requires few requests, whatever its duration, and that no objects are left. The
// difference to a run of ten checks excludes the requests that do not depend on the number
// of checks.
func TestHundredChecksAtOnce(t *testing.T) {
	const few, n = 10, 100
	e := start(t, cluster.ControllerRate(openshiftRate, openshiftBurst))
	requests := map[string]float64{}
	for _, tc := range []struct {
		name, reason string
		checks       checks
	}{
		{"Few", "the requests that do not depend on the number of checks", checks{count: few, duration: "1s"}},
		{"Quick", "the results of checks with the SDK are in the status of their pods", checks{count: n, duration: "1s"}},
		{"Slow", "waiting costs no requests", checks{count: n, duration: "10s"}},
		{"Script", "the log of a check without the SDK is read, with one request", checks{count: n, duration: "1s", script: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e.tb = t
			e.publish(tc.checks)
			run := e.preflight(tc.checks.count)
			if passed := run.passed(); passed != tc.checks.count || run.decided.Verdict.Decision != verdict.Ready {
				t.Errorf("%s: %d of %d checks passed, and the verdict is %+v", tc.reason, passed, tc.checks.count, run.decided.Verdict)
			}
			if left := e.left("preflight.openshift.io/run"); left != 0 {
				t.Errorf("%s: the run left %d objects", tc.reason, left)
			}
			run.until.add(run.after)
			requests[tc.name] = run.until.total()
			t.Logf("%.0f requests; for each check: %s", requests[tc.name], run.until.byVerb(tc.checks.count))
			each := (requests[tc.name] - requests["Few"]) / (n - few)
			if tc.checks.count == n && each > maxRequests {
				t.Errorf("%s: each further check took %.2f requests, want at most %.1f", tc.reason, each, maxRequests)
			}
			if run.until.byUser[others] != 0 {
				t.Errorf("%.0f requests have a verb without a FlowSchema of its own", run.until.byUser[others])
			}
			if jobs := run.until.served["POST jobs"]; jobs > run.until.byUser["create"] {
				t.Errorf("the API server served %.0f requests to create Jobs, but the FlowSchema of create counted only %.0f", jobs,
					run.until.byUser["create"])
			}
		})
	}
	// A connection that is replaced may cost some requests.
	if more := requests["Slow"] - requests["Quick"]; more > n/4 {
		t.Errorf("waiting ten seconds instead of one took %.0f more requests", more)
	}
}

// passed returns the number of checks that passed.
func (m measurement) passed() int {
	passed := 0
	for _, f := range m.decided.Findings {
		if f.Source == finding.SourceJob && f.Job != nil && f.Outcome == preflight.Pass {
			passed++
		}
	}
	return passed
}
