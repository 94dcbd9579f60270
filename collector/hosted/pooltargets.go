package hosted

import (
	"context"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	namePoolTargets = finding.NewName("NodePoolTargets",
		"The releases that the NodePools which are named for an update may go to: HyperShift accepts no minor version before that "+
			"of the pool, none after the newest one that the control plane has had, and none that the hypershift-operator does not support (condition ValidReleaseImage of the NodePool).")

	reasonPoolTargets = finding.NewReason("NodePoolTargets", finding.Explanation{
		Meaning: "Reported with the releases that a NodePool may go to at present, and whether the target is one of them.",
		Cause:   "The releases are those that the HostedCluster lists.",
	})
	reasonPoolWaits = finding.NewReason("NodePoolWaits", finding.Explanation{
		Meaning: "Reported when a NodePool may go to the target only after the control plane has completed its update: until then its condition ValidReleaseImage is False, and nothing of the pool is reconciled.",
		Cause:   "The target has a later minor version than the newest completed update of the control plane.",
		Remedy:  "Update the control plane first, wait until status.version.history of the HostedCluster has the release as Completed, then set spec.release of the NodePool.",
	})
	reasonPoolDowngrade = finding.NewReason("NodePoolDowngrade", finding.Explanation{
		Meaning: "Reported when the target has an earlier minor version than a NodePool, which HyperShift does not accept for the pool.",
		Cause:   "The NodePool was updated to a later release.",
		Remedy:  "Choose a target that is not before the NodePool.",
	})
	reasonPoolRefused = finding.NewReason("NodePoolRefused", finding.Explanation{
		Meaning: "Reported when HyperShift does not accept the target for a NodePool, whatever the control plane runs: its condition ValidReleaseImage becomes False, and nothing of the pool is reconciled.",
		Cause:   "The pools use OpenShiftSDN and the minor version is another one, or the hypershift-operator does not support the version.",
		Remedy:  "Choose a version that the message permits.",
	})
)

// poolTargetsCheck is the check NodePoolTargets. It is about pools that are named.
func poolTargetsCheck(c *ControlPlane) check.Check {
	return check.Check{
		Name: namePoolTargets, Kind: finding.SourceGate, Side: check.Management,
		Run: func(_ context.Context, s check.Subject) ([]finding.Finding, error) {
			if c.poolsError != nil {
				return nil, c.poolsError
			}
			var found []finding.Finding
			for i := range c.pools {
				found = append(found, aboutPool(&c.pools[i], judgeTarget(c, &c.pools[i], s.Update.To)))
			}
			return found, nil
		},
	}
}

// judgeTarget is whether a pool may go to the target, and to which other releases.
func judgeTarget(c *ControlPlane, pool *hypershift.NodePool, target semver.Version) finding.Finding {
	if c.Cluster.Unvalidated() {
		return finding.Warn(reasonUnvalidated, "HyperShift accepts every release for NodePool %s, because of the annotation %s of HostedCluster %s", nameOf(pool), hypershift.AnnotationUnvalidated, c.name())
	}
	present, err := semver.Parse(pool.Status.Version)
	limit, problem := semver.Parse(c.Cluster.PoolLimit())
	if err != nil || problem != nil {
		return finding.Unknown(reasonSkewUnknown, "to which releases NodePool %s may go is unknown: it is of %q, and the newest version that the control plane permits is %q",
			nameOf(pool), words.External(pool.Status.Version), words.External(c.Cluster.PoolLimit()))
	}
	const most = 10
	now := "none that the HostedCluster lists"
	if targets := poolTargets(c, present, limit); len(targets) > 0 {
		now = words.List(targets, most)
	}
	refusal := hypershift.RefusesPool(c.Cluster, present, limit, target, c.supported)
	if refusal == "" && c.supportedError != nil {
		return finding.Unknown(reasonSupportedUnknown, "whether the hypershift-operator supports %s for NodePool %s is unknown: %s", target, nameOf(pool), c.supportedError)
	}
	switch refusal {
	case "":
		return finding.Pass(gap.Proven("the list of the NodePools"), reasonPoolTargets, "NodePool %s (%s) may go to %s now; the releases are: %s", nameOf(pool), present, target, now)
	case hypershift.RefusalControlPlane:
		return finding.Warn(reasonPoolWaits, "NodePool %s (%s) may go to %s only after the control plane, which permits %s, has completed it; now it may go to: %s", nameOf(pool), present, target, limit, now)
	case hypershift.RefusalDowngrade:
		return finding.Fail(reasonPoolDowngrade, "NodePool %s (%s) may not go to %s, whose minor version is earlier; now it may go to: %s", nameOf(pool), present, target, now)
	case hypershift.RefusalMajor, hypershift.RefusalTooOld, hypershift.RefusalSDN, hypershift.RefusalTooNew, hypershift.RefusalMinimum:
	}
	return finding.Fail(reasonPoolRefused, "NodePool %s (%s) may not go to %s: %s; now it may go to: %s", nameOf(pool), present, target, explainRefusal(c, refusal), now)
}

// poolTargets are the listed releases after that of the pool that it may go to now, the newest first.
func poolTargets(c *ControlPlane, present, limit semver.Version) []string {
	var versions []semver.Version
	for _, each := range c.Cluster.Releases() {
		version, err := semver.Parse(each.Version)
		if err == nil && version.GT(present) && hypershift.RefusesPool(c.Cluster, present, limit, version, c.supported) == "" {
			versions = append(versions, version)
		}
	}
	slices.SortFunc(versions, func(a, b semver.Version) int { return b.Compare(a) })
	var texts []string
	for _, version := range versions {
		texts = append(texts, version.String())
	}
	return slices.Compact(texts)
}
