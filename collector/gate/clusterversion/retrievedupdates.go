package clusterversion

import (
	"cmp"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
)

var (
	nameCannotRetrieveUpdates = finding.NewName("CannotRetrieveUpdates",
		"The condition RetrievedUpdates of ClusterVersion: whether the updates and risks that the cluster knows "+
			"are current. Otherwise it is unknown whether there are risks; the finding has CVO's own reason. It "+
			"concerns every update. A disconnected cluster may never retrieve them, so the finding may be accepted by "+
			"name, as with `oc adm upgrade recommend`.")

	reasonRetrieved = finding.NewReason("Retrieved", finding.Explanation{
		Meaning: "Reported when the cluster has the updates and risks of its channel.",
		Cause:   "The condition RetrievedUpdates of ClusterVersion is True.",
	})
	reasonNotRetrieved = finding.NewReason("NotRetrieved", finding.Explanation{
		Meaning: "Reported when CVO could not retrieve the updates of the channel, and gives no reason of its own.",
		Cause:   "The update service cannot be reached, or no channel is set.",
		Remedy: "Let the cluster reach its update service: `oc adm upgrade. Without an update service, read the known " +
			"issues of the release and accept the risk: preflight accept CannotRetrieveUpdates`.",
	})
)

// RetrievedUpdates is the check CannotRetrieveUpdates.
func RetrievedUpdates() check.Check {
	return check.Check{
		Name: nameCannotRetrieveUpdates, Kind: finding.SourceRisk, NotHosted: "HyperShift does not require that an update service lists the update",
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(current(judgeRetrieved)),
	}
}

func judgeRetrieved(s situation) []finding.Finding {
	condition := s.condition(configv1.RetrievedUpdates)
	if condition.Status == configv1.ConditionTrue {
		return []finding.Finding{finding.Pass(reasonRetrieved, "the cluster has the updates and risks of channel %q", s.version.Spec.Channel)}
	}
	f := finding.Unknown(cmp.Or(finding.ReportedReason(condition.Reason), reasonNotRetrieved),
		"RetrievedUpdates of ClusterVersion is %s, so the updates and risks that the cluster knows may be out of date: %s",
		orAbsent(condition.Status), cmp.Or(condition.Message, "no message")).
		Remedy("Set the channel, and let the cluster reach its update service. If it has none, read the known issues of the release and accept the risk.").
		Do(finding.Run("oc adm upgrade"))
	if s.version.Spec.Channel == "" {
		f = f.Do(finding.Run("oc adm upgrade channel stable-%s", s.minor()))
	}
	return []finding.Finding{f.Do(finding.Accept("CannotRetrieveUpdates"))}
}
