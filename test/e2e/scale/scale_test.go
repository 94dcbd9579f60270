package scale_test

import (
	"testing"

	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/cluster"
)

// maxRequests is the most that a run may ask of the API server for each Job.
const maxRequests = 4

// A hundred checks at once are all heard, cost few requests, however long they
// run, and leave nothing.
func TestHundredChecksAtOnce(t *testing.T) {
	const n = 100
	p := start(t, cluster.ControllerRate(openshiftRate, openshiftBurst))
	asked := map[string]float64{}
	for name, tc := range map[string]struct {
		reason string
		checks checks
	}{
		"Quick":  {"checks of the SDK leave all that they say in their pod", checks{count: n, takes: "1s"}},
		"Slow":   {"waiting costs no requests", checks{count: n, takes: "10s"}},
		"Script": {"of a check without the SDK the end of the log is read, which costs a request", checks{count: n, takes: "1s", script: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p.tb = t
			p.publish(tc.checks)
			ran := p.preflight(n)
			passed := 0
			for _, finding := range ran.told.Findings {
				if finding.Source == preflight.SourceJob && finding.Job != nil && finding.Outcome == preflight.Pass {
					passed++
				}
			}
			if passed != n || ran.told.Verdict.Decision != verdict.Ready {
				t.Errorf("%s: %d of %d checks passed, and the verdict is %s: %v", tc.reason, passed, n, ran.told.Verdict.Decision, ran.told.Verdict)
			}
			if left := p.left("preflight.openshift.io/run"); left != 0 {
				t.Errorf("%s: the run left %d objects", tc.reason, left)
			}
			ran.until.add(ran.after)
			asked[name] = ran.until.total()
			t.Logf("%.0f requests; for each check: %s\nof everybody: %s", asked[name], ran.until.byVerb(n), ran.until.everybodys(n))
			if asked[name] > maxRequests*n {
				t.Errorf("%s: %.0f requests for %d checks, want at most %d for each", tc.reason, asked[name], n, maxRequests)
			}
			if ran.until.asked[rest] != 0 {
				t.Errorf("%.0f requests are of no verb that is counted by itself", ran.until.asked[rest])
			}
		})
	}
	p.tb = t
	// One connection that is cut and made again may cost a few.
	if more := asked["Slow"] - asked["Quick"]; more > n/10 {
		t.Errorf("waiting ten seconds instead of one took %.0f more requests", more)
	}
}
