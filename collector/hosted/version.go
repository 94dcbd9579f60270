package hosted

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameVersion = finding.NewName("HostedClusterVersion",
		"The versions that HyperShift accepts for the control plane (condition ValidReleaseImage of the HostedCluster): no earlier "+
			"minor version, and none that the hypershift-operator does not support. HyperShift accepts an update that skips minor "+
			"versions, although no update graph has it and the cluster-version operator rejects it; this check does not accept it.")

	reasonVersionSupported = finding.NewReason("VersionSupported", finding.Explanation{
		Meaning: "The hypershift-operator supports the target.",
		Cause:   "The ConfigMap hypershift/supported-versions lists its minor version.",
	})
	reasonVersionRefused = finding.NewReason("VersionRefused", finding.Explanation{
		Meaning: "HyperShift does not accept the version of the target: ValidReleaseImage of the HostedCluster becomes False, and " +
			"HyperShift reconciles nothing else.",
		Cause:  "The message names the rule.",
		Remedy: "Choose a version that the hypershift-operator supports, or update the hypershift-operator first.",
	})
	reasonUnvalidated = finding.NewReason("ReleaseNotValidated", finding.Explanation{
		Meaning: "HyperShift accepts every release for the control plane and its NodePools, whatever its version.",
		Cause:   "The HostedCluster has the annotation " + hypershift.AnnotationUnvalidated + ".",
		Remedy:  "Check that the release is supported, and remove the annotation afterwards.",
	})
	reasonMinorSkipped = finding.NewReason("MinorVersionSkipped", finding.Explanation{
		Meaning: "The update skips minor versions. HyperShift accepts it, but the components of a release can be updated only from the " +
			"previous minor version.",
		Cause:  "The target is more than one minor version later.",
		Remedy: "Update to each minor version in turn.",
	})
	reasonSupportedUnknown = finding.NewReason("SupportedVersionsUnknown", finding.Explanation{
		Meaning: "The versions that the hypershift-operator supports are unknown.",
		Cause:   "The ConfigMap hypershift/supported-versions cannot be read.",
		Remedy:  "Grant get on the ConfigMap, or check the versions with the administrator of the management cluster.",
	})
)

// versionCheck is the check HostedClusterVersion.
func versionCheck(c *ControlPlane) check.Check {
	return check.Check{
		Name: nameVersion, Kind: finding.SourceGate, Side: check.Management,
		Run: func(_ context.Context, s check.Subject) ([]finding.Finding, error) {
			return judgeVersion(c, s.Update.From, s.Update.To), nil
		},
	}
}

// refuses is why HyperShift does not accept the update between these versions; empty where it does.
func refuses(c *ControlPlane, from, to semver.Version) hypershift.Refusal {
	return hypershift.Refuses(c.Cluster, from, to, c.supported)
}

func judgeVersion(c *ControlPlane, from, to semver.Version) []finding.Finding {
	if refusal := refuses(c, from, to); refusal != "" {
		return []finding.Finding{c.about(finding.Fail(reasonVersionRefused, "HyperShift does not accept %s: %s", to, explainRefusal(c, refusal)))}
	}
	var found []finding.Finding
	if hypershift.Skipped(from, to) > 0 {
		found = append(found, c.about(finding.Fail(reasonMinorSkipped,
			"the update from %s to %s skips minor versions; HyperShift does not reject it", from, to)))
	}
	switch {
	case c.Cluster.Unvalidated() && !c.supported.Contains(to):
		return append(found, c.about(finding.Warn(reasonUnvalidated,
			"whether the hypershift-operator supports %s does not count: HyperShift accepts every release, because of the annotation %s", to,
			hypershift.AnnotationUnvalidated)))
	case c.supportedError != nil:
		return append(found, c.about(finding.Unknown(reasonSupportedUnknown, "whether the hypershift-operator supports %s is unknown: %s", to,
			c.supportedError)))
	case !c.supported.Contains(to):
		return append(found, c.about(finding.Fail(reasonVersionRefused, "the hypershift-operator supports %s, not %s",
			words.List(c.supported, most), to)))
	case len(found) == 0:
		return []finding.Finding{c.about(finding.Pass(gap.Proven("the HostedCluster and the versions that the hypershift-operator supports"),
			reasonVersionSupported, "the hypershift-operator supports %s", to))}
	}
	return found
}

// most bounds the versions that a message names.
const most = 20

// explainRefusal is the rule in words.
func explainRefusal(c *ControlPlane, refusal hypershift.Refusal) string {
	switch refusal {
	case hypershift.RefusalMajor:
		return "it knows releases 4 and 5 only"
	case hypershift.RefusalTooOld, hypershift.RefusalMinimum:
		return "the release is older than it supports"
	case hypershift.RefusalDowngrade:
		return "an update to an earlier minor version is not supported"
	case hypershift.RefusalSDN:
		return "the cluster uses OpenShiftSDN, which has no later minor version; migrate it to OVN-Kubernetes"
	case hypershift.RefusalControlPlane:
		return "the control plane has not completed its minor version"
	case hypershift.RefusalTooNew:
		return fmt.Sprintf("the hypershift-operator supports %s, and no later version", words.List(c.supported, most))
	}
	return string(refusal)
}

var (
	namePoolSkew = finding.NewName("NodePoolSkew",
		"Compares the versions of the NodePools with the target of the control plane: HyperShift supports pools that are up to three "+
			"minor versions older, and none that is newer (ValidateVersionSkew). It reports unsupported pools, but rejects no update.")

	reasonSkewSupported = finding.NewReason("SkewSupported", finding.Explanation{
		Meaning: "The target supports all NodePools.",
		Cause:   "None is newer, and none is three or more minor versions older.",
	})
	reasonSkewTooOld = finding.NewReason("NodePoolTooOld", finding.Explanation{
		Meaning: "A NodePool would be more than three minor versions older than the control plane, which HyperShift does not support.",
		Cause:   "The NodePool was not updated with the control plane.",
		Remedy:  "Update the NodePool before the control plane, one minor version at a time, with its spec.release.image.",
	})
	reasonSkewAtLimit = finding.NewReason("NodePoolAtLimit", finding.Explanation{
		Meaning: "A NodePool would be three minor versions older than the control plane, so the next minor update is not supported.",
		Cause:   "The NodePool was not updated with the control plane.",
		Remedy:  "Update the NodePool after the control plane.",
	})
	reasonSkewNewer = finding.NewReason("NodePoolNewer", finding.Explanation{
		Meaning: "A NodePool is newer than the target, which HyperShift does not support, even for a patch.",
		Cause:   "The NodePool was updated before the control plane.",
		Remedy:  "Choose a target that is not older than the NodePool.",
	})
	reasonSkewUnknown = finding.NewReason("NodePoolVersionUnknown", finding.Explanation{
		Meaning: "The version of a NodePool is unknown, or cannot be compared.",
		Cause:   "The NodePool has no nodes yet, or its status is not set.",
		Remedy:  "Check status.version of the NodePool.",
	})
	reasonNoPools = finding.NewReason("NoNodePools", finding.Explanation{
		Meaning: "The hosted cluster has no NodePool: operators whose pods run on nodes never become available, so an update does not " +
			"complete.",
		Cause:  "No NodePool names the cluster.",
		Remedy: "Add a NodePool, or accept that the update of the guest stays in progress.",
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
				return []finding.Finding{c.about(finding.Unknown(reasonNoPools,
					"HostedCluster %s has no NodePool, so an update of the guest does not complete", c.name()))}, nil
			}
			var found []finding.Finding
			for i := range c.pools {
				found = append(found, judgeSkew(&c.pools[i], s.Update.To)...)
			}
			if len(found) == 0 {
				found = append(found, c.about(finding.Pass(gap.Proven("the list of the NodePools"), reasonSkewSupported, "%s supports all %s",
					s.Update.To, words.Count(len(c.pools), "NodePool"))))
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
			found = append(found, aboutPool(pool, finding.Unknown(reasonSkewUnknown, "the version %q of NodePool %s is not a semantic version",
				words.External(version), nameOf(pool))))
			continue
		}
		switch hypershift.Skewed(parsed, target) {
		case hypershift.SkewTooOld:
			found = append(found, aboutPool(pool, finding.Fail(reasonSkewTooOld, "NodePool %s runs %s, more than %d minor versions "+
				"before %s",
				nameOf(pool), version, hypershift.MaxSkew, target)).
				Do(finding.Read("oc -n %s get nodepool %s -o yaml", pool.Namespace, pool.Name).In(finding.Management)))
		case hypershift.SkewAtLimit:
			found = append(found, aboutPool(pool, finding.Warn(reasonSkewAtLimit,
				"NodePool %s runs %s, %d minor versions before %s: update "+
					"it before the minor update after this one", nameOf(pool), version,
				hypershift.MaxSkew, target)))
		case hypershift.SkewNewer:
			found = append(found, aboutPool(pool, finding.Warn(reasonSkewNewer, "NodePool %s runs "+
				"%s, later than %s", nameOf(pool), version,
				target)))
		case hypershift.SkewNone:
		case hypershift.SkewUnknown:
			found = append(found, aboutPool(pool, finding.Unknown(reasonSkewUnknown, "the version %s of NodePool %s cannot be compared with %s",
				version, nameOf(pool), target)))
		}
	}
	return found
}

func nameOf(pool *hypershift.NodePool) string { return pool.Namespace + "/" + pool.Name }

// aboutPool names the NodePool in a finding.
func aboutPool(pool *hypershift.NodePool, f finding.Finding) finding.Finding {
	return f.About(finding.Object{
		APIVersion: hypershift.GroupVersion().String(), Kind: "NodePool", Namespace: pool.Namespace,
		Name: pool.Name,
	})
}

var (
	namePoolTargets = finding.NewName("NodePoolTargets",
		"The releases that HyperShift accepts for the NodePools of this update: no minor version before the pool's, none after the "+
			"newest one that the control plane has completed, and none that the hypershift-operator does not support (condition "+
			"ValidReleaseImage of the NodePool).")

	reasonPoolTargets = finding.NewReason("NodePoolTargets", finding.Explanation{
		Meaning: "Lists the releases that a NodePool may be updated to now, and whether the target is one of them.",
		Cause:   "The releases are the ones that the HostedCluster lists.",
	})
	reasonPoolWaits = finding.NewReason("NodePoolWaits", finding.Explanation{
		Meaning: "A NodePool may be updated to the target only after the control plane has completed its update: until then its " +
			"condition ValidReleaseImage is False, and HyperShift does not reconcile the pool.",
		Cause: "The target has a later minor version than the newest completed update of the control plane.",
		Remedy: "Update the control plane first, wait until status.version.history of the HostedCluster shows the release as " +
			"Completed, then set spec.release of the NodePool.",
	})
	reasonPoolDowngrade = finding.NewReason("NodePoolDowngrade", finding.Explanation{
		Meaning: "The target has an earlier minor version than a NodePool, which HyperShift does not accept for the pool.",
		Cause:   "The NodePool was updated to a later release.",
		Remedy:  "Choose a target that is not older than the NodePool.",
	})
	reasonPoolRefused = finding.NewReason("NodePoolRefused", finding.Explanation{
		Meaning: "HyperShift does not accept the target for a NodePool, whatever the control plane runs: its condition " +
			"ValidReleaseImage becomes False, and HyperShift does not reconcile the pool.",
		Cause: "The pools use OpenShiftSDN and the target is in another minor version, or the hypershift-operator does not support " +
			"the version.",
		Remedy: "Choose a version that the message permits.",
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
		return finding.Warn(reasonUnvalidated, "HyperShift accepts every release for NodePool %s, because of the annotation %s of "+
			"HostedCluster %s", nameOf(pool), hypershift.AnnotationUnvalidated, c.name())
	}
	present, err := semver.Parse(pool.Status.Version)
	limit, problem := semver.Parse(c.Cluster.PoolLimit())
	if err != nil || problem != nil {
		return finding.Unknown(reasonSkewUnknown,
			"the releases that NodePool %s may be updated to are unknown: it runs %q, and the newest version that the control plane "+
				"permits is %q",
			nameOf(pool), words.External(pool.Status.Version), words.External(c.Cluster.PoolLimit()))
	}
	const most = 10
	now := "none that the HostedCluster lists"
	if targets := poolTargets(c, present, limit); len(targets) > 0 {
		now = words.List(targets, most)
	}
	refusal := hypershift.RefusesPool(c.Cluster, present, limit, target, c.supported)
	if refusal == "" && c.supportedError != nil {
		return finding.Unknown(reasonSupportedUnknown, "whether the hypershift-operator supports %s for NodePool %s is unknown: %s", target,
			nameOf(pool), c.supportedError)
	}
	switch refusal {
	case "":
		return finding.Pass(gap.Proven("the list of the NodePools"), reasonPoolTargets, "NodePool %s (%s) may go to %s now; the releases are: %s",
			nameOf(pool), present, target, now)
	case hypershift.RefusalControlPlane:
		return finding.Warn(reasonPoolWaits, "NodePool %s (%s) may go to %s only after the control plane, which permits %s, has "+
			"completed it; now it may go to: %s", nameOf(pool), present, target, limit, now)
	case hypershift.RefusalDowngrade:
		return finding.Fail(reasonPoolDowngrade, "NodePool %s (%s) may not go to %s, whose minor version is earlier; now it may go to: %s",
			nameOf(pool), present, target, now)
	case hypershift.RefusalMajor, hypershift.RefusalTooOld, hypershift.RefusalSDN, hypershift.RefusalTooNew, hypershift.RefusalMinimum:
	}
	return finding.Fail(reasonPoolRefused, "NodePool %s (%s) may not go to %s: %s; now it may go to: %s", nameOf(pool), present, target,
		explainRefusal(c, refusal), now)
}

// poolTargets returns the listed releases after the pool's that it may be updated to now, newest first.
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
