package hypershift

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/words"
)

// Rule is the rule of HyperShift that decides about a request.
type Rule string

// The rules, in the order in which HyperShift applies them (isUpgrading).
const (
	// RuleCurrent: the release is the one that the cluster-version operator of the guest wants already.
	RuleCurrent Rule = "Current"
	// RuleUpgradeable: the condition ClusterVersionUpgradeable is True, or does not exist.
	RuleUpgradeable Rule = "Upgradeable"
	// RuleOtherForced: the annotation names another image. It refuses patches as well.
	RuleOtherForced Rule = "OtherReleaseForced"
	// RuleForced: the annotation names the release.
	RuleForced Rule = "Forced"
	// RuleOverridden: spec.controlPlaneRelease is set, which HyperShift takes for a decision.
	RuleOverridden Rule = "ControlPlaneRelease"
	// RuleUnknownVersion: the present version is none.
	RuleUnknownVersion Rule = "UnknownVersion"
	// RulePatch: the release has the minor version of the present one.
	RulePatch Rule = "Patch"
	// RuleNotUpgradeable: the condition is False or Unknown, and the minor version differs.
	RuleNotUpgradeable Rule = "NotUpgradeable"
)

// Request is a release that is requested for the control plane.
type Request struct {
	// Image is compared as text, as HyperShift does: a tag never equals the digest of the same
	// release.
	Image string
	// Version is what the image contains.
	Version string
}

// Decision is what HyperShift does with a request.
type Decision struct {
	Rule    Rule
	Accepts bool
	// Message is the cause of a refusal.
	Message string
}

// Judge predicts the gate of HyperShift (isUpgrading): the first rule that applies decides. An error
// means that the version of the request cannot be compared, which HyperShift learns from the image.
func Judge(h *HostedCluster, request Request) (Decision, error) {
	status := h.Status.Version
	if status == nil || status.Desired.Image == request.Image {
		return Decision{Rule: RuleCurrent, Accepts: true}, nil
	}
	upgradeable := meta.FindStatusCondition(h.Status.Conditions, "ClusterVersionUpgradeable")
	if upgradeable == nil || upgradeable.Status == metav1.ConditionTrue {
		return Decision{Rule: RuleUpgradeable, Accepts: true}, nil
	}
	if forced, ok := h.Annotations[AnnotationForce]; ok {
		if forced == request.Image {
			return Decision{Rule: RuleForced, Accepts: true}, nil
		}
		return Decision{Rule: RuleOtherForced, Message: fmt.Sprintf("the annotation %s names another release, %s, and ClusterVersionUpgradeable is %s", AnnotationForce, forced, upgradeable.Status)}, nil
	}
	if h.Spec.ControlPlaneRelease != nil {
		return Decision{Rule: RuleOverridden, Accepts: true}, nil
	}
	from, known := minorOf(status.Desired.Version)
	to, comparable := minorOf(request.Version)
	switch {
	case !known:
		return Decision{Rule: RuleUnknownVersion, Message: fmt.Sprintf("the present version %q is not a semantic version", status.Desired.Version)}, nil
	case !comparable:
		return Decision{}, fmt.Errorf("the version %q of the requested release is not a semantic version", request.Version)
	case from == to:
		return Decision{Rule: RulePatch, Accepts: true}, nil
	}
	return Decision{Rule: RuleNotUpgradeable, Message: "ClusterVersionUpgradeable is " + words.Condition(upgradeable.Status, upgradeable.Reason, upgradeable.Message)}, nil
}

// minorOf is the minor version of a release, such as 4.19; false for a text that is no version.
func minorOf(version string) (string, bool) {
	parsed, err := semver.Parse(version)
	return fmt.Sprintf("%d.%d", parsed.Major, parsed.Minor), err == nil
}

// Desired is the image of the release that the cluster-version operator of the guest wants; empty before
// it has reported one.
func (h *HostedCluster) Desired() string {
	if h.Status.Version == nil {
		return ""
	}
	return h.Status.Version.Desired.Image
}

// Releases are those that the status lists: present, available, conditional and past.
func (h *HostedCluster) Releases() []configv1.Release {
	status := h.Status.Version
	if status == nil {
		return nil
	}
	known := append([]configv1.Release{status.Desired}, status.AvailableUpdates...)
	for i := range status.ConditionalUpdates {
		known = append(known, status.ConditionalUpdates[i].Release)
	}
	for _, past := range status.History {
		known = append(known, configv1.Release{Version: past.Version, Image: past.Image})
	}
	return known
}

// ImageOf is the image of a version that the status lists; false for another.
func (h *HostedCluster) ImageOf(version string) (string, bool) {
	for _, known := range h.Releases() {
		if known.Version == version && known.Image != "" {
			return known.Image, true
		}
	}
	return "", false
}

// IsMulti reports whether the status lists a version as one for all architectures; false for another, and where the
// cluster-version operator of the guest states no architectures.
func (h *HostedCluster) IsMulti(version string) bool {
	return slices.ContainsFunc(h.Releases(), func(known configv1.Release) bool {
		return known.Version == version && known.Architecture == configv1.ClusterVersionArchitectureMulti
	})
}

// VersionOf is the version of an image that the status lists; empty for another.
func (h *HostedCluster) VersionOf(image string) string {
	for _, known := range h.Releases() {
		if SameImage(known.Image, image) {
			return known.Version
		}
	}
	return ""
}

// SameImage compares images as HyperShift does where it can, by the digest.
func SameImage(a, b string) bool {
	digest := func(image string) string {
		_, after, found := strings.Cut(image, "@")
		if !found {
			return image
		}
		return after
	}
	return digest(a) == digest(b)
}
