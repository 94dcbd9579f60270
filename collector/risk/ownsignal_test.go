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
			rules:  []prometheus.Rule{precheck("UpdatePreflightBlocked", ownsignal.Namespace), precheck("UpdatePreflightUnknown", ownsignal.Namespace)},
			want:   map[string][]checktest.Result{"UpdatePreflightBlocked": {ownSignal}, "UpdatePreflightUnknown": {ownSignal}},
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

// CVO publishes own signals as risks of every update, beside those of the update.
func TestOwnRisks(t *testing.T) {
	const target, alerting, ofTarget = "4.19.1", "UpdatePreflightBlocked", "Preflight-4.19.1"
	firing := []prometheus.Rule{precheck(alerting, ownsignal.Namespace)}
	assessed := func(name, reason string, rules ...configv1.ClusterCondition) configv1.ConditionalUpdateRisk {
		risk := ruled(name, rules...)
		risk.Conditions = []metav1.Condition{condition("Applies", metav1.ConditionTrue, reason, "x")}
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
			risks: []configv1.ConditionalUpdateRisk{
				assessed(ownsignal.OperatorRisk, "MatchesRule", always()), assessed(alerting, "Alert:firing", always()), assessed(ofTarget, "PreflightBlocked", always()),
			},
			want: results{ownsignal.OperatorRisk: ownSignal, alerting: ownSignal, ofTarget: ownSignal},
		},
		"Resolved": {
			reason: "CVO repeats an alert that no longer fires",
			risks:  []configv1.ConditionalUpdateRisk{assessed(alerting, "Alert:firing", always())}, want: results{alerting: ownSignal},
		},
		"Foreign": {
			reason: "an alert of another namespace has the same name, so the check of the alerts judges it", alerts: append(slices.Clone(firing), precheck(alerting, "shop")),
			risks: []configv1.ConditionalUpdateRisk{assessed(alerting, "Alert:firing", always())}, want: results{recommendedUpdate: elsewhere},
		},
		"Unread": {
			reason: "the namespace of the alert is unknown", client: noMonitoring(t),
			risks: []configv1.ConditionalUpdateRisk{assessed(alerting, "Alert:firing", always())}, want: results{alerting: fails},
		},
		"OfTheUpdateService": {
			reason: "the update service declares risks with own names", alerts: firing,
			risks: []configv1.ConditionalUpdateRisk{assessed(alerting, "MatchesRule", always()), assessed(ofTarget, "MatchesRule", always()), assessed("Preflight-4.19.2", "PreflightBlocked", always())},
			want:  results{alerting: fails, ofTarget: fails, "Preflight-4.19.2": fails},
		},
		"WithAQuery": {
			reason: "CVO sets no query for own risks", alerts: firing,
			risks: []configv1.ConditionalUpdateRisk{assessed(ofTarget, "PreflightBlocked", rule("vector(1)"))}, want: results{ofTarget: fails},
		},
		"Beside": {
			reason: "a risk of the update counts, too", alerts: firing,
			risks: []configv1.ConditionalUpdateRisk{assessed(ofTarget, "PreflightBlocked", always()), assessed("A", "MatchesRule", always())},
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
