// Package hypershift answers: how would HyperShift handle the request to update a hosted cluster?
//
// [Evaluate] predicts it for the control plane and [Skewed] for a NodePool, from the objects [HostedCluster] and
// [NodePool] alone. HyperShift has no admission check of a release: every request is stored, and a rejection is a
// condition (hypershift-operator controllers/hostedcluster/hostedcluster_controller.go). It knows nothing of
// available updates, conditional updates, alerts or admin-acks of the target, and verifies no signature.
package hypershift

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/words"
)

// Group is the API group of the objects.
const Group = "hypershift.openshift.io"

// GroupVersion is the version of the API that is read.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: "v1beta1"} }

// The annotations of a HostedCluster by which its administrator overrides HyperShift.
const (
	// AnnotationForce names the image of the release that is requested although the cluster is not Upgradeable.
	AnnotationForce = Group + "/force-upgrade-to"
	// AnnotationUnvalidated accepts every release, with any value.
	AnnotationUnvalidated = Group + "/skip-release-image-validation"
)

// HostedCluster has the fields of a HostedCluster that decide about its updates.
type HostedCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		// Release is the requested release, and ControlPlaneRelease replaces it for the control plane.
		Release             Release  `json:"release"`
		ControlPlaneRelease *Release `json:"controlPlaneRelease,omitempty"`
		ClusterID           string   `json:"clusterID,omitempty"`
		// InfraID is set by HyperShift at the first reconciliation, and identifies the machines of the NodePools.
		InfraID string `json:"infraID,omitempty"`
		Channel string `json:"channel,omitempty"`
		// PausedUntil is until when nothing is reconciled; the function of that name reads it.
		PausedUntil string `json:"pausedUntil,omitempty"`
		Networking  struct {
			NetworkType string `json:"networkType,omitempty"`
		} `json:"networking"`
		// PullSecret is the Secret in the namespace of the HostedCluster by which releases are pulled, and
		// ImageContentSources are mirrors besides the management cluster's.
		PullSecret          corev1.LocalObjectReference `json:"pullSecret"`
		ImageContentSources []ImageContentSource        `json:"imageContentSources,omitempty"`
	} `json:"spec"`
	Status struct {
		Version    *VersionStatus     `json:"version,omitempty"`
		Conditions []metav1.Condition `json:"conditions,omitempty"`
		// PayloadArch is the architecture of the requested release, such as AMD64 or Multi; empty if unknown.
		PayloadArch string `json:"payloadArch,omitempty"`
		// KubeConfig names the Secret with the kubeconfig of the guest.
		KubeConfig *struct {
			Name string `json:"name"`
		} `json:"kubeconfig,omitempty"`
	} `json:"status"`
}

// State is a hosted cluster as its management cluster describes it.
type State struct {
	Cluster *HostedCluster
	// Pools are all NodePools of the cluster; PoolsError is why they could not be read.
	Pools      []NodePool
	PoolsError error
}

// Release is the image of a release.
type Release struct {
	Image string `json:"image"`
}

// ImageContentSource are mirrors of a repository.
type ImageContentSource struct {
	Source  string   `json:"source"`
	Mirrors []string `json:"mirrors,omitempty"`
}

// VersionStatus is the status of the version of the control plane, as in ClusterVersion.
type VersionStatus struct {
	Desired            configv1.Release             `json:"desired"`
	History            []configv1.UpdateHistory     `json:"history,omitempty"`
	AvailableUpdates   []configv1.Release           `json:"availableUpdates,omitempty"`
	ConditionalUpdates []configv1.ConditionalUpdate `json:"conditionalUpdates,omitempty"`
}

// Wanted is the release that is requested for the control plane.
func (h *HostedCluster) Wanted() string {
	if override := h.Spec.ControlPlaneRelease; override != nil {
		return override.Image
	}
	return h.Spec.Release.Image
}

// Is reports whether a condition has the status; false for a condition that does not exist.
func (h *HostedCluster) Is(condition string, status metav1.ConditionStatus) bool {
	return meta.IsStatusConditionPresentAndEqual(h.Status.Conditions, condition, status)
}

// LabelManagementAccess is a label that with the value "true" lets a pod in the namespace of a control plane reach the
// API server of the management cluster (hypershift support/config/constants.go).
const LabelManagementAccess = Group + "/need-management-kas-access"

// Profile is the cluster profile of the cluster-version operator of every hosted cluster (hypershift
// control-plane-operator, v2/cvo).
const Profile = "ibm-cloud-managed"

// ControlPlaneNamespace is the namespace of the pods of the control plane of a HostedCluster.
func ControlPlaneNamespace(namespace, name string) string {
	return namespace + "-" + strings.ReplaceAll(name, ".", "-")
}

// NodePool has the fields of a NodePool that decide about its updates.
type NodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		ClusterName string `json:"clusterName"`
		// Arch is the architecture of the nodes, by default amd64.
		Arch        string     `json:"arch,omitempty"`
		Release     Release    `json:"release"`
		PausedUntil string     `json:"pausedUntil,omitempty"`
		Replicas    *int32     `json:"replicas,omitempty"`
		Management  Management `json:"management"`
		// Config names the ConfigMaps with the configuration of the nodes, and OSImageStream their operating system;
		// empty for the release's default.
		Config        []corev1.LocalObjectReference `json:"config,omitempty"`
		OSImageStream OSImageStream                 `json:"osImageStream,omitzero"`
		// NodeDrainTimeout bounds the drain of a node; zero and absent do not.
		NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`
		Platform         struct {
			Type     string `json:"type"`
			IBMCloud *struct {
				ProviderType string `json:"providerType,omitempty"`
			} `json:"ibmcloud,omitempty"`
		} `json:"platform"`
	} `json:"spec"`
	Status struct {
		Version       string        `json:"version,omitempty"`
		OSImageStream OSImageStream `json:"osImageStream,omitzero"`
		// Replicas are the machines that are available.
		Replicas int32 `json:"replicas,omitempty"`
		// Conditions have the type of metav1.Condition, but HyperShift does not validate their reasons.
		Conditions []metav1.Condition `json:"conditions,omitempty"`
		NodesInfo  *struct {
			NodeVersions []struct {
				OCPVersion       string `json:"ocpVersion"`
				KubeletVersion   string `json:"kubeletVersion"`
				ReadyNodeCount   int32  `json:"readyNodeCount"`
				UnreadyNodeCount int32  `json:"unreadyNodeCount"`
			} `json:"nodeVersions,omitempty"`
		} `json:"nodesInfo,omitempty"`
	} `json:"status"`
}

// OSImageStream names an operating system of a release.
type OSImageStream struct {
	Name string `json:"name,omitempty"`
}

// Management is how the nodes of a pool are updated.
type Management struct {
	// UpgradeType is Replace or InPlace.
	UpgradeType string `json:"upgradeType"`
	Replace     *struct {
		// Strategy is RollingUpdate or OnDelete.
		Strategy      string         `json:"strategy,omitempty"`
		RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`
	} `json:"replace,omitempty"`
	InPlace *struct {
		MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	} `json:"inPlace,omitempty"`
}

// RollingUpdate bounds the machines of a pool during its update: numbers or percentages.
type RollingUpdate struct {
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	MaxSurge       *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// Automated reports whether HyperShift updates the nodes of the pool. Otherwise it sets the version of the pool
// alone (hypershift-operator controllers/nodepool/nodepool_controller.go, isAutomatedMachineManagement).
func (p *NodePool) Automated() bool {
	platform := &p.Spec.Platform
	return platform.Type != "None" && (platform.IBMCloud == nil || platform.IBMCloud.ProviderType != "UPI")
}

// UpdatingConditions are the conditions of a NodePool that are True while its nodes are updated or replaced.
func UpdatingConditions() []string {
	return []string{"UpdatingVersion", "UpdatingConfig", "UpdatingPlatformMachineTemplate"}
}

// Updating returns the condition by which the pool is being updated; nil for none.
func (p *NodePool) Updating() *metav1.Condition {
	for _, name := range UpdatingConditions() {
		if condition := meta.FindStatusCondition(p.Status.Conditions, name); condition != nil && condition.Status == metav1.ConditionTrue {
			return condition
		}
	}
	return nil
}

// OnDelete reports whether the pool replaces a machine only when it is deleted.
func (p *NodePool) OnDelete() bool {
	replace := p.Spec.Management.Replace
	return p.Spec.Management.UpgradeType == "Replace" && replace != nil && replace.Strategy == "OnDelete"
}

// Versions are the versions of the nodes of the pool, distinct and sorted as text: the versions that the pool
// counts, else the version of the pool.
func (p *NodePool) Versions() []string {
	var versions []string
	if p.Status.NodesInfo != nil {
		for _, each := range p.Status.NodesInfo.NodeVersions {
			if each.OCPVersion != "" && each.ReadyNodeCount+each.UnreadyNodeCount > 0 {
				versions = append(versions, each.OCPVersion)
			}
		}
	}
	if len(versions) == 0 && p.Status.Version != "" {
		versions = []string{p.Status.Version}
	}
	slices.Sort(versions)
	return slices.Compact(versions)
}

// Rule is the rule of HyperShift that decides about a request.
type Rule string

// The rules, in the order in which HyperShift applies them (isUpgrading).
const (
	// RuleCurrent: the release is the one that the cluster-version operator of the guest already wants.
	RuleCurrent Rule = "Current"
	// RuleUpgradeable: the condition ClusterVersionUpgradeable is True, or does not exist.
	RuleUpgradeable Rule = "Upgradeable"
	// RuleOtherForced: the annotation names another image. It refuses patches as well.
	RuleOtherForced Rule = "OtherReleaseForced"
	// RuleForced: the annotation names the release.
	RuleForced Rule = "Forced"
	// RuleOverridden: spec.controlPlaneRelease is set, which HyperShift takes for a decision.
	RuleOverridden Rule = "ControlPlaneRelease"
	// RuleUnknownVersion: the current version is not a version.
	RuleUnknownVersion Rule = "UnknownVersion"
	// RulePatch: the release has the current minor version.
	RulePatch Rule = "Patch"
	// RuleNotUpgradeable: the condition is False or Unknown, and the minor version differs.
	RuleNotUpgradeable Rule = "NotUpgradeable"
)

// Request is a release that is requested for the control plane.
type Request struct {
	// Image is compared as text, as HyperShift does: a tag never equals the digest of the same
	// release.
	Image string
	// Version is the version of the image.
	Version string
}

// Decision is HyperShift's decision about a request.
type Decision struct {
	Rule    Rule
	Accepts bool
	// Message is the cause of a refusal.
	Message string
}

// Evaluate predicts the gate of HyperShift (isUpgrading): the first rule that applies decides. An error means that
// the version of the request, which HyperShift reads from the image, cannot be compared.
func Evaluate(h *HostedCluster, request Request) (Decision, error) {
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
		return Decision{Rule: RuleOtherForced, Message: fmt.Sprintf(
			"the annotation %s names another release, %s, and ClusterVersionUpgradeable is %s", AnnotationForce, forced, upgradeable.Status)}, nil
	}
	if h.Spec.ControlPlaneRelease != nil {
		return Decision{Rule: RuleOverridden, Accepts: true}, nil
	}
	from, known := minorOf(status.Desired.Version)
	to, comparable := minorOf(request.Version)
	switch {
	case !known:
		return Decision{
			Rule:    RuleUnknownVersion,
			Message: fmt.Sprintf("the current version %q is not a semantic version", status.Desired.Version),
		}, nil
	case !comparable:
		return Decision{}, fmt.Errorf("the version %q of the requested release is not a semantic version", request.Version)
	case from == to:
		return Decision{Rule: RulePatch, Accepts: true}, nil
	}
	return Decision{
		Rule:    RuleNotUpgradeable,
		Message: "ClusterVersionUpgradeable is " + words.Condition(upgradeable.Status, upgradeable.Reason, upgradeable.Message),
	}, nil
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

// Releases returns the releases that the status lists: current, available, conditional and past.
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

// IsMulti reports whether the status lists a version as a multi-architecture release; false for another, and if
// the cluster-version operator of the guest reports no architectures.
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

// SameImage compares images as HyperShift does: by the digest if it can.
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
