// Package machine answers: what prevents the machines of this cluster from being updated and from coming back?
//
// The checks are about the effects of the update on nodes through their machines and kubelets: certificates that
// are not approved, health checks that replace a machine while it reboots, a configuration or boot images that the
// target does not support, and missing MachineConfigs that nodes need. Package health checks what prevents nodes
// from being drained.
package machine

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/machine/machineconfig"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

// Checks are all checks of the machines. A new one is added here.
func Checks() []check.Check {
	return append([]check.Check{CertificateRequests(), HealthChecks(), CgroupMode(), BootImages()}, machineconfig.Checks()...)
}

var reasonAsExpected = finding.NewReason("AsExpected", finding.Explanation{
	Meaning: "Nothing keeps the machines from being updated.",
	Cause:   "The check found none of the problems that it looks for.",
})

var (
	nameBootImages = finding.NewName("BootImages",
		"Checks for boot images that the machine-config-operator of 4.22 and later does not accept (pkg/operator/sync.go and status.go "+
			"of its release-4.22). The update itself completes, so the check warns: afterwards the operator reports Upgradeable=False. "+
			"From 4.22 on, the gate of the ClusterOperator reports it.")

	reasonBootImageSkew = finding.NewReason("BootImageSkew", finding.Explanation{
		Meaning: "The machine-config-operator of the target will report Upgradeable=False (ClusterBootImageSkewError), because boot " +
			"images are older than it accepts. The cluster then cannot leave its minor version.",
		Cause: "The cluster was installed as a release with such boot images, and no controller updates them.",
		Remedy: "Update the boot images of all machines and record their version, or let the machine-config-operator update them: `oc " +
			"get machineconfigurations.operator.openshift.io cluster -o yaml`.",
	})
	reasonBootImagesUnknown = finding.NewReason("BootImagesUnknown", finding.Explanation{
		Meaning: "It is unknown which boot images the machine-config-operator of the target will assume.",
		Cause:   "On bare metal it depends on spec.provisioningOSDownloadURL of the Provisioning.",
		Remedy:  "None needed if the field is empty: `oc get provisionings.metal3.io provisioning-configuration -o yaml`.",
	})
)

// firstWithSkew is the first release whose default feature set has the feature gate BootImageSkewEnforcement.
func firstWithSkew() semver.Version { return semver.Version{Major: 4, Minor: 22} }

// oldestBootImage is the oldest release whose boot images are accepted
// (machine-config-operator pkg/controller/common, OCPVersionBootImageSkewLimit, 4.22 to 5.0).
func oldestBootImage() semver.Version { return semver.Version{Major: 4, Minor: 13} }

// BootImages is the check BootImages.
func BootImages() check.Check {
	return check.Check{
		Name: nameBootImages, Kind: finding.SourceHealth,
		Concerns: func(u update.Update) bool {
			return withoutPre(u.From).LT(firstWithSkew()) && withoutPre(u.To).GTE(firstWithSkew())
		},
		Reads: append(check.ReadsClusterVersion(), check.Get(operatorv1.GroupName, "machineconfigurations", "", "cluster")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			infrastructure, err := s.Cluster.Infrastructure(ctx)
			switch {
			case apierrors.IsNotFound(err):
				return []finding.Finding{check.PlainKubernetes("boot images")}, nil
			case err != nil:
				return check.Unread("Infrastructures", err), ctx.Err()
			}
			if f, done := withoutSkew(gap.ExtentOf(ctx), infrastructure); done {
				return []finding.Finding{f}, nil
			}
			version, err := s.Cluster.ClusterVersion(ctx)
			if err != nil {
				return check.Unread("ClusterVersions", err), ctx.Err()
			}
			installed, known := installedAs(version)
			if known && installed.GTE(oldestBootImage()) {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), reasonAsExpected,
					"the cluster was installed as %s, whose boot images are accepted", installed)}, nil
			}
			configuration, err := machineConfiguration(ctx, s.Cluster)
			if err != nil {
				return check.Unread("MachineConfigurations", err), ctx.Err()
			}
			return []finding.Finding{judgeBootImages(gap.ExtentOf(ctx), infrastructure, configuration, installed, s.Update.To.String())}, nil
		},
	}
}

// withoutSkew is the result for a cluster whose boot images are not compared; false for others.
func withoutSkew(read gap.Extent, infrastructure *configv1.Infrastructure) (finding.Finding, bool) {
	switch {
	case infrastructure.Status.ControlPlaneTopology == configv1.ExternalTopologyMode:
		return finding.Skipped(read, check.ReasonHyperShift, "the machines of a hosted cluster are managed by another cluster"), true
	case infrastructure.Status.ControlPlaneTopology == configv1.SingleReplicaTopologyMode:
		return finding.Pass(read, reasonAsExpected, "the boot image of a single node is not compared"), true
	case platformOf(infrastructure) == configv1.BareMetalPlatformType:
		return finding.Skipped(read, reasonBootImagesUnknown,
			"on bare metal the boot images are compared only if spec.provisioningOSDownloadURL of the Provisioning "+
				"\"provisioning-configuration\" is set"), true
	}
	return finding.Finding{}, false
}

func platformOf(infrastructure *configv1.Infrastructure) configv1.PlatformType {
	if infrastructure.Status.PlatformStatus == nil {
		return infrastructure.Status.Platform //nolint:staticcheck // clusters installed before 4.2 set only this field
	}
	return infrastructure.Status.PlatformStatus.Type
}

// installedAs is the first release that was completely installed, or else the first one. It
// is false if none is known, which the machine-config-operator takes for 0.0.0.
func installedAs(version *configv1.ClusterVersion) (semver.Version, bool) {
	history := version.Status.History
	if len(history) == 0 {
		return semver.Version{}, false
	}
	first := history[len(history)-1]
	for _, each := range slices.Backward(history) {
		if each.State == configv1.CompletedUpdate {
			first = each
			break
		}
	}
	installed, err := semver.Parse(first.Version)
	return withoutPre(installed), err == nil
}

// machineConfiguration reads the MachineConfiguration; one without fields where there is none.
func machineConfiguration(ctx context.Context, cluster *snapshot.Cluster) (*operatorv1.MachineConfiguration, error) {
	configuration, err := cluster.MachineConfiguration(ctx)
	if apierrors.IsNotFound(err) {
		return &operatorv1.MachineConfiguration{}, nil
	}
	return configuration, err
}

func judgeBootImages(read gap.Extent, infrastructure *configv1.Infrastructure, configuration *operatorv1.MachineConfiguration,
	installed semver.Version, target string,
) finding.Finding {
	cause := fmt.Sprintf("it updates no boot images on the platform %q", platformOf(infrastructure))
	remedy := "Update the boot images of all machines. After the update, record their version in spec.bootImageSkewEnforcement of " +
		"the MachineConfiguration \"cluster\"."
	if updatesBootImages(infrastructure) {
		if allManaged(configuration.Spec.ManagedBootImages.MachineManagers) {
			return finding.Pass(read, reasonAsExpected, "the machine-config-operator of %s updates the boot images", target)
		}
		cause = "spec.managedBootImages of the MachineConfiguration \"cluster\" does not let it update the boot images of all MachineSets"
		remedy = "Let the machine-config-operator update the boot images of all MachineSets."
	}
	return finding.Warn(reasonBootImageSkew,
		"after the update to %s the machine-config-operator reports Upgradeable=False (ClusterBootImageSkewError): it accepts boot "+
			"images of %s and later, the cluster was installed as %s, and %s; the cluster then cannot leave its minor version",
		target, oldestBootImage(), installed, cause).
		Remedy("%s", remedy).
		Do(finding.Read("oc get machineconfigurations.operator.openshift.io cluster -o yaml")).
		About(finding.Object{APIVersion: operatorv1.GroupVersion.String(), Kind: "MachineConfiguration", Name: "cluster"})
}

// updatesBootImages is true for a platform on which the machine-config-operator of 4.22 updates
// the boot images of MachineSets by default.
func updatesBootImages(infrastructure *configv1.Infrastructure) bool {
	platform, status := platformOf(infrastructure), infrastructure.Status.PlatformStatus
	if platform == configv1.AzurePlatformType {
		return status == nil || status.Azure == nil || status.Azure.CloudName != configv1.AzureStackCloud
	}
	return slices.Contains([]configv1.PlatformType{configv1.AWSPlatformType, configv1.GCPPlatformType, configv1.VSpherePlatformType}, platform)
}

// allManaged is true unless an administrator excludes MachineSets: by an empty list, or by an
// entry for them with another mode than All.
func allManaged(managers []operatorv1.MachineManager) bool {
	if managers != nil && len(managers) == 0 {
		return false
	}
	return !slices.ContainsFunc(managers, func(manager operatorv1.MachineManager) bool {
		return manager.Resource == operatorv1.MachineSets && manager.APIGroup == operatorv1.MachineAPI && manager.Selection.Mode != operatorv1.All
	})
}

var nameCgroupMode = finding.NewName("CgroupMode",
	"Checks for cgroup v1 before an update to 4.19 or later, which does not support it (enhancement cgroupv1-removal; "+
		"machine-config-operator#4921). The machine-config-operator of 4.18 reports the setting of nodes.config.openshift.io by "+
		"Upgradeable=False, which its gate shows; an earlier one does not, and none reports the kernel arguments of MachineConfigs "+
		"(okd#710, okd#2148).")

// reportedReason is the reason of Upgradeable=False of the machine-config-operator for
// cgroup v1 (pkg/operator/status.go).
const reportedReason = "ClusterOnCgroupV1"

// cgroupModeV1 is no longer a constant of the API.
const cgroupModeV1 configv1.CgroupMode = "v1"

// CgroupMode is the check CgroupMode.
func CgroupMode() check.Check {
	return check.Check{
		Name: nameCgroupMode, Kind: finding.SourceHealth,
		Concerns: func(u update.Update) bool { return withoutPre(u.To).GTE(machineconfig.FirstWithoutV1()) },
		Reads: append(machineconfig.Reads(),
			check.Get(configv1.GroupName, "nodes", "", "cluster"), check.List(configv1.GroupName, "clusteroperators")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			var found []finding.Finding
			if s.Update.From.LT(machineconfig.FirstWithoutV1()) { // later ones have no such mode
				ofMode, err := judgeMode(ctx, s)
				if err != nil {
					return nil, err
				}
				found = ofMode
			}
			ofPools, err := machineconfig.JudgeArguments(ctx, s)
			if found = append(found, ofPools...); err == nil && len(found) == 0 {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), reasonAsExpected, "the nodes are not configured to use cgroup v1")}, nil
			}
			return found, err
		},
	}
}

// judgeMode is about the mode of all nodes; nothing where it is not v1.
func judgeMode(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	config, err := s.Cluster.NodeConfig(ctx)
	if apierrors.IsNotFound(err) || err == nil && config.Spec.CgroupMode != cgroupModeV1 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("could not read Node \"cluster\" of config.openshift.io: %w", err)
	}
	operators, err := s.Cluster.ClusterOperators(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not list the ClusterOperators: %w", err)
	}
	return []finding.Finding{cgroupV1(operators, s.Update.To.String())}, nil
}

// withoutPre returns a version without its prerelease: a prerelease of 4.19.0 belongs to 4.19.
func withoutPre(version semver.Version) semver.Version {
	version.Pre = nil
	return version
}

func cgroupV1(operators []configv1.ClusterOperator, target string) finding.Finding {
	for _, operator := range operators {
		for _, condition := range operator.Status.Conditions {
			if condition.Type == configv1.OperatorUpgradeable && condition.Status == configv1.ConditionFalse && condition.Reason == reportedReason {
				return finding.Skipped(gap.Proven("the ClusterOperator"), machineconfig.ReasonCgroupV1,
					"the ClusterOperator %s reports cgroup v1 itself, by Upgradeable=False", operator.Name)
			}
		}
	}
	return finding.Fail(machineconfig.ReasonCgroupV1, "spec.cgroupMode of nodes.config.openshift.io/cluster is v1, which %s does not support",
		target).
		Remedy("Configure cgroup v2, check that workloads run with it, and wait until all nodes have rebooted.").
		Do(finding.Change(`oc patch nodes.config.openshift.io cluster --type=merge -p {"spec":{"cgroupMode":"v2"}}`),
			finding.Read("oc wait machineconfigpool --all --for=condition=Updated --timeout=2h")).
		About(finding.Object{APIVersion: configv1.GroupVersion.String(), Kind: "Node", Name: "cluster"})
}

var (
	nameMachineHealthChecks = finding.NewName("MachineHealthChecks",
		"Checks for MachineHealthChecks that are not paused, a step of the documented preparation of an update. It concerns every "+
			"update, and warns.")

	reasonNotPaused = finding.NewReason("NotPaused", finding.Explanation{
		Meaning: "MachineHealthChecks are not paused, so they may delete machines whose nodes reboot for the update.",
		Cause: "A node that reboots for the update is NotReady; a MachineHealthCheck whose timeout is shorter than the reboot deletes " +
			"its machine.",
		Remedy: "Pause them during the update: `oc -n NAMESPACE annotate mhc NAME cluster.x-k8s.io/paused=\"\"`.",
	})
	reasonPaused = finding.NewReason("Paused", finding.Explanation{
		Meaning: "All MachineHealthChecks are paused.",
		Cause:   "Each MachineHealthCheck that acts on NotReady nodes has the annotation cluster.x-k8s.io/paused.",
		Remedy:  "None needed. Remove the annotation after the update.",
	})
)

// pausedAnnotation pauses a MachineHealthCheck, whatever its value
// (machine-api-operator pkg/controller/machinehealthcheck).
const pausedAnnotation = "cluster.x-k8s.io/paused"

const maxPaused = 20

// HealthChecks is the check MachineHealthChecks.
func HealthChecks() check.Check {
	return check.Check{
		Name: nameMachineHealthChecks, Kind: finding.SourceHealth,
		Reads: []access.Request{check.List(machinev1beta1.GroupName, "machinehealthchecks")},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			all, err := s.Cluster.MachineHealthChecks(ctx)
			if apierrors.IsNotFound(err) {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), reasonAsExpected, "the cluster has no Machine API")}, nil
			}
			if err != nil {
				return check.Unread("MachineHealthChecks", err), ctx.Err()
			}
			return []finding.Finding{judgeHealthChecks(gap.ExtentOf(ctx), all)}, nil
		},
	}
}

func judgeHealthChecks(read gap.Extent, all []machinev1beta1.MachineHealthCheck) finding.Finding {
	active := slices.DeleteFunc(slices.Clone(all), func(each machinev1beta1.MachineHealthCheck) bool { return !actsOnReadiness(each) })
	running := slices.DeleteFunc(slices.Clone(active), func(each machinev1beta1.MachineHealthCheck) bool {
		_, paused := each.Annotations[pausedAnnotation]
		return paused
	})
	switch {
	case len(active) == 0:
		return finding.Pass(read, reasonAsExpected, "no MachineHealthCheck acts on nodes that are not Ready")
	case len(running) == 0:
		return finding.Pass(read, reasonPaused, "all MachineHealthChecks that act on nodes which are not Ready are paused")
	}
	var names []string
	var objects []finding.Object
	var actions []finding.Action
	for _, each := range running {
		names = append(names, each.Namespace+"/"+each.Name)
		objects = append(objects, finding.Object{
			APIVersion: machinev1beta1.GroupVersion.String(), Kind: "MachineHealthCheck",
			Namespace: each.Namespace, Name: each.Name,
		})
		if len(actions) < maxPaused {
			actions = append(actions, finding.Change(`oc -n %s annotate mhc %s %s=`, each.Namespace, each.Name, pausedAnnotation))
		}
	}
	return finding.Warn(reasonNotPaused, "not paused, so a machine may be deleted while its node reboots for the update: %s of "+
		"MachineHealthCheck, %s",
		words.Count(len(names), "object"), words.List(names, maxPaused)).
		Remedy("Pause them during the update, and remove the annotation afterwards.").
		Do(actions...).About(objects...)
}

// actsOnReadiness is true for one that deletes machines whose node is not Ready, as during a
// reboot. The one for spot instances acts on their termination only.
func actsOnReadiness(each machinev1beta1.MachineHealthCheck) bool {
	return slices.ContainsFunc(each.Spec.UnhealthyConditions, func(condition machinev1beta1.UnhealthyCondition) bool {
		return condition.Type == corev1.NodeReady
	})
}
