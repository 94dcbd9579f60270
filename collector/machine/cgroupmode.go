package machine

import (
	"context"
	"fmt"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/machine/machineconfig"
	"github.com/openshift/update-preflight/collector/update"
)

var nameCgroupMode = finding.NewName("CgroupMode",
	"The check for cgroup v1 before an update to 4.19 or later, which does not support it (enhancement "+
		"cgroupv1-removal; machine-config-operator#4921). The machine-config-operator of 4.18 reports what "+
		"nodes.config.openshift.io configures by Upgradeable=False, where its gate says it; an earlier one does not, and "+
		"none reports the kernel arguments of MachineConfigs (okd#710, okd#2148).")

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

// withoutPre is a version without its prerelease: that of 4.19.0 is one of 4.19.
func withoutPre(version semver.Version) semver.Version {
	version.Pre = nil
	return version
}

func cgroupV1(operators []configv1.ClusterOperator, target string) finding.Finding {
	for _, operator := range operators {
		for _, condition := range operator.Status.Conditions {
			if condition.Type == configv1.OperatorUpgradeable && condition.Status == configv1.ConditionFalse && condition.Reason == reportedReason {
				return finding.Skipped(gap.Proven("the ClusterOperator"), machineconfig.ReasonCgroupV1, "the ClusterOperator %s reports cgroup v1 itself, by Upgradeable=False", operator.Name)
			}
		}
	}
	return finding.Fail(machineconfig.ReasonCgroupV1, "spec.cgroupMode of nodes.config.openshift.io/cluster is v1, which %s does not support", target).
		Remedy("Configure cgroup v2, check that workloads run with it, and wait until all nodes have rebooted.").
		Do(finding.Change(`oc patch nodes.config.openshift.io cluster --type=merge -p {"spec":{"cgroupMode":"v2"}}`),
			finding.Read("oc wait machineconfigpool --all --for=condition=Updated --timeout=2h")).
		About(finding.Object{APIVersion: configv1.GroupVersion.String(), Kind: "Node", Name: "cluster"})
}
