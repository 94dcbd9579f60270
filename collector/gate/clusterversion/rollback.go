package clusterversion

import (
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
)

var (
	nameClusterVersionRollback = finding.NewName("ClusterVersionRollback",
		"CVO's precondition ClusterVersionRollback: a release before the present one cannot be a target, except "+
			"the cluster's previous release within the same minor version, which some releases of CVO allow. The "+
			"finding has CVO's own reason. It concerns every update.")

	reasonPreviousRelease = finding.NewReason("PreviousRelease", finding.Explanation{
		Meaning: "Reported when the target is the previous release of the cluster, to which its CVO allows a rollback.",
		Cause:   "The target is an earlier patch release of the same minor version.",
		Remedy:  "Prefer a later release with the fix.",
	})
	reasonNotBefore = finding.NewReason("NotBefore", finding.Explanation{
		Meaning: "Reported when the update is not a rollback.",
		Cause:   "The target is not earlier than status.desired of ClusterVersion.",
	})
)

// Rollback is the check ClusterVersionRollback.
func Rollback() check.Check {
	return check.Check{
		Name: nameClusterVersionRollback, Kind: finding.SourceGate, NotHosted: "HostedClusterVersion compares the versions",
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(current(judgeRollback)),
	}
}

func judgeRollback(s situation) []finding.Finding {
	violation := cvo.Rollback(s.version, s.target())
	switch {
	case violation != nil:
		return []finding.Finding{violated(*violation).
			Remedy("Choose a release that is not before %s. A forced rollback is neither tested nor supported.", s.update.From).
			Do(finding.Targets())}
	case s.update.Kind() == update.Rollback:
		return []finding.Finding{finding.Warn(reasonPreviousRelease,
			"%s is the cluster's previous release; a rollback from %s reverts the fixes made since", s.target(), s.update.From).
			Do(finding.Targets())}
	}
	return []finding.Finding{finding.Pass(s.read, reasonNotBefore, "%s is not before %s, the version in status.desired of ClusterVersion", s.target(), s.update.From)}
}
