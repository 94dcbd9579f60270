package gate

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const ReasonAsExpected finding.Reason = "AsExpected"

// Failing is a cluster that CVO cannot bring to where it should be already. CVO
// does not refuse to update it, `oc adm upgrade` does. It may be accepted by
// name, with that of `oc adm upgrade recommend`: the target may be the remedy.
// While an update is in progress it is a warning only, since another target in
// the same minor version is then most likely meant as the remedy.
func Failing() check.Check {
	return check.Check{
		Name: "Failing", Kind: finding.SourceRisk,
		Reads: clusterVersionReads(),
		Run:   onClusterVersion(fresh(judgeFailing)),
	}
}

func judgeFailing(s situation) []finding.Finding {
	condition := s.condition("Failing")
	switch condition.Status {
	case configv1.ConditionFalse:
		return []finding.Finding{finding.Pass(ReasonAsExpected, "CVO reconciles %s without failing", s.move.From)}
	case configv1.ConditionTrue:
		f := finding.Fail(finding.Reason(either(condition.Reason, "Failing")),
			"CVO fails to reconcile %s: %s", s.move.From, either(condition.Message, "it does not say why")).
			Remedy("Put right what the message names: oc adm upgrade. Where the target is the remedy, accept the risk: --accept Failing; oc then asks for --allow-upgrade-with-warnings.")
		if s.condition(configv1.OperatorProgressing).Status == configv1.ConditionTrue && !s.move.LeavesMinor() {
			f.Outcome = preflight.Warn
		}
		return []finding.Finding{f}
	case configv1.ConditionUnknown:
	}
	return []finding.Finding{finding.Unknown(finding.Reason(either(condition.Reason, "NotReported")),
		"the condition Failing of ClusterVersion is %s: %s", orAbsent(condition.Status), either(condition.Message, "nobody can tell whether CVO fails")).
		Remedy("See whether CVO is running: oc -n openshift-cluster-version get pods. Or accept the risk: --accept Failing")}
}
