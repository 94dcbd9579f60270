package hosted

import (
	"context"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	namePoolSkew = finding.NewName("NodePoolSkew",
		"The versions of the NodePools against the target of the control plane: HyperShift supports pools of up to three minor "+
			"versions before, and none that is newer (ValidateVersionSkew). It reports what is not supported, and refuses nothing.")

	reasonSkewSupported = finding.NewReason("SkewSupported", finding.Explanation{
		Meaning: "Reported when the target supports all NodePools.",
		Cause:   "None is newer, and none is three or more minor versions older.",
	})
	reasonSkewTooOld = finding.NewReason("NodePoolTooOld", finding.Explanation{
		Meaning: "Reported when a NodePool would be more than three minor versions older than the control plane.",
		Cause:   "The NodePool was not updated with the control plane.",
		Remedy:  "Update the NodePool before the control plane, one minor version at a time, by its spec.release.image.",
	})
	reasonSkewAtLimit = finding.NewReason("NodePoolAtLimit", finding.Explanation{
		Meaning: "Reported when a NodePool would be three minor versions older than the control plane, so that the update after this one is not supported.",
		Cause:   "The NodePool was not updated with the control plane.",
		Remedy:  "Update the NodePool after the control plane.",
	})
	reasonSkewNewer = finding.NewReason("NodePoolNewer", finding.Explanation{
		Meaning: "Reported when a NodePool is newer than the target, which HyperShift does not support, even for a patch.",
		Cause:   "The NodePool was updated before the control plane.",
		Remedy:  "Choose a target that is not older than the NodePool.",
	})
	reasonSkewUnknown = finding.NewReason("NodePoolVersionUnknown", finding.Explanation{
		Meaning: "Reported when the version of a NodePool is not known, or cannot be compared.",
		Cause:   "The NodePool has no nodes yet, or its status is not set.",
		Remedy:  "Check status.version of the NodePool.",
	})
	reasonNoPools = finding.NewReason("NoNodePools", finding.Explanation{
		Meaning: "Reported when the hosted cluster has no NodePool: operators whose pods run on nodes never become available, so an update does not complete.",
		Cause:   "No NodePool names the cluster.",
		Remedy:  "Add a NodePool, or accept that the update of the guest stays in progress.",
	})
)

// skewCheck is the check NodePoolSkew.
func skewCheck(c *ControlPlane) check.Check {
	return check.Check{
		Name: namePoolSkew, Kind: finding.SourceGate, Side: check.Management,
		Run: func(_ context.Context, s check.Subject) ([]finding.Finding, error) {
			if c.poolsError != nil {
				return nil, c.poolsError
			}
			if len(c.pools) == 0 {
				return []finding.Finding{c.about(finding.Unknown(reasonNoPools, "HostedCluster %s has no NodePool, so an update of the guest does not complete", c.name()))}, nil
			}
			var found []finding.Finding
			for i := range c.pools {
				found = append(found, judgeSkew(&c.pools[i], s.Update.To)...)
			}
			if len(found) == 0 {
				found = append(found, c.about(finding.Pass(gap.Proven("the list of the NodePools"), reasonSkewSupported, "%s supports all %s", s.Update.To, words.Count(len(c.pools), "NodePool"))))
			}
			return found, nil
		},
	}
}

// judgeSkew has no finding for a pool that the target supports.
func judgeSkew(pool *hypershift.NodePool, target semver.Version) []finding.Finding {
	versions := pool.Versions()
	if len(versions) == 0 {
		return []finding.Finding{aboutPool(pool, finding.Unknown(reasonSkewUnknown, "NodePool %s does not report its version", nameOf(pool)))}
	}
	var found []finding.Finding
	for _, version := range versions {
		parsed, err := semver.Parse(version)
		if err != nil {
			found = append(found, aboutPool(pool, finding.Unknown(reasonSkewUnknown, "the version %q of NodePool %s is not a semantic version", words.External(version), nameOf(pool))))
			continue
		}
		switch hypershift.Skewed(parsed, target) {
		case hypershift.SkewTooOld:
			found = append(found, aboutPool(pool, finding.Fail(reasonSkewTooOld, "NodePool %s is of %s, more than %d minor versions before %s", nameOf(pool), version, hypershift.MaxSkew, target)).
				Do(finding.InManagement("oc -n %s get nodepool %s -o yaml", pool.Namespace, pool.Name)))
		case hypershift.SkewAtLimit:
			found = append(found, aboutPool(pool, finding.Warn(reasonSkewAtLimit, "NodePool %s is of %s, %d minor versions before %s: update it before the minor update after this one", nameOf(pool), version, hypershift.MaxSkew, target)))
		case hypershift.SkewNewer:
			found = append(found, aboutPool(pool, finding.Warn(reasonSkewNewer, "NodePool %s is of %s, later than %s", nameOf(pool), version, target)))
		case hypershift.SkewNone:
		case hypershift.SkewUnknown:
			found = append(found, aboutPool(pool, finding.Unknown(reasonSkewUnknown, "the version %s of NodePool %s cannot be compared with %s", version, nameOf(pool), target)))
		}
	}
	return found
}

func nameOf(pool *hypershift.NodePool) string { return pool.Namespace + "/" + pool.Name }

// aboutPool names the NodePool in a finding.
func aboutPool(pool *hypershift.NodePool, f finding.Finding) finding.Finding {
	return f.About(finding.Object{APIVersion: hypershift.GroupVersion().String(), Kind: "NodePool", Namespace: pool.Namespace, Name: pool.Name})
}
