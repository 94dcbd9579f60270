package narrative_test

import (
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/ownsignal"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/prometheus"
)

const (
	ownAlert = "UpdatePreflightBlocked"
	ownRisk  = "Preflight-4.19.1"
	storage  = "ClusterOperatorUpgradeable-storage"
	since423 = "RiskNameNotCompatibleWithReasonProperty"
)

// signals are those that the preflight has raised, and whether the storage operator
// blocks minor updates.
type signals struct{ alert, operator, risk, storage bool }

// Blocked, fixed, Ready, while the preflight's own signals are raised by the first
// verdict and end only after the last one: each of them alone, and all.
func TestOwnSignalsAreNoInputs(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		reason string
		raised signals
	}{
		"None":     {reason: "without a switch", raised: signals{}},
		"Alert":    {reason: "the alert, and the risk that CVO makes of it", raised: signals{alert: true}},
		"Operator": {reason: "the ClusterOperator, the risk that CVO makes of it, and Upgradeable=False", raised: signals{operator: true}},
		"Risk":     {reason: "the risk of the source that CVO links", raised: signals{risk: true}},
		"All":      {reason: "all signals together", raised: signals{alert: true, operator: true, risk: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storied(t, &techPreview)
			s.evaluated()
			well := s.state
			s.signal(well, signals{storage: true})
			first := s.explain(blocked, "4.19.1").finds(storage, preflight.Fail, "VSphereTooOld")
			if !slices.Contains(first.verdict.Blocking, storage) {
				t.Errorf("%s: the first verdict: %+v", story.reason, first.verdict)
			}

			raised := story.raised
			raised.storage = true
			s.signal(well, raised)
			second := s.explain(blocked, "4.19.1").because(names{blocking: []string{storage, "ClusterVersionUpgradeable"}})
			second.areSkipped(story.raised)

			s.signal(well, story.raised)
			third := s.run(ready, "--to-image", s.state.Conditional[2].Release.Image).because(names{})
			third.areSkipped(story.raised)
			if story.raised.operator {
				third.finds("ClusterVersionUpgradeable", preflight.Skipped, "OwnSignal").
					cvoRefuses("PreconditionChecks", ownsignal.Message("4.19.1 is Blocked."))
			}

			s.signal(well, signals{})
			s.explain(ready, "4.19.1").because(names{}).lacks(ownsignal.OperatorRisk)
			if t.Failed() {
				t.Fatal(story.reason)
			}
		})
	}
}

// An alert of another namespace blocks in spite of its name, and so does the risk that
// CVO makes of both.
func TestSignalsOfOthersCount(t *testing.T) {
	t.Parallel()
	s := storied(t, &techPreview)
	s.evaluated()
	s.signal(s.state, signals{alert: true, operator: true})
	s.monitoring = prometheus.Run(t, append(measured(), ownRule(ownsignal.Namespace), ownRule("shop"))...).URL
	s.explain(blocked, "4.19.1").because(names{blocking: []string{ownAlert}}).
		finds(ownAlert, preflight.Fail, "AlertFiring").
		finds(ownAlert, preflight.Skipped, "OwnSignal")
}

// areSkipped expects that each signal is reported, and does not count.
func (o decided) areSkipped(raised signals) {
	o.t.Helper()
	for name, is := range map[string]bool{ownAlert: raised.alert, ownsignal.OperatorRisk: raised.operator, ownRisk: raised.risk} {
		if is {
			o.finds(name, preflight.Skipped, "OwnSignal")
		}
	}
}

func ownRule(namespace string) prometheus.Rule {
	return prometheus.Rule{
		Alert: ownAlert, Expr: "vector(1)",
		Labels: map[string]string{"severity": "warning", "openShiftUpdatePrecheck": "true", "namespace": namespace},
	}
}

// signal has the cluster show the signals, and what CVO makes of them.
func (s *scene) signal(well openshift.State, raised signals) {
	s.t.Helper()
	s.state = well
	s.state.Operators, s.state.Conditional, s.state.Risks = slices.Clone(well.Operators), slices.Clone(well.Conditional), slices.Clone(well.Risks)
	rules := measured()
	var causes []string
	if raised.alert {
		rules = append(rules, ownRule(ownsignal.Namespace))
		s.publishRisk(ownAlert, "Alert:firing")
	}
	if raised.operator {
		message := ownsignal.Message("4.19.1 is Blocked.")
		causes = append(causes, message)
		s.close("update-preflight", ownsignal.NotReady, message)
		s.publishRisk(ownsignal.OperatorRisk, "MatchesRule")
	}
	if raised.risk {
		s.publishRisk(ownRisk, "PreflightBlocked")
	}
	if raised.storage {
		causes = append(causes, "vSphere 7 is not supported by 4.19")
		s.close("storage", "VSphereTooOld", "vSphere 7 is not supported by 4.19")
		s.publishRisk(storage, "MatchesRule")
	}
	s.state.Conditions = upgradeable(causes)
	s.monitoring = prometheus.Run(s.t, rules...).URL
	s.apply()
}

// close adds an operator that reports Upgradeable=False.
func (s *scene) close(name, reason, message string) {
	s.state.Operators = append(s.state.Operators, operator(name, configv1.ClusterOperatorStatusCondition{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: reason, Message: message,
	}))
}

// publishRisk adds a risk that CVO itself makes to 4.19.1, which is then no longer
// recommended.
func (s *scene) publishRisk(name, reason string) {
	risk := configv1.ConditionalUpdateRisk{
		Name: name, URL: "https://example.com/" + name, Message: name + ".", MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
	}
	for i := range s.state.Conditional {
		update := &s.state.Conditional[i]
		if update.Release.Version != "4.19.1" {
			continue
		}
		update.Risks, update.RiskNames = append(slices.Clone(update.Risks), risk), append(slices.Clone(update.RiskNames), name)
		update.Conditions = slices.Clone(update.Conditions)
		update.Conditions[0].Status, update.Conditions[0].Reason = metav1.ConditionFalse, "ExposedToRisks"
	}
	s.state.Available = map[string]string{}
	risk.Conditions = []metav1.Condition{{Type: "Applies", Status: metav1.ConditionTrue, Reason: reason, Message: name, LastTransitionTime: metav1.Now()}}
	s.state.Risks = append(s.state.Risks, risk)
}

// upgradeable is the condition of ClusterVersion that the CVO of 4.23 has for these
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
