package hosted

import (
	"context"
	"fmt"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameVersion = finding.NewName("HostedClusterVersion",
		"The versions that HyperShift accepts for the control plane (condition ValidReleaseImage of the HostedCluster): no "+
			"earlier minor version, none that the hypershift-operator does not support. HyperShift accepts an update that skips "+
			"minor versions, which no update graph has and the cluster-version operator refuses; this check does not.")

	reasonVersionSupported = finding.NewReason("VersionSupported", finding.Explanation{
		Meaning: "Reported when the hypershift-operator supports the target.",
		Cause:   "The ConfigMap hypershift/supported-versions lists its minor version.",
	})
	reasonVersionRefused = finding.NewReason("VersionRefused", finding.Explanation{
		Meaning: "Reported when HyperShift does not accept the version of the target: ValidReleaseImage of the HostedCluster becomes False, and nothing else is reconciled.",
		Cause:   "The message names the rule.",
		Remedy:  "Choose a version that the hypershift-operator supports, or update the hypershift-operator first.",
	})
	reasonUnvalidated = finding.NewReason("ReleaseNotValidated", finding.Explanation{
		Meaning: "Reported when HyperShift accepts every release for the control plane and its NodePools, whatever its version.",
		Cause:   "The HostedCluster has the annotation " + hypershift.AnnotationUnvalidated + ".",
		Remedy:  "Check that the release is supported, and remove the annotation afterwards.",
	})
	reasonMinorSkipped = finding.NewReason("MinorVersionSkipped", finding.Explanation{
		Meaning: "Reported when the update leaves out minor versions. HyperShift accepts it, but the components of a release are updated from the minor version before only.",
		Cause:   "The target is more than one minor version later.",
		Remedy:  "Update to each minor version in turn.",
	})
	reasonSupportedUnknown = finding.NewReason("SupportedVersionsUnknown", finding.Explanation{
		Meaning: "Reported when it is unknown which versions the hypershift-operator supports.",
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

// Refusal is why HyperShift does not accept the update between these versions; empty where it does.
func Refusal(c *ControlPlane, from, to semver.Version) hypershift.Refusal {
	return hypershift.Refuses(c.Cluster, from, to, c.supported)
}

func judgeVersion(c *ControlPlane, from, to semver.Version) []finding.Finding {
	if refusal := Refusal(c, from, to); refusal != "" {
		return []finding.Finding{c.about(finding.Fail(reasonVersionRefused, "HyperShift does not accept %s: %s", to, explainRefusal(c, refusal)))}
	}
	var found []finding.Finding
	if hypershift.Skipped(from, to) > 0 {
		found = append(found, c.about(finding.Fail(reasonMinorSkipped, "the update from %s to %s leaves out minor versions; HyperShift does not refuse it", from, to)))
	}
	switch {
	case c.Cluster.Unvalidated() && !c.supported.Contains(to):
		return append(found, c.about(finding.Warn(reasonUnvalidated, "whether the hypershift-operator supports %s does not count: HyperShift accepts every release, because of the annotation %s", to, hypershift.AnnotationUnvalidated)))
	case c.supportedError != nil:
		return append(found, c.about(finding.Unknown(reasonSupportedUnknown, "whether the hypershift-operator supports %s is unknown: %s", to, c.supportedError)))
	case !c.supported.Contains(to):
		return append(found, c.about(finding.Fail(reasonVersionRefused, "the hypershift-operator supports %s, not %s", words.List(c.supported, most), to)))
	case len(found) == 0:
		return []finding.Finding{c.about(finding.Pass(gap.Proven("the HostedCluster and the versions that the hypershift-operator supports"), reasonVersionSupported, "the hypershift-operator supports %s", to))}
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
