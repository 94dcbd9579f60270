package gate

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
)

const ReasonRetrieved finding.Reason = "Retrieved"

// RetrievedUpdates asks whether what the cluster knows of updates and their
// risks is current. Where it is not, nobody can tell whether there are risks:
// that is Unknown. A disconnected cluster may never retrieve them, so it may be
// accepted by name, with that of `oc adm upgrade recommend`.
func RetrievedUpdates() check.Check {
	return check.Check{
		Name: "CannotRetrieveUpdates", Kind: finding.SourceRisk,
		Reads: clusterVersionReads(),
		Run:   onClusterVersion(fresh(judgeRetrieved)),
	}
}

func judgeRetrieved(s situation) []finding.Finding {
	condition := s.condition(configv1.RetrievedUpdates)
	if condition.Status == configv1.ConditionTrue {
		return []finding.Finding{finding.Pass(ReasonRetrieved, "the cluster has the updates and risks of channel %q", s.version.Spec.Channel)}
	}
	return []finding.Finding{finding.Unknown(finding.Reason(either(condition.Reason, "NotRetrieved")),
		"RetrievedUpdates of ClusterVersion is %s, so the updates and risks that the cluster knows of may not be current: %s", orAbsent(condition.Status), either(condition.Message, "it does not say why")).
		Remedy("Have the cluster reach its update service, and see whether it does: oc adm upgrade. Its channel is set with: oc adm upgrade channel CHANNEL. Where there is no update service, look up the known issues of the release yourself and accept the risk: --accept CannotRetrieveUpdates")}
}
