package risk_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The risks of the example in the enhancement accepted-risks.
const (
	dualStack = "DualStackNeedsController"
	podman    = "OldBootImagesPodmanMissingAuthFlag"
	leaked    = "LeakedMachineConfigBlocksMCO"
	ioWait    = "RHELKernelHighLoadIOWait"
)

// decide folds the findings of a target, with three risks of the example accepted.
func decide(t *testing.T, findings []finding.Finding) verdict.Verdict {
	t.Helper()
	policy := verdict.Policy{Accepted: map[string]string{dualStack: "request", podman: "request", leaked: "request"}}
	decided, _ := verdict.Fold(findings, verdict.Expectation{Checks: 1, Reported: 1}, policy)
	return decided
}

// checkExample verifies that 4.18.16 is blocked by the risk that is not accepted, and
// that 4.18.17, which has its fix, is Ready.
func checkExample(t *testing.T, on checktest.Server, client *monitoring.Client) {
	t.Helper()
	first := decide(t, run(t, on, client, recommendedUpdate, "4.18.16"))
	want := verdict.Verdict{
		Decision: verdict.Blocked, Blocking: []string{ioWait}, Undecided: []string{},
		Accepted: []string{dualStack, podman},
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("4.18.16 is blocked only by %s (-want +got):\n%s", ioWait, diff)
	}
	second := decide(t, run(t, on, client, recommendedUpdate, "4.18.17"))
	want = verdict.Verdict{Decision: verdict.Ready, Blocking: []string{}, Undecided: []string{}, Accepted: []string{podman}}
	if diff := cmp.Diff(want, second); diff != "" {
		t.Errorf("4.18.17 is ready (-want +got):\n%s", diff)
	}
}

// example has the conditional updates of the example.
func example() *configv1.ClusterVersion {
	return clusterVersion(
		recommended(conditional("4.18.16", ruled(dualStack, always()), promql(podman, applies), promql(ioWait, applies)),
			metav1.ConditionFalse, "MultipleReasons", "x"),
		recommended(conditional("4.18.17", promql(podman, applies)), metav1.ConditionFalse, podman, "x"),
		recommended(conditional("4.19.1", promql(leaked, spares)), metav1.ConditionTrue, "NotExposedToRisks", "x"),
	)
}

func TestAcceptedRisksOnTheDefaultFeatureSet(t *testing.T) {
	server.Create(t, example())
	checkExample(t, server, clientOf(measured(t).URL))
}

// A cluster with the feature gate ClusterUpdateAcceptRisks has an assessment of each
// risk.
func TestFeatureSetWithRiskNames(t *testing.T) {
	t.Run("Example", func(t *testing.T) {
		version := example()
		publish(version, map[string]metav1.Condition{
			dualStack: matching(), podman: matching(), ioWait: matching(), leaked: sparing(),
		})
		version.Spec.DesiredUpdate = &configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: dualStack}, {Name: podman}, {Name: leaked}}}
		// The reason is that of the last risk, and implies nothing about the others.
		version.Status.ConditionalUpdates[0].Conditions[0].Reason = ioWait
		preview.Create(t, version)
		checkExample(t, preview, noMonitoring(t))
	})
	t.Run("AcceptedImpliesNothingAboutOthers", func(t *testing.T) {
		version := clusterVersion(recommended(conditional("4.18.16", promql("A", applies), promql("B", spares)), metav1.ConditionFalse, "B", "x"))
		version.Spec.DesiredUpdate = &configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}
		preview.Create(t, version)
		got := checktest.Results(run(t, preview, noMonitoring(t), recommendedUpdate, "4.18.16"))
		if diff := cmp.Diff(results{"A": unknown("NoMonitoring"), "B": fails}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("Conditions", func(t *testing.T) { conditionsOfRisks(t, preview) })
	t.Run("Elsewhere", func(t *testing.T) { risksOfOtherChecks(t, preview) })
}

func matching() metav1.Condition {
	return condition("Applies", metav1.ConditionTrue, "Match", "The matchingRules[0] matches")
}

func sparing() metav1.Condition {
	return condition("Applies", metav1.ConditionFalse, "NotMatch", "None of the matching rules matches")
}

// publish sets the cluster's assessment of each risk, in both lists of
// ClusterVersion.
func publish(version *configv1.ClusterVersion, conditions map[string]metav1.Condition) {
	published := map[string]bool{}
	for i := range version.Status.ConditionalUpdates {
		update := &version.Status.ConditionalUpdates[i]
		for j := range update.Risks {
			risk := &update.Risks[j]
			if found, ok := conditions[risk.Name]; ok {
				risk.Conditions = []metav1.Condition{found}
			}
			update.RiskNames = append(update.RiskNames, risk.Name)
			if !published[risk.Name] {
				version.Status.ConditionalUpdateRisks = append(version.Status.ConditionalUpdateRisks, *risk)
				published[risk.Name] = true
			}
		}
	}
}

// conditionsOfRisks runs the check with assessments of one risk, whose query spares.
func conditionsOfRisks(t *testing.T, preview checktest.Server) {
	t.Helper()
	client := clientOf(measured(t).URL)
	old := matching()
	old.ObservedGeneration = 1
	for name, tc := range map[string]struct {
		reason    string
		applies   metav1.Condition
		updated   bool // the spec was changed since
		published metav1.ConditionStatus
		want      results
	}{
		"True":  {reason: "the cluster evaluated that the risk applies", applies: matching(), want: results{"A": fails}},
		"False": {reason: "the cluster evaluated that the risk does not apply", applies: sparing(), want: results{"A": passes}},
		"Unknown": {
			reason:  "a risk that the cluster could not evaluate is evaluated here",
			applies: condition("Applies", metav1.ConditionUnknown, "EvaluationFailed", "throttled"), want: results{"A": passes},
		},
		"Contradicted": {
			reason: "of two assessments the worse counts", applies: sparing(), published: metav1.ConditionTrue,
			want: results{"A": fails},
		},
		"Stale": {
			reason: "an assessment for an earlier spec does not count", applies: old, updated: true,
			want: results{"A": passes, recommendedUpdate: {Outcome: preflight.Skipped, Reason: "StaleStatus"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			version := clusterVersion(recommended(conditional("4.18.16", promql("A", spares)), metav1.ConditionFalse, "A", "x"))
			publish(version, map[string]metav1.Condition{"A": tc.applies})
			if tc.published != "" {
				version.Status.ConditionalUpdateRisks[0].Conditions[0].Status = tc.published
			}
			on := preview
			if tc.updated {
				version.Generation = 2
				version.Status.ConditionalUpdates[0].Conditions = nil
				on = serving(t, version)
			} else {
				on.Create(t, version)
			}
			if diff := cmp.Diff(tc.want, checktest.Results(run(t, on, client, recommendedUpdate, "4.18.16"))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// risksOfOtherChecks runs the check with risks that CVO makes of gates and alerts.
func risksOfOtherChecks(t *testing.T, preview checktest.Server) {
	t.Helper()
	firing := func(name string) configv1.ConditionalUpdateRisk {
		risk := ruled(name, always())
		risk.Conditions = []metav1.Condition{condition("Applies", metav1.ConditionTrue, "Alert:firing", "critical alert "+name+" firing.")}
		return risk
	}
	skipped := checktest.Result{Outcome: preflight.Skipped, Reason: "JudgedElsewhere"}
	for name, tc := range map[string]struct {
		reason  string
		to      string
		risk    configv1.ConditionalUpdateRisk
		client  *monitoring.Client
		options risk.Options
		want    results
	}{
		"Gate": {
			reason: "accepting a gate does not bypass CVO", to: "4.19.1", risk: ruled("ClusterOperatorUpgradeable-etcd", always()),
			want: results{recommendedUpdate: skipped},
		},
		"AdminAck": {
			reason: "an admin ack is a gate", to: "4.19.1", risk: ruled("AdminAck-ack-4.18-x", always()),
			want: results{recommendedUpdate: skipped},
		},
		"NotConcerned": {
			reason: "the gates do not concern patch updates, so the risk counts", to: "4.18.16",
			risk: ruled("ClusterVersionOverrides", always()), want: results{"ClusterVersionOverrides": fails},
		},
		"SameName": {
			reason: "a risk of the update service with the name of a gate counts", to: "4.19.1", risk: promql("AdminAck-x", applies),
			want: results{"AdminAck-x": fails},
		},
		"OldAlert": {
			reason: "the present alerts count", to: "4.18.16", risk: firing("ClusterDown"),
			want: results{recommendedUpdate: skipped},
		},
		"OnlyHere": {
			reason: "where the alerts cannot be read, the cluster's assessment counts", to: "4.18.16", risk: firing("ClusterDown"),
			client: noMonitoring(t), want: results{"ClusterDown": fails},
		},
		"Ignored": {
			reason: "an ignored alert is a warning", to: "4.18.16", risk: firing("ClusterDown"), client: noMonitoring(t),
			options: risk.Options{IgnoredAlerts: []string{"ClusterDown"}}, want: results{"ClusterDown": warns("Ignored")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			update := conditional(tc.to, tc.risk)
			version := clusterVersion(recommended(update, metav1.ConditionFalse, "ExposedToRisks", "x"))
			publish(version, nil)
			preview.Create(t, version)
			client := tc.client
			if client == nil {
				client = clientOf(shared.Load(t).URL)
			}
			if tc.risk.MatchingRules[0].PromQL != nil {
				client = clientOf(measured(t).URL)
			}
			got := checktest.Results(runWith(t, preview, client, query{check: recommendedUpdate, to: tc.to, options: tc.options}))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
