package machineconfig

import (
	"cmp"
	"context"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/nodeconfig"
	"github.com/openshift/update-preflight/collector/words"
)

// The reasons of findings about cgroup v1.
var (
	ReasonCgroupV1 = finding.NewReason("CgroupV1", finding.Explanation{
		Meaning: "Reported when the nodes are configured to use cgroup v1, which the target does not support.",
		Cause: "spec.cgroupMode of nodes.config.openshift.io/cluster is v1, or a MachineConfig has the kernel argument " +
			"systemd.unified_cgroup_hierarchy=0. The kubelet of 4.22 and later does not start with it.",
		Remedy: "Configure v2, and wait until all nodes have rebooted: `oc patch nodes.config.openshift.io cluster " +
			"--type=merge -p '{\"spec\":{\"cgroupMode\":\"v2\"}}'`, or remove the kernel argument from the MachineConfig.",
	})
	reasonCgroupArgument = finding.NewReason("CgroupArgument", finding.Explanation{
		Meaning: "Reported when a kernel argument of cgroup v1 is configured that does not select it for this target or by itself.",
		Cause: "systemd.legacy_systemd_cgroup_controller has an effect only beside systemd.unified_cgroup_hierarchy=0, RHEL 10 " +
			"ignores both, and 4.19 to 4.21 run with cgroup v1 without supporting it.",
		Remedy:  "Remove the kernel argument from the MachineConfig.",
		Command: "oc edit machineconfig NAME",
	})

	nameCgroupArgument = reasonCgroupArgument.Names("CgroupArgument")
)

// FirstWithoutV1 is the first release whose nodes do not support cgroup v1.
func FirstWithoutV1() semver.Version { return release(4, 19) }

// firstRefusing is the first release whose kubelet, that of Kubernetes 1.35, does not start with cgroup v1 (failCgroupV1,
// KEP-5573).
func firstRefusing() semver.Version { return release(4, 22) }

// JudgeArguments is about the kernel arguments of the pools: a finding without a name about those with which the target does
// not work, and one about others of cgroup v1. A cluster without MachineConfigPools has none.
func JudgeArguments(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	if skipped, err := withoutPools(ctx, s); skipped != nil || err != nil {
		return nil, err
	}
	configuration, without, err := readPools(ctx, s)
	if without != nil || err != nil {
		return without, err
	}
	if !configuration.names() {
		return nil, nil
	}
	if without, err := configuration.readConfigs(ctx, s); without != nil || err != nil {
		return without, err
	}
	var refused, other subjects
	for i := range configuration.pools {
		pool := configuration.inPool(&configuration.pools[i], withoutPre(s.Update.To))
		selected, by := pool.selectedCgroups()
		into, effect := &other, pool.effectOf(selected, s)
		if effect == "" {
			continue
		}
		if pool.refuses(selected, s) {
			into = &refused
		}
		config := pool.withArgument(by)
		into.add(poolObject(pool.Name), config, "%s of MachineConfig %s, by which MachineConfigPool %q %s", words.Line(by, maxValues), config, pool.Name, effect)
	}
	var found []finding.Finding
	if len(refused.clauses) > 0 {
		found = append(found, aboutArguments(finding.Fail(ReasonCgroupV1, "%s does not support the kernel arguments of MachineConfigPools: %s",
			s.Update.To, words.Clauses(refused.clauses, maxConfigsNamed)), refused))
	}
	if len(other.clauses) > 0 {
		found = append(found, aboutArguments(finding.Warn(reasonCgroupArgument, "MachineConfigPools have kernel arguments of cgroup v1: %s",
			words.Clauses(other.clauses, maxConfigsNamed)), other).Named(nameCgroupArgument))
	}
	return found, nil
}

func aboutArguments(f finding.Finding, of subjects) finding.Finding {
	return f.Remedy("Remove the kernel argument from the MachineConfig, check that workloads run with cgroup v2, and wait until the pool is updated.").
		Do(finding.Change("oc edit machineconfig %s", of.configs[0]), finding.Read("oc wait machineconfigpool --all --for=condition=Updated --timeout=2h")).
		About(of.all()...)
}

// selectedCgroups is what the rendered MachineConfig of a pool selects, or else what its sources select.
func (p *configuredPool) selectedCgroups() (nodeconfig.Cgroups, string) {
	if p.rendered != nil && len(p.rendered.CgroupArguments) > 0 {
		return nodeconfig.SelectedCgroups(p.rendered.CgroupArguments)
	}
	var all []string
	for _, source := range p.configs {
		all = append(all, source.CgroupArguments...)
	}
	return nodeconfig.SelectedCgroups(all)
}

// withArgument is the name of the first MachineConfig that has a kernel argument: a source, or else the rendered one.
func (p *configuredPool) withArgument(argument string) string {
	for _, config := range p.configs {
		if slices.Contains(config.CgroupArguments, argument) {
			return config.Name
		}
	}
	return ""
}

// onRHEL10Already reports whether a pool is known to have RHEL 10 now, or to get it by its own stream.
func (p *configuredPool) onRHEL10Already() bool {
	return isRHEL10(cmp.Or(p.Spec.OSImageStream.Name, p.Status.OSImageStream.Name))
}

// refuses reports whether the nodes of the pool do not work with a selection once they have the target.
func (p *configuredPool) refuses(selected nodeconfig.Cgroups, s check.Subject) bool {
	return selected == nodeconfig.V1 && !p.onRHEL10Already() && (s.Update.From.LT(FirstWithoutV1()) || p.target.GTE(firstRefusing()))
}

// effectOf ends a sentence with the effect of a selection; empty for one that is not of cgroup v1.
func (p *configuredPool) effectOf(selected nodeconfig.Cgroups, s check.Subject) string {
	switch {
	case selected == nodeconfig.LegacyController:
		return "has the controller of cgroup v1 in case systemd.unified_cgroup_hierarchy=0 selects it"
	case selected != nodeconfig.V1:
		return ""
	case p.onRHEL10Already():
		return "selects cgroup v1, which RHEL 10 ignores"
	case p.target.GTE(firstRefusing()):
		return "selects cgroup v1, with which the kubelet of " + s.Update.To.String() + " does not start"
	}
	return "selects cgroup v1, which " + s.Update.To.String() + " does not support"
}
