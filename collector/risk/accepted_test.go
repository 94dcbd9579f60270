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
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/prometheus"
)

// The risks of the story that the enhancement accepted-risks tells.
const (
	dualStack = "DualStackNeedsController"
	podman    = "OldBootImagesPodmanMissingAuthFlag"
	leaked    = "LeakedMachineConfigBlocksMCO"
	ioWait    = "RHELKernelHighLoadIOWait"
)

// decide folds what the check for risks says of a target, with the three risks
// of the story accepted.
func decide(t *testing.T, findings []finding.Finding) verdict.Verdict {
	t.Helper()
	policy := verdict.Policy{Accepted: map[string]string{dualStack: "--accept", podman: "--accept", leaked: "--accept"}}
	decided, _ := verdict.Fold(findings, verdict.Expectation{Checks: 1, Reported: 1}, policy)
	return decided
}

// tellStory wants 4.18.16 blocked by the one risk that nobody accepted, and
// 4.18.17, which has the fixes, accepted.
func tellStory(t *testing.T, on checktest.Server, client *monitoring.Client) {
	t.Helper()
	first := decide(t, ask(t, on, client, recommendedUpdate, "4.18.16"))
	want := verdict.Verdict{Decision: verdict.Blocked, Blocking: []string{ioWait}, Undecided: []string{}, Accepted: []string{dualStack, podman}}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("4.18.16 is blocked by %s alone (-want +got):\n%s", ioWait, diff)
	}
	second := decide(t, ask(t, on, client, recommendedUpdate, "4.18.17"))
	want = verdict.Verdict{Decision: verdict.Ready, Blocking: []string{}, Undecided: []string{}, Accepted: []string{podman}}
	if diff := cmp.Diff(want, second); diff != "" {
		t.Errorf("4.18.17 is accepted (-want +got):\n%s", diff)
	}
}

// story has the conditional updates of the story.
func story() *configv1.ClusterVersion {
	return clusterVersion(
		recommended(conditional("4.18.16", ruled(dualStack, always()), promql(podman, applies), promql(ioWait, applies)),
			metav1.ConditionFalse, "MultipleReasons", "x"),
		recommended(conditional("4.18.17", promql(podman, applies)), metav1.ConditionFalse, podman, "x"),
		recommended(conditional("4.19.1", promql(leaked, spares)), metav1.ConditionTrue, "NotExposedToRisks", "x"),
	)
}

func TestAcceptedRisksOnTheDefaultFeatureSet(t *testing.T) {
	server.Create(t, story())
	tellStory(t, server, asking(measured(t).URL))
}

// A cluster with the feature gate ClusterUpdateAcceptRisks tells of each risk.
func TestFeatureSetThatHasRiskNames(t *testing.T) {
	local, err := cluster.Start(t.Context(), t.TempDir(), cluster.ControlPlaneOnly(), cluster.FeatureSet("TechPreviewNoUpgrade"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	preview := checktest.Connect(local.Config)
	t.Run("Story", func(t *testing.T) {
		version := story()
		publish(version, map[string]metav1.Condition{
			dualStack: matching(), podman: matching(), ioWait: matching(), leaked: sparing(),
		})
		version.Spec.DesiredUpdate = &configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: dualStack}, {Name: podman}, {Name: leaked}}}
		// The reason is the last exposed risk's: it says nothing of the others.
		version.Status.ConditionalUpdates[0].Conditions[0].Reason = ioWait
		preview.Create(t, version)
		tellStory(t, preview, nothing(t))
	})
	t.Run("AcceptedSaysNothingOfOthers", func(t *testing.T) {
		version := clusterVersion(recommended(conditional("4.18.16", promql("A", applies), promql("B", spares)), metav1.ConditionFalse, "B", "x"))
		version.Spec.DesiredUpdate = &configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}
		preview.Create(t, version)
		got := checktest.Results(ask(t, preview, nothing(t), recommendedUpdate, "4.18.16"))
		if diff := cmp.Diff(said{"A": unknown("NoMonitoring"), "B": fails}, got); diff != "" {
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

// publish has the cluster say of each risk what it found, in both places that
// have room for it.
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

// conditionsOfRisks are what a cluster says of one risk, whose query spares.
func conditionsOfRisks(t *testing.T, preview checktest.Server) {
	t.Helper()
	client := asking(measured(t).URL)
	old := matching()
	old.ObservedGeneration = 1
	for name, tc := range map[string]struct {
		reason    string
		applies   metav1.Condition
		updated   bool // the spec, since
		published metav1.ConditionStatus
		want      said
	}{
		"True":         {reason: "the cluster's own word", applies: matching(), want: said{"A": fails}},
		"False":        {reason: "the cluster's own word", applies: sparing(), want: said{"A": passes}},
		"Unknown":      {reason: "what it could not tell is evaluated here", applies: condition("Applies", metav1.ConditionUnknown, "EvaluationFailed", "throttled"), want: said{"A": passes}},
		"Contradicted": {reason: "of two words the worse counts", applies: sparing(), published: metav1.ConditionTrue, want: said{"A": fails}},
		"Stale": {
			reason: "the word on an earlier spec does not count", applies: old, updated: true,
			want: said{"A": passes, recommendedUpdate: unknown("StaleStatus")},
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
			if diff := cmp.Diff(tc.want, checktest.Results(ask(t, on, client, recommendedUpdate, "4.18.16"))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// risksOfOtherChecks are those that CVO makes of gates and alerts.
func risksOfOtherChecks(t *testing.T, preview checktest.Server) {
	t.Helper()
	firing := func(name string) configv1.ConditionalUpdateRisk {
		risk := ruled(name, always())
		risk.Conditions = []metav1.Condition{condition("Applies", metav1.ConditionTrue, "Alert:firing", "critical alert "+name+" firing.")}
		return risk
	}
	quiet := prometheus.Run(t)
	skipped := checktest.Result{Outcome: preflight.Skipped, Reason: "JudgedElsewhere"}
	for name, tc := range map[string]struct {
		reason  string
		to      string
		risk    configv1.ConditionalUpdateRisk
		client  *monitoring.Client
		options risk.Options
		want    said
	}{
		"Gate":         {reason: "accepting it would not get past CVO", to: "4.19.1", risk: ruled("ClusterOperatorUpgradeable-etcd", always()), want: said{recommendedUpdate: skipped}},
		"AdminAck":     {reason: "nor this", to: "4.19.1", risk: ruled("AdminAck-ack-4.18-x", always()), want: said{recommendedUpdate: skipped}},
		"NotConcerned": {reason: "no gate looks at a patch update, so the risk counts", to: "4.18.16", risk: ruled("ClusterVersionOverrides", always()), want: said{"ClusterVersionOverrides": fails}},
		"Impostor":     {reason: "a risk of the update service by that name", to: "4.19.1", risk: promql("AdminAck-x", applies), want: said{"AdminAck-x": fails}},
		"OldAlert":     {reason: "the alerts as they are now count", to: "4.18.16", risk: firing("ClusterDown"), want: said{recommendedUpdate: skipped}},
		"OnlyHere":     {reason: "but where they cannot be read, the cluster's word", to: "4.18.16", risk: firing("ClusterDown"), client: nothing(t), want: said{"ClusterDown": fails}},
		"Ignored": {
			reason: "unless it is ignored", to: "4.18.16", risk: firing("ClusterDown"), client: nothing(t),
			options: risk.Options{IgnoredAlerts: []string{"ClusterDown"}}, want: said{"ClusterDown": warns("Ignored")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			update := conditional(tc.to, tc.risk)
			version := clusterVersion(recommended(update, metav1.ConditionFalse, "ExposedToRisks", "x"))
			publish(version, nil)
			preview.Create(t, version)
			client := tc.client
			if client == nil {
				client = asking(quiet.URL)
			}
			if tc.risk.MatchingRules[0].PromQL != nil {
				client = asking(measured(t).URL)
			}
			got := checktest.Results(answer(t, preview, client, question{title: recommendedUpdate, to: tc.to, options: tc.options}))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
