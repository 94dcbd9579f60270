package hosted

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	nameRequest = finding.NewName("HostedClusterRequest",
		"The gate of HyperShift: the hypershift-operator refuses to update the control plane while the condition "+
			"ClusterVersionUpgradeable of the HostedCluster is False or Unknown, unless the target is a patch release or the update is "+
			"forced (isUpgrading). While a refused request remains, HyperShift reconciles nothing else of the hosted cluster, until "+
			"spec.release is reverted.")

	reasonRequestAccepted = finding.NewReason("RequestAccepted", finding.Explanation{
		Meaning: "HyperShift accepts the request for the release.",
		Cause:   "The condition ClusterVersionUpgradeable permits it, or the release has the current minor version.",
	})
	reasonOtherForced = finding.NewReason("OtherReleaseForced", finding.Explanation{
		Meaning: "The HostedCluster has the annotation " + hypershift.AnnotationForce + " with another release, and " +
			"ClusterVersionUpgradeable is not True: HyperShift then rejects every other release, including patches.",
		Cause:  "An earlier update left the annotation.",
		Remedy: "Remove the annotation from the HostedCluster.",
	})
	reasonStaleForce = finding.NewReason("StaleForceAnnotation", finding.Explanation{
		Meaning: "The HostedCluster has the annotation " + hypershift.AnnotationForce + " with another release than the " +
			"target. It has no effect while ClusterVersionUpgradeable is True, and blocks every update otherwise.",
		Cause:  "An earlier update left the annotation.",
		Remedy: "Remove the annotation from the HostedCluster.",
	})
	reasonNotUpgradeable = finding.NewReason("HostedClusterNotUpgradeable", finding.Explanation{
		Meaning: "ClusterVersionUpgradeable of the HostedCluster is False or Unknown, and the target has another minor version. " +
			"HyperShift rejects the update.",
		Cause: "A ClusterOperator or an admin gate of the guest blocks the update, or the guest is unreachable. The message names " +
			"the cause.",
		Remedy: "Fix the cause in the guest: oc adm upgrade prints it there.",
	})
	reasonForced = finding.NewReason("UpdateForced", finding.Explanation{
		Meaning: "HyperShift accepts the update only because it is forced, by the annotation " + hypershift.AnnotationForce +
			" or by spec.controlPlaneRelease.",
		Cause:  "ClusterVersionUpgradeable is False or Unknown, and the administrator decided to update nevertheless.",
		Remedy: "Fix the cause in the message, and remove the annotation or spec.controlPlaneRelease.",
	})
	reasonReleaseOverridden = finding.NewReason("ControlPlaneReleaseSet", finding.Explanation{
		Meaning: "spec.controlPlaneRelease is set, so changing spec.release does not update the control plane.",
		Cause:   "The control plane was updated separately from the NodePools.",
		Remedy:  "Request the release in spec.controlPlaneRelease as well, or remove the field.",
	})
	reasonRequestUnknown = finding.NewReason("RequestUnknown", finding.Explanation{
		Meaning: "What HyperShift does with the request is unknown.",
		Cause:   "The image of the target is unknown, or a version cannot be compared.",
		Remedy:  "Choose an update that the cluster lists.",
	})
	reasonRequestRefused = finding.NewReason("RequestRefused", finding.Explanation{
		Meaning: "The HostedCluster currently requests an update that HyperShift rejects. Until the request is reverted, HyperShift " +
			"reconciles nothing else of the hosted cluster: no certificates, pull secrets or configuration.",
		Cause:  "spec.release was changed although ClusterVersionUpgradeable is not True, or an annotation names another release.",
		Remedy: "Set spec.release.image back to the release of status.version.desired, or fix the cause in the message.",
	})
)

// requestCheck is the check HostedClusterRequest.
func requestCheck(c *ControlPlane) check.Check {
	return check.Check{
		Name: nameRequest, Kind: finding.SourceGate, Side: check.Management,
		Run: func(_ context.Context, s check.Subject) ([]finding.Finding, error) {
			found := judgePending(c, s.Update.To.String())
			found = append(found, judgeRequest(c, s.Update.To.String())...)
			if c.Cluster.Spec.ControlPlaneRelease != nil {
				found = append(found, c.about(finding.Warn(reasonReleaseOverridden,
					"spec.controlPlaneRelease of HostedCluster %s is %s, so spec.release does not update the control plane, and HyperShift "+
						"ignores ClusterVersionUpgradeable",
					c.name(), words.External(c.Cluster.Spec.ControlPlaneRelease.Image))))
			}
			return found, nil
		},
	}
}

// judgeRequest predicts how HyperShift handles the request for a version.
func judgeRequest(c *ControlPlane, version string) []finding.Finding {
	if c.Cluster.Status.Version == nil {
		return []finding.Finding{c.about(finding.Unknown(reasonRequestUnknown,
			"what HyperShift does with the request is unknown: status.version of HostedCluster %s is missing", c.name()))}
	}
	image, known := c.Cluster.ImageOf(version)
	decision, err := hypershift.Evaluate(c.Cluster, hypershift.Request{Image: image, Version: version})
	if err != nil {
		return []finding.Finding{c.about(finding.Unknown(reasonRequestUnknown, "what HyperShift does with the request is unknown: %s", err))}
	}
	forced, annotated := c.Cluster.Annotations[hypershift.AnnotationForce]
	switch decision.Rule {
	case hypershift.RuleOtherForced:
		if !known && forced != c.Cluster.Desired() {
			return []finding.Finding{c.about(finding.Unknown(reasonRequestUnknown,
				"the annotation %s of HostedCluster %s names %s, and whether that is %s is unknown", hypershift.AnnotationForce, c.name(),
				words.External(forced), version))}
		}
		return []finding.Finding{c.about(finding.Fail(reasonOtherForced,
			"HyperShift rejects %s, even a patch: %s", version, words.External(decision.Message))).Do(removeForce(c))}
	case hypershift.RuleForced, hypershift.RuleOverridden:
		return []finding.Finding{c.about(finding.Fail(reasonForced, "HyperShift accepts %s only because it is forced: %s", version,
			upgradeable(c)))}
	case hypershift.RuleNotUpgradeable, hypershift.RuleUnknownVersion:
		return []finding.Finding{c.about(finding.Fail(reasonNotUpgradeable, "HyperShift rejects %s: %s", version,
			words.External(decision.Message)))}
	case hypershift.RuleCurrent, hypershift.RuleUpgradeable, hypershift.RulePatch:
	}
	found := []finding.Finding{c.about(finding.Pass(gap.Proven("the HostedCluster"), reasonRequestAccepted,
		"HyperShift accepts the request for %s", version))}
	if annotated && (known && forced != image || forced == c.Cluster.Desired()) {
		found = append(found, c.about(finding.Warn(reasonStaleForce,
			"the annotation %s of HostedCluster %s names another release, %s: when ClusterVersionUpgradeable is not True, HyperShift "+
				"rejects every update because of it",
			hypershift.AnnotationForce, c.name(), words.External(forced))).Do(removeForce(c)))
	}
	return found
}

// judgePending is about the release that is requested at present. The request for a version replaces one that is
// refused by its own version.
func judgePending(c *ControlPlane, version string) []finding.Finding {
	wanted := c.Cluster.Wanted()
	if c.Cluster.Status.Version == nil || hypershift.SameImage(wanted, c.Cluster.Desired()) {
		return nil
	}
	cause, byGate, refused := refusal(c, wanted)
	if !refused {
		return nil
	}
	found := c.about(finding.Fail(reasonRequestRefused,
		"HostedCluster %s requests %s, which HyperShift rejects, so it reconciles nothing else of the hosted cluster: %s",
		c.name(), words.External(wanted), words.External(cause)))
	image, _ := c.Cluster.ImageOf(version)
	instead, err := hypershift.Evaluate(c.Cluster, hypershift.Request{Image: image, Version: version})
	if replaced(cause, version) || byGate && err == nil && instead.Accepts {
		found = found.Judged(preflight.Warn)
	}
	return []finding.Finding{found.Do(request(found.Objects[0], c.Cluster.Desired()))}
}

// refusal returns why HyperShift rejects the currently requested release: by its own report, the condition
// Progressing with the reason Blocked, or by its rules, if it has not reconciled yet. The gate evaluates each
// request anew.
func refusal(c *ControlPlane, wanted string) (cause string, byGate, refused bool) {
	if reported := meta.FindStatusCondition(c.Cluster.Status.Conditions, "Progressing"); reported != nil && reported.Reason == "Blocked" {
		gate := strings.HasPrefix(reported.Message, "ClusterVersionUpgradeable condition is false: ") // isProgressing
		return reported.Message, gate || reported.Message == "cluster version is not upgradeable", true
	}
	decision, err := hypershift.Evaluate(c.Cluster, hypershift.Request{Image: wanted, Version: c.Cluster.VersionOf(wanted)})
	return decision.Message, true, err == nil && !decision.Accepts
}

// Predict returns how HyperShift would handle the request for a version now, in the form of a report: the
// cluster-version operator of a hosted cluster evaluates no request. If HyperShift does not reconcile the
// HostedCluster, it does not carry out requests that its gate accepts.
func (c *ControlPlane) Predict(version string) report.CVO {
	predicted := predictRequest(c, version)
	if predicted.Accepts != nil && !*predicted.Accepts {
		return predicted
	}
	stops := append(judgeReconciliation(c, c.Management.Now(), version), predictVersion(c, version)...)
	for _, f := range stops {
		if f.Stops() {
			return report.CVO{Reason: report.ReasonHyperShift, Message: f.Message, Accepts: new(false)}
		}
	}
	for _, f := range stops {
		if f.Inconclusive() {
			return report.CVO{Reason: report.ReasonHyperShift, Message: f.Message}
		}
	}
	return predicted
}

// predictVersion is why HyperShift would not accept a version, or why that is unknown. It does not refuse to leave out minor ones.
func predictVersion(c *ControlPlane, version string) []finding.Finding {
	from, err := semver.Parse(c.desiredVersion())
	to, errTo := semver.Parse(version)
	if err := errors.Join(err, errTo); err != nil {
		return []finding.Finding{finding.Unknown(reasonRequestUnknown,
			"what HyperShift does with the request is unknown: the versions %q and %q cannot be compared: %s",
			words.External(c.desiredVersion()), words.External(version), err)}
	}
	return slices.DeleteFunc(judgeVersion(c, from, to), func(f finding.Finding) bool { return f.Reason == reasonMinorSkipped.String() })
}

// desiredVersion is the version that the control plane runs or is being updated to; empty before it has one.
func (c *ControlPlane) desiredVersion() string {
	if c.Cluster.Status.Version == nil {
		return ""
	}
	return c.Cluster.Status.Version.Desired.Version
}

// predictRequest predicts how the gate of HyperShift handles the request.
func predictRequest(c *ControlPlane, version string) report.CVO {
	findings := judgeRequest(c, version)
	predicted := report.CVO{Reason: report.ReasonHyperShift, Message: findings[0].Message}
	switch {
	case findings[0].Inconclusive():
	case findings[0].Reason == reasonForced.String():
		predicted.Accepts = new(true)
	default:
		predicted.Accepts = new(!findings[0].Blocks)
	}
	return predicted
}

func removeForce(c *ControlPlane) finding.Action {
	return finding.Change("oc -n %s annotate hostedcluster %s %s-", c.Cluster.Namespace, c.Cluster.Name,
		hypershift.AnnotationForce).In(finding.Management)
}

func upgradeable(c *ControlPlane) string {
	condition := meta.FindStatusCondition(c.Cluster.Status.Conditions, "ClusterVersionUpgradeable")
	if condition == nil {
		return "ClusterVersionUpgradeable is not reported"
	}
	return "ClusterVersionUpgradeable is " + words.Condition(condition.Status, words.External(condition.Reason),
		words.External(condition.Message))
}

// about names the HostedCluster in a finding.
func (c *ControlPlane) about(f finding.Finding) finding.Finding {
	return f.About(finding.Object{
		APIVersion: hypershift.GroupVersion().String(), Kind: "HostedCluster", Namespace: c.Cluster.Namespace,
		Name: c.Cluster.Name,
	})
}

// Start requests a release for the control plane; it has no command if there is none, if the control plane already
// runs the release, or if spec.controlPlaneRelease decides on it.
func Start(cluster *hypershift.HostedCluster, image string) finding.Action {
	if cluster.Spec.ControlPlaneRelease != nil || image == "" || hypershift.SameImage(image, cluster.Desired()) {
		return finding.Action{}
	}
	object := finding.Object{Kind: "HostedCluster", Namespace: cluster.Namespace, Name: cluster.Name}
	return request(object, image)
}

// request is the command that requests a release of a HostedCluster or of a NodePool.
func request(object finding.Object, image string) finding.Action {
	patch := finding.JSON(map[string]any{"spec": map[string]any{"release": hypershift.Release{Image: image}}})
	return finding.Change("oc -n %s patch %s %s --type=merge -p %s", object.Namespace, strings.ToLower(object.Kind), object.Name,
		patch).In(finding.Management)
}
