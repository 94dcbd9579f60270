package risk_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/risk"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The public update service has 124 risks with 64 different queries.
const (
	manyUpdates = 500
	manyRisks   = 124
	manyQueries = 64
)

// many has every risk in every update: more than an API server would store.
func many() *configv1.ClusterVersion {
	var updates []configv1.ConditionalUpdate
	for i := range manyUpdates {
		var risks []configv1.ConditionalUpdateRisk
		for j := range manyRisks {
			risks = append(risks, promql(fmt.Sprintf("Risk%03d", j), fmt.Sprintf("vector(%d %% 2)", j%manyQueries)))
		}
		updates = append(updates, conditional(fmt.Sprintf("4.19.%d", i), risks...))
	}
	return clusterVersion(updates...)
}

// judgeAll runs both checks on every target, with one snapshot and one client.
func judgeAll(t *testing.T, view checktest.View, client *monitoring.Client, targets int) [][]finding.Finding {
	t.Helper()
	var all [][]finding.Finding
	for i := range targets {
		subject := check.Subject{Update: checktest.Update(t, from, fmt.Sprintf("4.19.%d", i))}
		all = append(all, checktest.Collect(t, risk.Checks(client, risk.Options{}), view, subject))
	}
	return all
}

func TestEachQueryIsReadOnceForAllTargets(t *testing.T) {
	front := measured(t).Open(t)
	all := judgeAll(t, serving(t, many()).Snapshot(t), clientOf(front.URL), manyUpdates)
	for i, findings := range all {
		outcomes := map[preflight.Outcome]int{}
		for _, f := range findings {
			outcomes[f.Outcome]++
		}
		want := map[preflight.Outcome]int{preflight.Fail: manyRisks / 2, preflight.Pass: manyRisks/2 + 1} // one is that of the alerts
		if diff := cmp.Diff(want, outcomes); diff != "" {
			t.Fatalf("target %d (-want +got):\n%s", i, diff)
		}
	}
	requests := map[string]int{}
	for _, request := range front.Requests() {
		requests[request.Path+request.Query.Get("query")]++
	}
	if len(requests) != manyQueries+1 || len(front.Requests()) != manyQueries+1 {
		t.Errorf("%d different requests of %d, want %d queries and one for the alerts", len(requests), len(front.Requests()), manyQueries)
	}
}

func TestTheOrderOfListsDoesNotMatter(t *testing.T) {
	const target = "4.19.1"
	other := promql("A", applies)
	other.Message = "Another."
	version := clusterVersion(
		conditional(target, promql("B", spares), promql("A", spares), promql("C", "none"), ruled("D", always())),
		conditional(target, other, promql("C", "up{"), promql("E", "2")),
		conditional("latest", promql("A", spares)), conditional("4.19.2", promql("B", applies)),
	)
	client := clientOf(measured(t).URL)
	want := run(t, serving(t, version), client, recommendedUpdate, target)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		updates := version.Status.ConditionalUpdates
		random.Shuffle(len(updates), func(i, j int) { updates[i], updates[j] = updates[j], updates[i] })
		for _, update := range updates {
			random.Shuffle(len(update.Risks), func(i, j int) { update.Risks[i], update.Risks[j] = update.Risks[j], update.Risks[i] })
		}
		if diff := cmp.Diff(want, run(t, serving(t, version), client, recommendedUpdate, target)); diff != "" {
			t.Fatalf("(-in order +shuffled):\n%s", diff)
		}
	}
}

// FuzzRiskName checks that two risks with any names are reported by different names
// that can be accepted.
func FuzzRiskName(f *testing.F) {
	f.Add("RiskA", "risk_a")
	f.Add("", "-")
	f.Add("a_b", "a-b")
	f.Add("A\nB", "Ä")
	f.Add("\x80", "\xff")
	f.Fuzz(func(t *testing.T, first, second string) {
		// Text of the API is JSON, and therefore valid UTF-8.
		first, second = strings.ToValidUTF8(first, "\uFFFD"), strings.ToValidUTF8(second, "\uFFFD")
		version := clusterVersion(conditional("4.18.16", ruled(first, always()), ruled(second, always())))
		findings := run(t, serving(t, version), clientOf("http://127.0.0.1:1"), recommendedUpdate, "4.18.16")
		var names []string
		for _, found := range findings {
			if !regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`).MatchString(found.Name) || len(found.Name) > 256 {
				t.Errorf("%q and %q: %q cannot be accepted", first, second, found.Name)
			}
			if found.Outcome == preflight.Fail {
				names = append(names, found.Name)
			}
		}
		if want := len(slices.Compact([]string{first, second})); len(names) != want || len(slices.Compact(names)) != want {
			t.Errorf("%q and %q are reported as %q", first, second, names)
		}
	})
}
