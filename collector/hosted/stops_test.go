package hosted_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
)

// change is how an example differs from a healthy one.
type change func(h *hypershift.HostedCluster, p *hypershift.NodePool)

// opened is the side of the management cluster with this change, of a hosted cluster whose control plane and
// pods are not read.
func opened(t *testing.T, apply change, pools ...string) *hosted.ControlPlane {
	t.Helper()
	h, p := hostedCluster(), nodePool("4.18.5")
	apply(h, p)
	server := many()
	server.objects[base+"hostedclusters/example"] = h
	server.objects[base+"nodepools"] = map[string]any{
		"apiVersion": hypershift.GroupVersion().String(), "kind": "NodePoolList", "metadata": map[string]any{}, "items": []any{p},
	}
	server.objects["/api/v1/namespaces/hypershift/configmaps/supported-versions"] = supported()
	side, err := hosted.Open(t.Context(), server.connect(t), "clusters", "example", pools...)
	if err != nil {
		t.Fatal(err)
	}
	return side
}

// stopped has the findings of an update, besides those about what the server of opened does not have.
func stopped(t *testing.T, side *hosted.ControlPlane, to string) map[string]string {
	t.Helper()
	found := evaluate(t, side, to)
	maps.DeleteFunc(found, func(name, _ string) bool { return name == "HostedControlPlanePods" || name == "HostedEtcdBackup" })
	return found
}

// What HyperShift does not reconcile is never clear, whatever else there is to say about it, and no
// request of it is predicted to be accepted.
func TestNotReconciled(t *testing.T) {
	const paused, wants = "HostedClusterPaused Fail", "HostedClusterReconciliation"
	for name, tc := range map[string]struct {
		reason  string
		change  change
		to      string
		want    map[string]string
		refuses bool
		// unknown is true where the prediction is unknown.
		unknown bool
	}{
		"Healthy": {reason: "HyperShift carries out the request", to: "4.18.6", change: func(*hypershift.HostedCluster, *hypershift.NodePool) {}},
		"True": {
			reason: "HyperShift reads the field as Go reads a boolean", to: "4.18.6", refuses: true,
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Spec.PausedUntil = "True" },
			want:   map[string]string{wants: paused},
		},
		"One": {
			reason: "1 is true", to: "4.18.6", refuses: true,
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Spec.PausedUntil = "1" },
			want:   map[string]string{wants: paused},
		},
		"False": {
			reason: "F is false", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Spec.PausedUntil = "F" },
		},
		"Invalid": {
			reason: "another text pauses nothing", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Spec.PausedUntil = "yes" },
			want:   map[string]string{wants: "PauseInvalid Warn"},
		},
		"Inactive": {
			reason: "the report of HyperShift counts beside a field that pauses nothing", to: "4.18.6", refuses: true,
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				h.Spec.PausedUntil = "yes"
				set(h, "ReconciliationActive", metav1.ConditionFalse)
			},
			want: map[string]string{wants: "PauseInvalid Warn NotReconciled Fail"},
		},
		"Deleted": {
			reason: "HyperShift deletes it, and nothing else", to: "4.18.6", refuses: true,
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				h.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			},
			want: map[string]string{wants: "BeingDeleted Fail"},
		},
		"Unobserved": {
			reason: "conditions of an earlier spec prove nothing", to: "4.18.6", unknown: true,
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				h.Generation = 3
				h.Status.Conditions = append(h.Status.Conditions,
					metav1.Condition{Type: "ReconciliationActive", Status: metav1.ConditionTrue, ObservedGeneration: 2})
			},
			want: map[string]string{wants: "SpecNotObserved Unknown"},
		},
		"ControlPlaneConfiguration": {
			reason: "the control-plane-operator stops as well", to: "4.18.6", refuses: true,
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				set(h, "ValidHostedControlPlaneConfiguration", metav1.ConditionFalse)
			},
			want: map[string]string{wants: "NotReconciled Fail"},
		},
		"Credentials": {
			reason: "without the credentials of the platform the control-plane-operator of the release is not deployed", to: "4.18.6", refuses: true,
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				set(h, "PlatformCredentialsFound", metav1.ConditionFalse)
			},
			want: map[string]string{wants: "NotReconciled Fail"},
		},
		"RefusedVersion": {
			reason: "the request replaces a release that is refused by its version", to: "4.18.6",
			change: invalidRelease(`the latest version supported is: "4.20". Attempting to use: "4.21.0"`),
			want:   map[string]string{wants: "RefusedReleaseReplaced Warn"},
		},
		"SameVersion": {
			reason: "the request repeats what is refused", to: "4.18.6", refuses: true,
			change: invalidRelease(`y-stream downgrade from "4.19.0" to "4.18.6" is not supported`),
			want:   map[string]string{wants: "NotReconciled Fail"},
		},
		"VersionBefore": {
			reason: "the version that is refused is the last one of the message", to: "4.18.6",
			change: invalidRelease(`y-stream downgrade from "4.18.6" to "4.17.9" is not supported`),
			want:   map[string]string{wants: "RefusedReleaseReplaced Warn"},
		},
		"Newest": {
			reason: "and not the newest that is supported", to: "4.18.6",
			change: invalidRelease(`the latest version supported is: "4.18.6". Attempting to use: "4.21.0"`),
			want:   map[string]string{wants: "RefusedReleaseReplaced Warn"},
		},
		"PatchForMinor": {
			reason: "the gate judges each request anew, and accepts a patch", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { refuseMinor(h) },
			want:   map[string]string{"HostedClusterRequest": "RequestRefused Warn"},
		},
		"PatchForMinorReported": {
			reason: "also after HyperShift has reported the refusal", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				refuseMinor(h)
				h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{
					Type: "Progressing", Status: metav1.ConditionFalse,
					Reason: "Blocked", Message: "ClusterVersionUpgradeable condition is false: cluster version is not upgradeable",
				})
			},
			want: map[string]string{"HostedClusterRequest": "RequestRefused Warn"},
		},
		"MinorAgain": {
			reason: "another minor request is refused as well", to: "4.19.0", refuses: true,
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { refuseMinor(h) },
			want:   map[string]string{"HostedClusterRequest": "RequestRefused Fail HostedClusterNotUpgradeable Fail"},
		},
		"PatchForOther": {
			reason: "what another condition refuses, no request replaces", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				refuseMinor(h)
				h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{
					Type: "Progressing", Status: metav1.ConditionFalse,
					Reason: "Blocked", Message: "SupportedHostedCluster condition is false: no",
				})
			},
			want: map[string]string{"HostedClusterRequest": "RequestRefused Fail"},
		},
		"NoVersion": {
			reason: "what runs is not known, and so is what HyperShift does", to: "4.18.6", unknown: true,
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Status.Version = nil },
			want:   map[string]string{"HostedClusterRequest": "RequestUnknown Unknown"},
		},
		"Unreadable": {
			reason: "a registry that does not respond is not replaced", to: "4.18.6", refuses: true,
			change: invalidRelease("failed to lookup release image: unauthorized"),
			want:   map[string]string{wants: "NotReconciled Fail"},
		},
		"Unvalidated": {
			reason: "with the annotation no version is refused", to: "4.21.0",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				h.Annotations = map[string]string{hypershift.AnnotationUnvalidated: ""}
			},
			want: map[string]string{
				"HostedClusterVersion": "MinorVersionSkipped Fail ReleaseNotValidated Warn",
				"NodePoolSkew":         "NodePoolAtLimit Warn",
			},
		},
		"Unsupported": {
			reason: "a version that HyperShift refuses is not predicted to be accepted", to: "4.17.9", refuses: true,
			change: func(*hypershift.HostedCluster, *hypershift.NodePool) {},
			want:   map[string]string{"HostedClusterVersion": "VersionRefused Fail", "NodePoolSkew": "NodePoolNewer Warn"},
		},
		"PausedAndRefused": {
			reason: "a request that is refused does not hide the pause", to: "4.19.0", refuses: true,
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				h.Spec.PausedUntil = "T"
				set(h, "ClusterVersionUpgradeable", metav1.ConditionFalse)
				set(h, "ValidConfiguration", metav1.ConditionFalse)
			},
			want: map[string]string{wants: paused + " NotReconciled Fail", "HostedClusterRequest": "HostedClusterNotUpgradeable Fail"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			side := opened(t, tc.change)
			if diff := cmp.Diff(tc.want, stopped(t, side, tc.to), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			if predicted := side.Predict(tc.to); (predicted.Accepts == nil) != tc.unknown || !tc.unknown && *predicted.Accepts == tc.refuses {
				t.Errorf("%s: the prediction is %+v, want refused %t", tc.reason, predicted, tc.refuses)
			}
		})
	}
}

// A pool that is named and that HyperShift does not reconcile blocks; one that is not named warns.
func TestPoolNotReconciled(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change change
		want   string
		named  string
	}{
		"True": {
			reason: "HyperShift reads the field as Go reads a boolean", want: "HostedClusterPaused Warn", named: "HostedClusterPaused Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) { p.Spec.PausedUntil = "True" },
		},
		"Updating": {
			reason: "an update in progress does not hide the pause", want: "HostedClusterPaused Warn NodePoolUpdating Warn",
			named: "HostedClusterPaused Fail NodePoolUpdating Warn",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				p.Spec.PausedUntil = "t"
				setPool(p, "UpdatingVersion", metav1.ConditionTrue)
			},
		},
		"ArchitectureNotStated": {
			reason: "HyperShift has stated neither the architecture of the release nor whether the pool has it",
			want:   "NodePoolArchitectureUnknown Warn", named: "NodePoolArchitectureUnknown Unknown",
			change: func(h *hypershift.HostedCluster, p *hypershift.NodePool) {
				h.Status.PayloadArch, p.Spec.Platform.Type = "", "AWS"
			},
		},
		"ArchitectureValid": {
			reason: "an earlier HyperShift stated the condition alone",
			change: func(h *hypershift.HostedCluster, p *hypershift.NodePool) {
				h.Status.PayloadArch = ""
				setPool(p, "ValidArchPlatform", metav1.ConditionTrue)
			},
		},
		"ArchitectureUnchecked": {
			reason: "HyperShift does not compare an architecture that it does not support on the platform",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				p.Spec.Platform.Type, p.Spec.Arch = "IBMCloud", "s390x"
			},
		},
		"ArchitectureUnsupported": {
			reason: "and says so, but continues", want: "NodePoolCondition Warn", named: "NodePoolCondition Warn",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				p.Spec.Platform.Type, p.Spec.Arch = "OpenStack", "arm64"
				setPool(p, "ValidArchPlatform", metav1.ConditionFalse)
			},
		},
		"ArchitectureChecked": {
			reason: "the platform is one on which HyperShift compares", want: "NodePoolArchitecture Warn", named: "NodePoolArchitecture Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				p.Spec.Platform.Type, p.Spec.Arch = "AWS", "arm64"
			},
		},
		"ArchitectureOfNewPlatform": {
			reason: "whether HyperShift compares on a platform that is newer than this program is unknown", want: "NodePoolArchitectureUnknown Warn",
			named: "NodePoolArchitectureUnknown Unknown",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				p.Spec.Platform.Type, p.Spec.Arch = "Nutanix", "arm64"
			},
		},
		"Stream": {
			reason: "the target has no such operating system", want: "NodePoolStream Warn", named: "NodePoolStream Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) { p.Spec.OSImageStream.Name = "rhel-10" },
		},
		"StreamOfRelease": {
			reason: "every release has it",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) { p.Spec.OSImageStream.Name = "rhel-9" },
		},
		"Architecture": {
			reason: "the release lacks the architecture of the pool", want: "NodePoolArchitecture Warn", named: "NodePoolArchitecture Fail",
			change: func(h *hypershift.HostedCluster, p *hypershift.NodePool) {
				h.Status.PayloadArch, p.Spec.Arch = "AMD64", "arm64"
				setPool(p, "ValidArchPlatform", metav1.ConditionFalse)
			},
		},
		"ArchitectureUnknown": {
			reason: "the report of HyperShift counts where the architecture of the release is not known", want: "NodePoolCondition Warn",
			named: "NodePoolCondition Fail",
			change: func(h *hypershift.HostedCluster, p *hypershift.NodePool) {
				h.Status.PayloadArch = ""
				setPool(p, "ValidArchPlatform", metav1.ConditionFalse)
			},
		},
		"ArchitectureOfPlatform": {
			reason: "HyperShift continues with an architecture that it does not support on the platform", want: "NodePoolCondition Warn",
			named: "NodePoolCondition Warn",
			change: func(h *hypershift.HostedCluster, p *hypershift.NodePool) {
				h.Status.PayloadArch = "Multi"
				setPool(p, "ValidArchPlatform", metav1.ConditionFalse)
			},
		},
		"ArchitectureReplaced": {
			reason: "the target has the architecture that the present release lacks", want: "NodePoolArchitecture Warn",
			named: "NodePoolArchitecture Warn",
			change: func(h *hypershift.HostedCluster, p *hypershift.NodePool) {
				h.Status.PayloadArch, p.Spec.Arch = "AMD64", "arm64"
				h.Status.Version.AvailableUpdates[0].Architecture = configv1.ClusterVersionArchitectureMulti
			},
		},
		"InfraID": {
			reason: "HyperShift stops without a condition", want: "NodePoolAwaitsHostedCluster Warn", named: "NodePoolAwaitsHostedCluster Fail",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Spec.InfraID = "" },
		},
		"KubeConfig": {
			reason: "HyperShift waits for the kubeconfig of the guest without a condition", want: "NodePoolAwaitsHostedCluster Warn",
			named:  "NodePoolAwaitsHostedCluster Fail",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Status.KubeConfig = nil },
		},
		"PlatformConfig": {
			reason: "HyperShift reports it, and continues", want: "NodePoolCondition Warn", named: "NodePoolCondition Warn",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				setPool(p, "ValidPlatformConfig", metav1.ConditionFalse)
			},
		},
		"TuningConfig": {
			reason: "HyperShift stops at a tuning configuration that is not valid", want: "NodePoolCondition Warn", named: "NodePoolCondition Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				setPool(p, "ValidTuningConfig", metav1.ConditionFalse)
			},
		},
		"MachineTemplate": {
			reason: "HyperShift stops at a machine template that is not valid", want: "NodePoolCondition Warn", named: "NodePoolCondition Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				setPool(p, "ValidMachineTemplate", metav1.ConditionFalse)
			},
		},
		"SecurityGroup": {
			reason: "HyperShift waits for the security group", want: "NodePoolCondition Warn", named: "NodePoolCondition Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				setPool(p, "AWSSecurityGroupAvailable", metav1.ConditionFalse)
			},
		},
		"Image": {
			reason: "another release may have the image that the present one lacks", want: "NodePoolImageUnknown Warn",
			named: "NodePoolImageUnknown Unknown",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				p.Spec.Release.Image = present
				p.Status.Conditions = []metav1.Condition{{
					Type: "ValidPlatformImage", Status: metav1.ConditionFalse, Reason: "ValidationFailed",
					Message: `Couldn't discover an AMI for release image "` + present + `": no region`,
				}}
			},
		},
		"ImageOfTarget": {
			reason: "the target lacks the image", want: "NodePoolCondition Warn", named: "NodePoolCondition Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				const target = "quay.io/release@sha256:cc"
				p.Spec.Release.Image = target
				p.Status.Conditions = []metav1.Condition{{
					Type: "ValidPlatformImage", Status: metav1.ConditionFalse, Reason: "ValidationFailed",
					Message: `Couldn't discover an AMI for release image "` + target + `": no region`,
				}}
			},
		},
		"InPlaceFailed": {
			reason: "an update in place does not continue beside a degraded node", want: "NodePoolCondition Warn", named: "NodePoolCondition Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				p.Status.Conditions = []metav1.Condition{{
					Type: "UpdatingVersion", Status: metav1.ConditionFalse, Reason: "InplaceUpgradeFailed",
					Message: "Node a degraded",
				}}
			},
		},
		"MachineTemplateUpdating": {
			reason: "the machines are being replaced", want: "NodePoolUpdating Warn", named: "NodePoolUpdating Warn",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				setPool(p, "UpdatingPlatformMachineTemplate", metav1.ConditionTrue)
			},
		},
		"PerformanceProfile": {
			reason: "the Node Tuning Operator advises against an update, and HyperShift does not heed it",
			want:   "NodePoolCondition Warn NodePoolCondition Warn", named: "NodePoolCondition Warn NodePoolCondition Warn",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				setPool(p, "performance.operator.openshift.io/Upgradeable", metav1.ConditionFalse)
				setPool(p, "performance.operator.openshift.io/Degraded", metav1.ConditionTrue)
			},
		},
		"Manual": {
			reason: "HyperShift sets the version of the pool, and updates no node", named: "NodePoolNotAutomated Warn",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) { p.Spec.Platform.Type = "None" },
		},
		"Ignition": {
			reason: "HyperShift waits for the endpoint", want: "NodePoolCondition Warn", named: "NodePoolCondition Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				setPool(p, "IgnitionEndpointAvailable", metav1.ConditionFalse)
			},
		},
		"Payload": {
			reason: "HyperShift gives a payload that is not valid no status", want: "NodePoolCondition Warn", named: "NodePoolCondition Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) { setPool(p, "ValidGeneratedPayload", "") },
		},
		"NoReplicas": {
			reason: "a pool without machines has none that is not ready",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				p.Status.Conditions = []metav1.Condition{{Type: "AllMachinesReady", Status: metav1.ConditionFalse, Reason: "AsExpected"}}
			},
		},
		"Deleted": {
			reason: "it is not updated", want: "BeingDeleted Warn", named: "BeingDeleted Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			},
		},
		"Inactive": {
			reason: "the report of HyperShift counts", want: "NodePoolCondition Warn", named: "NodePoolCondition Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				setPool(p, "ReconciliationActive", metav1.ConditionFalse)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := func(h *hypershift.HostedCluster, p *hypershift.NodePool) {
				p.Spec.Management.UpgradeType = "InPlace"
				tc.change(h, p)
			}
			if got := stopped(t, opened(t, changed), "4.18.6")["NodePools"]; got != tc.want {
				t.Errorf("%s: a pool that is not named: %q, want %q", tc.reason, got, tc.want)
			}
			if got := stopped(t, opened(t, changed, "workers"), "4.18.6")["NodePools"]; got != tc.named {
				t.Errorf("%s: a pool that is named: %q, want %q", tc.reason, got, tc.named)
			}
		})
	}
}

// Pools of several architectures need a release for all architectures: where the status does not list the target as
// one, whether HyperShift still reconciles the pools is unknown.
func TestMixedArchitectures(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, payload, listed, other, want string
	}{
		"Listed": {reason: "the status lists the target as one for all", payload: "Multi", listed: "Multi", other: "arm64"},
		"Unlisted": {
			reason: "the target may lack the architecture", payload: "Multi", other: "arm64",
			want: "NodePoolArchitectureUnknown Unknown",
		},
		"Equal": {reason: "pools of one architecture are as before", payload: "Multi", other: "amd64"},
		"Unknown": {
			reason: "HyperShift has not stated the architecture of the release", other: "arm64",
			want: "NodePoolArchitectureUnknown Unknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, p, other := hostedCluster(), nodePool("4.18.5"), nodePool("4.18.5")
			p.Spec.Management.UpgradeType, other.Name, other.Spec.Arch = "InPlace", "others", tc.other
			h.Status.PayloadArch, h.Status.Version.AvailableUpdates[0].Architecture = tc.payload, configv1.ClusterVersionArchitecture(tc.listed)
			server := many()
			server.objects[base+"hostedclusters/example"] = h
			server.objects[base+"nodepools"] = map[string]any{
				"apiVersion": hypershift.GroupVersion().String(), "kind": "NodePoolList", "metadata": map[string]any{}, "items": []any{p, other},
			}
			side, err := hosted.Open(t.Context(), server.connect(t), "clusters", "example", "workers")
			if err != nil {
				t.Fatal(err)
			}
			if got := stopped(t, side, "4.18.6")["NodePools"]; got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func setPool(p *hypershift.NodePool, name string, status metav1.ConditionStatus) {
	p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: name, Status: status, Reason: "Test"})
}

// refuseMinor has a minor update be requested that the gate of HyperShift refuses.
func refuseMinor(h *hypershift.HostedCluster) {
	set(h, "ClusterVersionUpgradeable", metav1.ConditionFalse)
	h.Spec.Release.Image = next
}

// invalidRelease is a HostedCluster whose requested release HyperShift refuses with this message.
func invalidRelease(message string) change {
	return func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
		h.Status.Conditions = append(h.Status.Conditions,
			metav1.Condition{Type: "ValidReleaseImage", Status: metav1.ConditionFalse, Reason: "InvalidImage", Message: message})
	}
}

// A pool that is named may go where HyperShift lets it.
func TestPoolTargets(t *testing.T) {
	ended := &metav1.Time{Time: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}
	for name, tc := range map[string]struct {
		reason, to, want string
		change           change
	}{
		"SDN": {
			reason: "pools of OpenShiftSDN have no later minor version", to: "4.18.6", want: "NodePoolRefused Fail",
			change: func(h *hypershift.HostedCluster, p *hypershift.NodePool) {
				h.Spec.Networking.NetworkType, p.Status.Version = "OpenShiftSDN", "4.17.9"
			},
		},
		"TooNew": {
			reason: "the operator does not support it, whatever the control plane runs", to: "4.21.0", want: "NodePoolRefused Fail",
			change: func(*hypershift.HostedCluster, *hypershift.NodePool) {},
		},
		"Minimum": {
			reason: "4.14 is the oldest", to: "4.13.1", want: "NodePoolRefused Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) { p.Status.Version = "4.12.0" },
		},
		"Downgrade": {
			reason: "no minor version before that of the pool", to: "4.18.6", want: "NodePoolDowngrade Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) { p.Status.Version = "4.19.0" },
		},
		"Unvalidated": {
			reason: "with the annotation HyperShift refuses no downgrade", to: "4.18.6", want: "ReleaseNotValidated Warn",
			change: func(h *hypershift.HostedCluster, p *hypershift.NodePool) {
				p.Status.Version = "4.19.0"
				h.Annotations = map[string]string{hypershift.AnnotationUnvalidated: "true"}
			},
		},
		"Superseded": {
			reason: "an update that another one superseded has a completion time, which is all that HyperShift looks at", to: "4.19.0",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				h.Status.Version.History = []configv1.UpdateHistory{
					{State: configv1.PartialUpdate, Version: "4.19.1"},
					{State: configv1.PartialUpdate, Version: "4.19.0", CompletionTime: ended},
					{State: configv1.CompletedUpdate, Version: "4.18.5", CompletionTime: ended},
				}
			},
		},
		"Installing": {
			reason: "without a completed update the requested release is the limit", to: "4.19.0", want: "NodePoolWaits Warn",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Status.Version.History = nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stopped(t, opened(t, tc.change, "workers"), tc.to)["NodePoolTargets"]; got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
