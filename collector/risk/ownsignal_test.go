package risk_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/ownsignal"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/prometheus"
)

var ownSignal = checktest.Result{Outcome: preflight.Skipped, Reason: "OwnSignal"}

// precheck is a rule whose alert is a risk of updates, in a namespace.
func precheck(name, namespace string) prometheus.Rule {
	return alarm(name, "severity", "warning", "openShiftUpdatePrecheck", "true", "namespace", namespace)
}

func TestOwnAlerts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		rules  []prometheus.Rule
		want   map[string][]checktest.Result
	}{
		"Own": {
			reason: "own alerts do not count",
			rules: []prometheus.Rule{
				precheck("UpdatePreflightBlocked", ownsignal.Namespace),
				precheck("UpdatePreflightUnknown", ownsignal.Namespace),
			},
			want: map[string][]checktest.Result{"UpdatePreflightBlocked": {ownSignal}, "UpdatePreflightUnknown": {ownSignal}},
		},
		"OtherNamespace": {
			reason: "an alert of another namespace is not hidden by its name",
			rules:  []prometheus.Rule{precheck("UpdatePreflightBlocked", "shop"), precheck("UpdatePreflightBlocked", ownsignal.Namespace)},
			want:   map[string][]checktest.Result{"UpdatePreflightBlocked": {fires, ownSignal}},
		},
		"NoNamespace": {
			reason: "the namespace is required",
			rules:  []prometheus.Rule{alarm("UpdatePreflightBlocked", "openShiftUpdatePrecheck", "true")},
			want:   map[string][]checktest.Result{"UpdatePreflightBlocked": {fires}},
		},
		"OtherName": {
			reason: "another alert of the namespace counts",
			rules:  []prometheus.Rule{precheck("KubeContainerWaiting", ownsignal.Namespace)},
			want:   map[string][]checktest.Result{"KubeContainerWaiting": {fires}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string][]checktest.Result{}
			for _, f := range run(t, server, clientOf(shared.Load(t, tc.rules...).URL), "Alerts", "4.18.4") {
				got[f.Name] = append(got[f.Name], checktest.Result{Outcome: f.Outcome, Reason: f.Reason})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// fromPreflight is a risk as CVO has it from the preflight: of its alert, or of its source of risks.
func fromPreflight(name, message string, conditions ...metav1.Condition) configv1.ConditionalUpdateRisk {
	risk := ruled(name, always())
	risk.URL, risk.Message, risk.Conditions = ownsignal.URL, message, conditions
	return risk
}

// CVO publishes own signals as risks of every update, beside those of the update.
func TestOwnRisks(t *testing.T) {
	const target, alerting, ofTarget = "4.19.1", "UpdatePreflightBlocked", "Preflight-4.19.1"
	firing := []prometheus.Rule{precheck(alerting, ownsignal.Namespace)}
	applying := func(reason string) metav1.Condition { return condition("Applies", metav1.ConditionTrue, reason, "x") }
	assessed := func(name, reason string, rules ...configv1.ClusterCondition) configv1.ConditionalUpdateRisk {
		risk := ruled(name, rules...)
		risk.Conditions = []metav1.Condition{applying(reason)}
		return risk
	}
	ownAlert, own := fromPreflight(alerting, "x", applying("Alert:firing")), fromPreflight(ofTarget, "x", applying("PreflightBlocked"))
	with := func(risk configv1.ConditionalUpdateRisk, url string, rules ...configv1.ClusterCondition) configv1.ConditionalUpdateRisk {
		risk.URL, risk.MatchingRules = url, rules
		return risk
	}
	elsewhere := checktest.Result{Outcome: preflight.Skipped, Reason: "JudgedElsewhere"}
	for name, tc := range map[string]struct {
		reason string
		alerts []prometheus.Rule
		client *monitoring.Client // of the alerts by default
		risks  []configv1.ConditionalUpdateRisk
		want   results
	}{
		"All": {
			reason: "the risks of all switches", alerts: firing,
			risks: []configv1.ConditionalUpdateRisk{assessed(ownsignal.OperatorRisk, "MatchesRule", always()), ownAlert, own},
			want:  results{ownsignal.OperatorRisk: ownSignal, alerting: ownSignal, ofTarget: ownSignal},
		},
		"Resolved": {
			reason: "CVO repeats an alert that no longer fires",
			risks:  []configv1.ConditionalUpdateRisk{ownAlert}, want: results{alerting: ownSignal},
		},
		"AlertNotAssessed": {
			reason: "CVO has not assessed the risk of the own alert", alerts: firing,
			risks: []configv1.ConditionalUpdateRisk{fromPreflight(alerting, "x")}, want: results{alerting: ownSignal},
		},
		"Foreign": {
			reason: "an alert of another namespace has the same name, so the check of the alerts judges it",
			alerts: append(slices.Clone(firing), precheck(alerting, "shop")),
			risks:  []configv1.ConditionalUpdateRisk{ownAlert}, want: results{recommendedUpdate: elsewhere},
		},
		"OtherRunbook": {
			reason: "CVO repeats an alert of another namespace, which the check of the alerts judges", alerts: firing,
			risks: []configv1.ConditionalUpdateRisk{assessed(alerting, "Alert:firing", always())}, want: results{recommendedUpdate: elsewhere},
		},
		"Unread": {
			reason: "the namespace of the alert is unknown", client: noMonitoring(t),
			risks: []configv1.ConditionalUpdateRisk{ownAlert}, want: results{alerting: fails},
		},
		"OfTheUpdateService": {
			reason: "the update service declares risks with own names", alerts: firing,
			risks: []configv1.ConditionalUpdateRisk{
				assessed(alerting, "MatchesRule", always()), assessed(ofTarget, "MatchesRule", always()),
				assessed("Preflight-4.19.2", "PreflightBlocked", always()),
			},
			want: results{alerting: fails, ofTarget: fails, "Preflight-4.19.2": fails},
		},
		"WithAnOwnReason": {
			reason: "CVO keeps the conditions that a risk has in the update graph", alerts: firing,
			risks: []configv1.ConditionalUpdateRisk{assessed(ofTarget, "PreflightBlocked", always())}, want: results{ofTarget: fails},
		},
		"WithAQuery": {
			reason: "CVO sets no query for own risks", alerts: firing,
			risks: []configv1.ConditionalUpdateRisk{with(own, ownsignal.URL, rule("vector(1)"))}, want: results{ofTarget: fails},
		},
		"WithTwoRules": {
			reason: "own risks have one rule", alerts: firing,
			risks: []configv1.ConditionalUpdateRisk{with(own, ownsignal.URL, always(), always())}, want: results{ofTarget: fails},
		},
		"Beside": {
			reason: "a risk of the update counts, too", alerts: firing,
			risks: []configv1.ConditionalUpdateRisk{own, assessed("A", "MatchesRule", always())},
			want:  results{ofTarget: ownSignal, "A": fails},
		},
	} {
		t.Run(name, func(t *testing.T) {
			update := recommended(conditional(target, tc.risks...), metav1.ConditionFalse, "MultipleReasons", "x")
			client := tc.client
			if client == nil {
				client = clientOf(shared.Load(t, tc.alerts...).URL)
			}
			got := checktest.Results(run(t, serving(t, clusterVersion(update)), client, recommendedUpdate, target))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// The risk of the target is own in each of its forms, also where CVO has not kept, or not yet set, the reason of
// its source.
func TestOwnRiskOfTarget(t *testing.T) {
	const target, name = "4.19.1", "Preflight-4.19.1"
	outdated := condition("Applies", metav1.ConditionTrue, "PreflightBlocked", "x")
	outdated.ObservedGeneration = 1
	for form, message := range map[string]string{
		"Outdated":   "the preflight of 4.19.1 is out of date; run: oc preflight run --to 4.19.1",
		"InProgress": "the preflight of 4.19.1 is in progress; see: oc preflight status --to 4.19.1",
		"Blocked":    "the preflight of 4.19.1 is Blocked by A; see: oc preflight status --to 4.19.1",
	} {
		for published, tc := range map[string]struct {
			reason  string
			applies []metav1.Condition
		}{
			"NotAssessed":     {reason: "only Recommended of the update is published, whose reason is the name of the risk"},
			"OutdatedApplies": {"the condition is of an earlier spec", []metav1.Condition{outdated}},
			"Match":           {"CVO has evaluated the rule", []metav1.Condition{matching()}},
			"NotMatch":        {"CVO has not evaluated the risk of the source yet", []metav1.Condition{sparing()}},
			"EvaluationFailed": {"CVO could not evaluate the rule", []metav1.Condition{condition("Applies", metav1.ConditionUnknown,
				"EvaluationFailed", "Could not evaluate exposure to update risk "+name)}},
		} {
			t.Run(form+"/"+published, func(t *testing.T) {
				risk := fromPreflight(name, message, tc.applies...)
				version := clusterVersion(recommended(conditional(target, risk), metav1.ConditionFalse, name, message+" "+risk.URL))
				version.Generation, version.Status.ObservedGeneration = 2, 2
				got := checktest.Results(run(t, serving(t, version), noMonitoring(t), recommendedUpdate, target))
				if diff := cmp.Diff(results{name: ownSignal}, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// Of several entries for the update, one with a risk of the same name that is not own counts.
func TestOwnRiskOfOneEntry(t *testing.T) {
	const target, name = "4.19.1", "Preflight-4.19.1"
	foreign := ruled(name, always())
	foreign.Conditions = []metav1.Condition{matching()}
	entry := func(risk configv1.ConditionalUpdateRisk) configv1.ConditionalUpdate {
		return recommended(conditional(target, risk), metav1.ConditionFalse, name, "x")
	}
	version := clusterVersion(entry(fromPreflight(name, "x", matching())), entry(foreign))
	got := checktest.Results(run(t, serving(t, version), noMonitoring(t), recommendedUpdate, target))
	if got[name] != fails {
		t.Errorf("the result is %+v, want %+v", got[name], fails)
	}
}
