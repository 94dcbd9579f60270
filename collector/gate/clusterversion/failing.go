package clusterversion

import (
	"cmp"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	nameFailing = finding.NewName("Failing",
		"The condition Failing of ClusterVersion: CVO cannot reconcile the current release. The finding has CVO's "+
			"own reason. It concerns every update. CVO does not refuse to update such a cluster, `oc adm upgrade` "+
			"does. The finding may be accepted by name, as with `oc adm upgrade recommend`, since the target may have "+
			"the fix. While an update is in progress it is a warning for another target in the same minor version, "+
			"which is most likely meant as the fix.")

	reasonAsExpected = finding.NewReason("AsExpected", finding.Explanation{
		Meaning: "Reported when CVO reconciles the current release without failing.",
		Cause:   "The condition Failing of ClusterVersion is False.",
	})
	reasonFailing = finding.NewReason("Failing", finding.Explanation{
		Meaning: "Reported when CVO fails to reconcile the current release and gives no reason of its own.",
		Cause:   "The condition Failing of ClusterVersion is True.",
		Remedy:  "Fix what the message names: `oc adm upgrade`.",
	})
)

// Failing is the check Failing.
func Failing() check.Check {
	return check.Check{
		Name: nameFailing, Kind: finding.SourceRisk,
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(current(judgeFailing)),
	}
}

func judgeFailing(s situation) []finding.Finding {
	condition := s.condition("Failing")
	switch condition.Status {
	case configv1.ConditionFalse:
		return []finding.Finding{finding.Pass(reasonAsExpected, "CVO reconciles %s without failing", s.update.From)}
	case configv1.ConditionTrue:
		outcome := preflight.Fail
		if s.condition(configv1.OperatorProgressing).Status == configv1.ConditionTrue && !s.update.LeavesMinor() {
			outcome = preflight.Warn
		}
		return []finding.Finding{finding.New(outcome, cmp.Or(finding.ReportedReason(condition.Reason), reasonFailing),
			"CVO fails to reconcile %s: %s", s.update.From, cmp.Or(condition.Message, "no message")).
			Remedy("Fix what the message names. If the target has the fix, accept the risk; \"oc adm upgrade\" then requires --allow-upgrade-with-warnings.").
			Do(finding.Run("oc adm upgrade"), finding.Accept("Failing"))}
	case configv1.ConditionUnknown:
	}
	return []finding.Finding{finding.Unknown(cmp.Or(finding.ReportedReason(condition.Reason), reasonNotReported),
		"the condition Failing of ClusterVersion is %s: %s", orAbsent(condition.Status), cmp.Or(condition.Message, "unknown whether CVO fails")).
		Remedy("Check that CVO is running, or accept the risk.").
		Do(check.CVOPods(), finding.Accept("Failing"))}
}
