package gate

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Failing is a cluster that CVO cannot bring to where it should be already. CVO
// does not refuse to update it, `oc adm upgrade` does. It may be accepted by
// name, with that of `oc adm upgrade recommend`: the target may be the remedy.
// While an update is in progress it is a warning only, since another target in
// the same minor version is then most likely meant as the remedy.
func Failing(cluster *snapshot.Cluster, u update.Update) check.Check {
	return check.Check{
		Title: "Failing", Kind: preflight.SourceRisk, Update: u,
		Look: onClusterVersion(cluster, u, fresh(judgeFailing)),
	}
}

func judgeFailing(s situation) []preflight.Finding {
	condition := s.condition("Failing")
	switch condition.Status {
	case configv1.ConditionFalse:
		return []preflight.Finding{{
			Outcome: preflight.Pass, Reason: "AsExpected",
			Message: fmt.Sprintf("CVO reconciles %s without failing", s.move.From),
		}}
	case configv1.ConditionTrue:
		finding := preflight.Finding{
			Outcome: preflight.Fail, Reason: either(condition.Reason, "Failing"),
			Message:     fmt.Sprintf("CVO fails to reconcile %s: %s", s.move.From, either(condition.Message, "it does not say why")),
			Remediation: "Put right what the message names: oc adm upgrade. Where the target is the remedy, accept the risk: --accept Failing; oc then asks for --allow-upgrade-with-warnings.",
		}
		if s.condition(configv1.OperatorProgressing).Status == configv1.ConditionTrue && !s.move.LeavesMinor() {
			finding.Outcome = preflight.Warn
		}
		return []preflight.Finding{finding}
	case configv1.ConditionUnknown:
	}
	return []preflight.Finding{{
		Outcome: preflight.Unknown, Reason: either(condition.Reason, "NotReported"),
		Message:     fmt.Sprintf("the condition Failing of ClusterVersion is %s: %s", orAbsent(condition.Status), either(condition.Message, "nobody can tell whether CVO fails")),
		Remediation: "See whether CVO is running: oc -n openshift-cluster-version get pods. Or accept the risk: --accept Failing",
	}}
}
