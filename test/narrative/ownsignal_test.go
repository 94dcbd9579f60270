package narrative_test

import (
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/ownsignal"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/prometheus"
)

const (
	ownAlert = "UpdatePreflightBlocked"
	ownRisk  = "Preflight-4.19.1"
	storage  = "ClusterOperatorUpgradeable-storage"
	since423 = "RiskNameNotCompatibleWithReasonProperty"
)

// signals are the raised signals of the preflight; storage is true if the storage operator
// blocks minor updates.
type signals struct{ alert, operator, risk, storage bool }

// The own signals of the preflight, each alone and all together, do not affect its verdicts:
// Blocked, and Ready after the fix, while the signals of the first verdict are still raised.
func TestOwnSignalsAreNoInputs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		raised signals
	}{
		"None":     {reason: "without a switch", raised: signals{}},
		"Alert":    {reason: "the alert, and the risk that CVO derives from it", raised: signals{alert: true}},
		"Operator": {reason: "the ClusterOperator, the risk that CVO derives from it, and Upgradeable=False", raised: signals{operator: true}},
		"Risk":     {reason: "the risk of the source that CVO links", raised: signals{risk: true}},
		"All":      {reason: "all signals together", raised: signals{alert: true, operator: true, risk: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRiskEnvironment(t, &techPreview)
			e.evaluateRisks()
			healthy := e.state
			e.applySignals(healthy, signals{storage: true})
			first := e.evaluate(exit.Blocked, "4.19.1").expectFinding(storage, preflight.Fail, "VSphereTooOld")
			if !slices.Contains(first.verdict.Blocking, storage) {
				t.Errorf("%s: the first verdict: %+v", tc.reason, first.verdict)
			}

			raised := tc.raised
			raised.storage = true
			e.applySignals(healthy, raised)
			second := e.evaluate(exit.Blocked, "4.19.1").expectCauses(causes{blocking: []string{storage, "ClusterVersionUpgradeable"}})
			second.expectSkipped(tc.raised)

			e.applySignals(healthy, tc.raised)
			third := e.run(exit.Ready, "--to-image", e.state.Conditional[2].Release.Image).expectCauses(causes{})
			third.expectSkipped(tc.raised)
			if tc.raised.operator {
				third.expectFinding("ClusterVersionUpgradeable", preflight.Skipped, "OwnSignal").
					expectCVORejects("PreconditionChecks", ownsignal.Message("4.19.1 is Blocked."))
			}

			e.applySignals(healthy, signals{})
			e.evaluate(exit.Ready, "4.19.1").expectCauses(causes{}).expectNoFinding(ownsignal.OperatorRisk)
			if t.Failed() {
				t.Fatal(tc.reason)
			}
		})
	}
}

// An alert with the same name in another namespace blocks, and so does the risk that CVO derives
// from both alerts.
func TestSignalsOfOthersCount(t *testing.T) {
	t.Parallel()
	e := newRiskEnvironment(t, &techPreview)
	e.evaluateRisks()
	e.applySignals(e.state, signals{alert: true, operator: true})
	e.monitoring = prometheus.Run(t, append(riskMetrics(), ownRule(ownsignal.Namespace), ownRule("shop"))...).URL
	e.evaluate(exit.Blocked, "4.19.1").expectCauses(causes{blocking: []string{ownAlert}}).
		expectFinding(ownAlert, preflight.Fail, "AlertFiring").
		expectFinding(ownAlert, preflight.Skipped, "OwnSignal")
}

// expectSkipped expects a skipped finding of each raised signal.
func (r updateReport) expectSkipped(raised signals) {
	r.t.Helper()
	for name, expected := range map[string]bool{ownAlert: raised.alert, ownsignal.OperatorRisk: raised.operator, ownRisk: raised.risk} {
		if expected {
			r.expectFinding(name, preflight.Skipped, "OwnSignal")
		}
	}
}

// ownRule returns the rule of an alert with the name of the own alert, in a namespace.
func ownRule(namespace string) prometheus.Rule {
	return prometheus.Rule{
		Alert: ownAlert, Expr: "vector(1)",
		Labels: map[string]string{"severity": "warning", "openShiftUpdatePrecheck": "true", "namespace": namespace},
	}
}

// applySignals adds the signals, and what CVO derives from them, to a healthy state, and applies
// it.
func (e *environment) applySignals(healthy openshift.State, raised signals) {
	e.t.Helper()
	e.state = healthy
	e.state.Operators, e.state.Conditional, e.state.Risks = slices.Clone(healthy.Operators), slices.Clone(healthy.Conditional), slices.Clone(healthy.Risks)
	rules := riskMetrics()
	var causes []string
	if raised.alert {
		rules = append(rules, ownRule(ownsignal.Namespace))
		e.publishRisk(ownAlert, "Alert:firing")
	}
	if raised.operator {
		message := ownsignal.Message("4.19.1 is Blocked.")
		causes = append(causes, message)
		e.addBlockingOperator("update-preflight", ownsignal.NotReady, message)
		e.publishRisk(ownsignal.OperatorRisk, "MatchesRule")
	}
	if raised.risk {
		e.publishRisk(ownRisk, "PreflightBlocked")
	}
	if raised.storage {
		causes = append(causes, "vSphere 7 is not supported by 4.19")
		e.addBlockingOperator("storage", "VSphereTooOld", "vSphere 7 is not supported by 4.19")
		e.publishRisk(storage, "MatchesRule")
	}
	e.state.Conditions = upgradeable(causes)
	e.monitoring = prometheus.Run(e.t, rules...).URL
	e.apply()
}

// addBlockingOperator adds an operator that reports Upgradeable=False.
func (e *environment) addBlockingOperator(name, reason, message string) {
	e.state.Operators = append(e.state.Operators, operator(name, configv1.ClusterOperatorStatusCondition{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: reason, Message: message,
	}))
}

// publishRisk adds a risk of CVO to 4.19.1, which is then not recommended.
func (e *environment) publishRisk(name, reason string) {
	risk := configv1.ConditionalUpdateRisk{
		Name: name, URL: "https://example.com/" + name, Message: name + ".", MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
	}
	for i := range e.state.Conditional {
		update := &e.state.Conditional[i]
		if update.Release.Version != "4.19.1" {
			continue
		}
		update.Risks, update.RiskNames = append(slices.Clone(update.Risks), risk), append(slices.Clone(update.RiskNames), name)
		update.Conditions = slices.Clone(update.Conditions)
		update.Conditions[0].Status, update.Conditions[0].Reason = metav1.ConditionFalse, "ExposedToRisks"
	}
	e.state.Available = map[string]string{}
	risk.Conditions = []metav1.Condition{{Type: "Applies", Status: metav1.ConditionTrue, Reason: reason, Message: name, LastTransitionTime: metav1.Now()}}
	e.state.Risks = append(e.state.Risks, risk)
}

// upgradeable returns the condition of ClusterVersion that the CVO of 4.23 sets for these
// causes.
func upgradeable(causes []string) []configv1.ClusterOperatorStatusCondition {
	condition := configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: since423}
	switch len(causes) {
	case 0:
		return nil
	case 1:
		condition.Message = causes[0]
	default:
		condition.Reason = "MultipleReasons"
		condition.Message = "Cluster should not be upgraded between minor or major versions for multiple reasons:"
		for _, cause := range causes {
			condition.Message += "\n* " + cause
		}
	}
	return []configv1.ClusterOperatorStatusCondition{condition}
}
