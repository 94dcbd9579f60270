package gate

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
)

// Upgradeable is CVO's precondition that reads the condition Upgradeable of
// ClusterVersion: False keeps from leaving the minor version, whatever was
// accepted. CVO lets Unknown pass, which only says that it could not evaluate
// one of the causes; here that is Unknown too.
func Upgradeable() check.Check {
	return check.Check{
		Name: "ClusterVersionUpgradeable", Kind: finding.SourceGate,
		Reads: clusterVersionReads(),
		Run:   onClusterVersion(fresh(judgeUpgradeable)),
	}
}

func judgeUpgradeable(s situation) []finding.Finding {
	condition := s.condition(configv1.OperatorUpgradeable)
	objection := cvo.Upgradeable(s.version, s.target())
	switch {
	case objection != nil && objection.Weight != cvo.Warning: // the warnings are those of ClusterVersionOverrides and ClusterVersionUpdating
		return []finding.Finding{s.notUpgradeable(objection)}
	case !s.move.LeavesMinor():
		return s.notLeaving(fmt.Sprintf("Upgradeable=%s of ClusterVersion", orAbsent(condition.Status)))
	case condition.Status == "" || condition.Status == configv1.ConditionTrue:
		return []finding.Finding{finding.Pass(ReasonUpgradeable,
			"the condition Upgradeable of ClusterVersion, which CVO removes when all is well, is %s", orAbsent(condition.Status))}
	}
	return []finding.Finding{finding.Unknown(finding.Reason(either(condition.Reason, "EvaluationFailed")),
		"CVO could not tell whether the cluster may leave %s: Upgradeable=%s of ClusterVersion: %s", s.minor(), condition.Status, either(condition.Message, "it does not say why")).
		Remedy("See what CVO could not evaluate: oc -n openshift-cluster-version logs deployment/cluster-version-operator. CVO itself would let the update pass; --force goes on without an answer.")}
}

// notUpgradeable keeps CVO's message as it is. Up to 4.22 the causes have
// conditions of their own; what the message leaves out is added from there. A
// reason that names no cause is left to the evidence.
func (s situation) notUpgradeable(objection *cvo.Objection) finding.Finding {
	f := refused(objection, fmt.Sprintf("Put right what the message names, or acknowledge it where it is an admin ack: oc adm upgrade. "+
		"It blocks updates that leave %s; the newest release within it can be had meanwhile: oc preflight targets. Accepting risks does not get past it, only --force does.", s.minor()))
	if slices.Contains([]string{"MultipleReasons", "RiskNameNotCompatibleWithReasonProperty"}, f.Reason) {
		f.Reason = "UpgradeableFalse" // as oc adm upgrade recommend calls it
	}
	f.Evidence = map[string]string{}
	for _, condition := range s.version.Status.Conditions {
		if !strings.HasPrefix(string(condition.Type), "Upgradeable") || condition.Status != configv1.ConditionFalse {
			continue
		}
		f.Evidence[string(condition.Type)] = fmt.Sprintf("%s: %s", condition.Reason, condition.Message)
		if condition.Message != "" && !strings.Contains(f.Message, condition.Message) {
			f.Message += fmt.Sprintf("\n* %s: %s", condition.Reason, condition.Message)
		}
	}
	if f.Message == "" {
		f.Message = fmt.Sprintf("Upgradeable=False of ClusterVersion keeps the cluster in %s, and does not say why", s.minor())
	}
	return f
}

func orAbsent(status configv1.ConditionStatus) string { return either(string(status), "absent") }

// either is what is given, or else what stands in for it.
func either(given, otherwise string) string {
	if given == "" {
		return otherwise
	}
	return given
}
