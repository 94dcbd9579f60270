package scale_test

import (
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/cluster"
)

// maxRequests is the most that a run may ask of the API server for each Job: a dry run, a
// creation, the deletion of the Job and that of its pod, and its share of the rest.
const maxRequests = 4.5

// A hundred concurrent checks all report, each costs few requests, however long
// it runs, and nothing is left of them. What a run costs whatever the number of
// checks is seen from one of ten checks.
func TestHundredChecksAtOnce(t *testing.T) {
	const few, n = 10, 100
	p := start(t, cluster.ControllerRate(openshiftRate, openshiftBurst))
	asked := map[string]float64{}
	for _, tc := range []struct {
		name, reason string
		checks       checks
	}{
		{"Few", "what they cost is what every run costs", checks{count: few, takes: "1s"}},
		{"Quick", "checks of the SDK leave all that they say in their pod", checks{count: n, takes: "1s"}},
		{"Slow", "waiting costs no requests", checks{count: n, takes: "10s"}},
		{"Script", "of a check without the SDK the end of the log is read, which costs a request", checks{count: n, takes: "1s", script: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p.tb = t
			p.publish(tc.checks)
			ran := p.preflight(tc.checks.count)
			if passed := ran.passed(); passed != tc.checks.count || ran.decided.Verdict.Decision != verdict.Ready {
				t.Errorf("%s: %d of %d checks passed, and the verdict is %+v", tc.reason, passed, tc.checks.count, ran.decided.Verdict)
			}
			if left := p.left("preflight.openshift.io/run"); left != 0 {
				t.Errorf("%s: the run left %d objects", tc.reason, left)
			}
			ran.until.add(ran.after)
			asked[tc.name] = ran.until.total()
			t.Logf("%.0f requests; for each check: %s", asked[tc.name], ran.until.byVerb(tc.checks.count))
			each := (asked[tc.name] - asked["Few"]) / (n - few)
			if tc.checks.count == n && each > maxRequests {
				t.Errorf("%s: a check more took %.2f requests more, want at most %.1f", tc.reason, each, maxRequests)
			}
			if ran.until.asked[others] != 0 {
				t.Errorf("%.0f requests are of no verb that is counted by itself", ran.until.asked[others])
			}
			if jobs := ran.until.served["POST jobs"]; jobs > ran.until.asked["create"] {
				t.Errorf("the API server served %.0f requests to create Jobs, and counted %.0f of the only one who makes them", jobs, ran.until.asked["create"])
			}
		})
	}
	// One connection that is cut and made again may cost a few.
	if more := asked["Slow"] - asked["Quick"]; more > n/4 {
		t.Errorf("waiting ten seconds instead of one took %.0f more requests", more)
	}
}

// passed is how many checks of the release passed.
func (r ran) passed() int {
	passed := 0
	for _, f := range r.decided.Findings {
		if f.Source == finding.SourceJob && f.Job != nil && f.Outcome == preflight.Pass {
			passed++
		}
	}
	return passed
}
