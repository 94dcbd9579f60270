package commands_test

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

// The own signals of the preflight do not affect its verdicts: Blocked, and Ready after the fix, while the signals
// of the first verdict are still raised. Each alone is tested by collector/risk and collector/gate/clusterversion.
func TestOwnSignalsAreNoInputs(t *testing.T) {
	e := newRiskEnvironment(t, &techPreview)
	e.evaluateRisks()
	healthy := e.state
	e.applySignals(healthy, signals{storage: true})
	first := e.evaluate(exit.Blocked, "4.19.1").expectFinding(storage, preflight.Fail, "VSphereTooOld")
	if !slices.Contains(first.verdict.Blocking, storage) {
		t.Errorf("the first verdict: %+v", first.verdict)
	}

	e.applySignals(healthy, signals{alert: true, operator: true, risk: true, storage: true})
	e.evaluate(exit.Blocked, "4.19.1").expectCauses(causes{blocking: []string{storage, "ClusterVersionUpgradeable"}}).expectAllSkipped()

	e.applySignals(healthy, signals{alert: true, operator: true, risk: true})
	e.run(exit.Ready, "--to-image", e.state.Conditional[2].Release.Image).expectCauses(causes{}).expectAllSkipped().
		expectFinding("ClusterVersionUpgradeable", preflight.Skipped, "OwnSignal").
		expectCVORejects("PreconditionChecks", ownsignal.Message("4.19.1 is Blocked."))

	e.applySignals(healthy, signals{})
	e.evaluate(exit.Ready, "4.19.1").expectCauses(causes{}).expectNoFinding(ownsignal.OperatorRisk)
}

// expectAllSkipped expects a skipped finding of each signal.
func (r updateReport) expectAllSkipped() updateReport {
	r.t.Helper()
	for _, name := range []string{ownAlert, ownsignal.OperatorRisk, ownRisk} {
		r.expectFinding(name, preflight.Skipped, "OwnSignal")
	}
	return r
}

// ownRule returns the rule of the own alert.
func ownRule() prometheus.Rule {
	return prometheus.Rule{
		Alert: ownAlert, Expr: "vector(1)",
		Labels:      map[string]string{"severity": "warning", "openShiftUpdatePrecheck": "true", "namespace": ownsignal.Namespace},
		Annotations: map[string]string{"runbook_url": ownsignal.URL},
	}
}

// applySignals adds the signals, and what CVO derives from them, to a healthy state, and applies
// it.
func (e *environment) applySignals(healthy openshift.State, raised signals) {
	e.t.Helper()
	e.state = healthy
	e.state.Operators, e.state.Conditional, e.state.Risks = slices.Clone(healthy.Operators), slices.Clone(healthy.Conditional),
		slices.Clone(healthy.Risks)
	rules := riskMetrics()
	var causes []string
	if raised.alert {
		rules = append(rules, ownRule())
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
	e.monitoring = monitoring.Load(e.t, rules...).URL
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
		Name: name, URL: ownsignal.URL, Message: name + ".", MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
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
	risk.Conditions = []metav1.Condition{{
		Type: "Applies", Status: metav1.ConditionTrue, Reason: reason, Message: name,
		LastTransitionTime: metav1.Now(),
	}}
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
