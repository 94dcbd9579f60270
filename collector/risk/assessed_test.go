package risk_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/risk"
)

func TestAssessedByCluster(t *testing.T) {
	t.Parallel()
	a, b := promql("A", applies), promql("B", spares)
	other := promql("A", spares)
	found := func(of configv1.ConditionalUpdateRisk, applies bool) risk.Assessed {
		return risk.Assessed{Name: of.Name, Rules: of.MatchingRules, Applies: applies}
	}
	for name, tc := range map[string]struct {
		reason  string
		updates []configv1.ConditionalUpdate
		// stale is a spec that is newer than the status.
		stale bool
		want  []risk.Assessed
	}{
		"Named": {
			reason:  "the condition names the only risk that applies",
			updates: []configv1.ConditionalUpdate{recommended(conditional("4.18.16", a, b), metav1.ConditionFalse, "A", "x")},
			want:    []risk.Assessed{found(a, true), found(b, false)},
		},
		"Recommended": {
			reason:  "no risk applies",
			updates: []configv1.ConditionalUpdate{recommended(conditional("4.18.16", a), metav1.ConditionTrue, "NotExposedToRisks", "x")},
			want:    []risk.Assessed{found(a, false)},
		},
		"Unknown": {
			reason:  "CVO could not evaluate the risk",
			updates: []configv1.ConditionalUpdate{recommended(conditional("4.18.16", a), metav1.ConditionUnknown, "EvaluationFailed", "x")},
		},
		"NotYet": {reason: "CVO has not evaluated the update yet", updates: []configv1.ConditionalUpdate{conditional("4.18.16", a)}},
		"Stale": {
			reason:  "that a risk does not apply is only known of the present spec",
			updates: []configv1.ConditionalUpdate{recommended(conditional("4.18.16", a, b), metav1.ConditionFalse, "A", "x")},
			stale:   true, want: []risk.Assessed{found(a, true)},
		},
		"Definitions": {
			reason: "that a risk does not apply may be about another definition",
			updates: []configv1.ConditionalUpdate{
				recommended(conditional("4.18.16", a), metav1.ConditionFalse, "A", "x"),
				recommended(conditional("4.18.17", other), metav1.ConditionTrue, "NotExposedToRisks", "x"),
			},
			want: []risk.Assessed{found(a, true)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version := clusterVersion(tc.updates...)
			if tc.stale {
				version.Generation = version.Status.ObservedGeneration + 1
			}
			got, err := risk.AssessedByCluster(t.Context(), serving(t, version).Snapshot(t).Cluster)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
