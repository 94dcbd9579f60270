package gate

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// RetrievedUpdates asks whether what the cluster knows of updates and their
// risks is current. Where it is not, nobody can tell whether there are risks:
// that is Unknown. A disconnected cluster may never retrieve them, so it may be
// accepted by name, with that of `oc adm upgrade recommend`.
func RetrievedUpdates(cluster *snapshot.Cluster, u update.Update) check.Check {
	return check.Check{
		Title: "CannotRetrieveUpdates", Kind: preflight.SourceRisk, Update: u,
		Look: onClusterVersion(cluster, u, fresh(judgeRetrieved)),
	}
}

func judgeRetrieved(s situation) []preflight.Finding {
	condition := s.condition(configv1.RetrievedUpdates)
	if condition.Status == configv1.ConditionTrue {
		return []preflight.Finding{{
			Outcome: preflight.Pass, Reason: "Retrieved",
			Message: fmt.Sprintf("the cluster has the updates and risks of channel %q", s.version.Spec.Channel),
		}}
	}
	return []preflight.Finding{{
		Outcome: preflight.Unknown, Reason: either(condition.Reason, "NotRetrieved"),
		Message: fmt.Sprintf("RetrievedUpdates of ClusterVersion is %s, so the updates and risks that the cluster knows of may not be current: %s",
			orAbsent(condition.Status), either(condition.Message, "it does not say why")),
		Remediation: "Have the cluster reach its update service, and see whether it does: oc adm upgrade. Its channel is set with: oc adm upgrade channel CHANNEL. " +
			"Where there is no update service, look up the known issues of the release yourself and accept the risk: --accept CannotRetrieveUpdates",
	}}
}
