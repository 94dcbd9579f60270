package machineconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/nodeconfig"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/snapshot/reported"
	"github.com/openshift/update-preflight/collector/words"
)

// The reasons of findings about cgroup v1.
var (
	ReasonCgroupV1 = finding.NewReason("CgroupV1", finding.Explanation{
		Meaning: "The nodes are configured to use cgroup v1, which the target does not support.",
		Cause: "spec.cgroupMode of nodes.config.openshift.io/cluster is v1, or a MachineConfig has the kernel argument " +
			"systemd.unified_cgroup_hierarchy=0. The kubelet of 4.22 and later does not start with it.",
		Remedy: "Configure v2, and wait until all nodes have rebooted: `oc patch nodes.config.openshift.io cluster " +
			"--type=merge -p '{\"spec\":{\"cgroupMode\":\"v2\"}}'`, or remove the kernel argument from the MachineConfig.",
	})
	reasonCgroupArgument = finding.NewReason("CgroupArgument", finding.Explanation{
		Meaning: "A kernel argument of cgroup v1 is configured, but does not select cgroup v1 for this target or by itself.",
		Cause: "systemd.legacy_systemd_cgroup_controller has an effect only together with systemd.unified_cgroup_hierarchy=0, RHEL 10 " +
			"ignores both, and 4.19 to 4.21 run with cgroup v1 without supporting it.",
		Remedy:  "Remove the kernel argument from the MachineConfig.",
		Command: "oc edit machineconfig NAME",
	})

	nameCgroupArgument = reasonCgroupArgument.Names("CgroupArgument")
)

// FirstWithoutV1 is the first release whose nodes do not support cgroup v1.
func FirstWithoutV1() semver.Version { return release(4, 19) }

// firstRefusing is the first release whose kubelet, of Kubernetes 1.35, does not start with cgroup v1
// (failCgroupV1, KEP-5573).
func firstRefusing() semver.Version { return release(4, 22) }

// JudgeArguments evaluates the kernel arguments of the pools: it returns a finding without a name about arguments
// with which the target does not work, and one about others of cgroup v1. A cluster without MachineConfigPools has
// none.
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
		into.add(poolObject(pool.Name), config, "%s of MachineConfig %s, by which MachineConfigPool %q %s", words.Line(by, maxValues), config,
			pool.Name, effect)
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
	return f.Remedy("Remove the kernel argument from the MachineConfig, check that workloads run with cgroup v2, and wait until the "+
		"pool is updated.").
		Do(finding.Change("oc edit machineconfig %s", of.configs[0]),
			finding.Read("oc wait machineconfigpool --all --for=condition=Updated --timeout=2h")).
		About(of.all()...)
}

// selectedCgroups returns the cgroup version that the rendered MachineConfig of a pool selects, or else its
// sources.
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
		return "sets the controller of cgroup v1 for the case that systemd.unified_cgroup_hierarchy=0 selects it"
	case selected != nodeconfig.V1:
		return ""
	case p.onRHEL10Already():
		return "selects cgroup v1, which RHEL 10 ignores"
	case p.target.GTE(firstRefusing()):
		return "selects cgroup v1, with which the kubelet of " + s.Update.To.String() + " does not start"
	}
	return "selects cgroup v1, which " + s.Update.To.String() + " does not support"
}

var (
	nameGeneratedConfigs = finding.NewName("GeneratedConfigs",
		"Checks for KubeletConfigs and ContainerRuntimeConfigs that the machine-config-operator rejects. Each has a finding "+
			"GeneratedConfigs-<kind>.<name>, which blocks every update if a MachineConfig was generated from an earlier state of the "+
			"object, and otherwise warns.")

	reasonConfigNotAccepted = finding.NewReason("ConfigNotAccepted", finding.Explanation{
		Meaning: "The machine-config-operator rejects a KubeletConfig or a ContainerRuntimeConfig.",
		Cause: "The object was edited and is invalid, so the MachineConfig that was generated from it before stays. The operator of " +
			"the target does not generate it again, and renders no pool with a MachineConfig that another version of the operator " +
			"generated (machine-config-operator pkg/controller/render/render_controller.go, \"generated by older version\"): the nodes " +
			"are not updated.",
		Remedy:  "Correct the object until its condition is Accepted or Success, or delete it, then update.",
		Command: "oc describe kubeletconfigs,containerruntimeconfigs",
	})
)

// maxCondition bounds the message of a condition, in bytes.
const maxCondition = 512

// GeneratedConfigs is the check GeneratedConfigs.
func GeneratedConfigs() check.Check {
	group := machineconfigurationv1.GroupName
	return check.Check{
		Name: nameGeneratedConfigs, Kind: finding.SourceHealth, NotHosted: NotHosted,
		Reads: append(Reads(), check.List(group, "kubeletconfigs"), check.List(group, "containerruntimeconfigs")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			if skipped, err := withoutPools(ctx, s); skipped != nil || err != nil {
				return skipped, err
			}
			refused, count, unread := readRefused(ctx, s)
			if len(refused) == 0 {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected, "the machine-config-operator rejects "+
					"none of %s",
					words.Count(count, "configuration of kubelets and container runtimes"))}, unread
			}
			of := &configuration{}
			if without, err := of.readConfigs(ctx, s); without != nil || err != nil {
				return without, errors.Join(unread, err)
			}
			var found []finding.Finding
			for i := range refused {
				found = append(found, of.judgeRefused(&refused[i]))
			}
			return finding.Bounded(finding.Drafts(found...)), unread
		},
	}
}

// readRefused are the objects that the operator does not accept, of so many. With an error, one of the kinds could not be
// listed.
func readRefused(ctx context.Context, s check.Subject) (refused []reported.Object, count int, unread error) {
	for _, resource := range []string{"kubeletconfigs", "containerruntimeconfigs"} {
		all, err := s.Cluster.Reports(ctx, machineconfigurationv1.GroupVersion.WithResource(resource))
		if err != nil && !apierrors.IsNotFound(err) {
			unread = errors.Join(unread, fmt.Errorf("could not list the %s: %w", resource, err))
		}
		count += len(all)
		for i := range all {
			if _, not := refusal(&all[i]); not {
				refused = append(refused, all[i])
			}
		}
	}
	return refused, count, unread
}

// refusal is the condition by which the operator does not accept an object: Accepted in 5.0 and later; before, the type of
// the last condition is Failure, whose status may be False (pkg/controller/kubelet-config/helpers.go, wrapErrorWithCondition).
func refusal(report *reported.Object) (reported.Condition, bool) {
	if accepted, ok := report.Condition("Accepted"); ok {
		return accepted, accepted.Status == metav1.ConditionFalse
	}
	if len(report.Conditions) == 0 {
		return reported.Condition{}, false
	}
	last := report.Conditions[len(report.Conditions)-1]
	return last, last.Type == "Failure"
}

// judgeRefused fails for an object from which a MachineConfig was generated, and whose status is about its present spec.
func (c *configuration) judgeRefused(report *reported.Object) finding.Finding {
	object := finding.Object{APIVersion: machineconfigurationv1.GroupVersion.String(), Kind: report.Kind, Name: report.Name}
	condition, _ := refusal(report)
	what := fmt.Sprintf("the machine-config-operator does not accept %s%s", check.Describe(object),
		clause(words.Line(condition.Message, maxCondition)))
	var generated []string
	for _, name := range c.sorted {
		if slices.ContainsFunc(c.configs[name].OwnerReferences,
			func(owner metav1.OwnerReference) bool { return owner.UID == report.UID && owner.Kind == report.Kind }) {
			generated = append(generated, name)
		}
	}
	var f finding.Finding
	switch {
	case outdated(report):
		f = finding.Warn(reasonConfigNotAccepted, "%s; its status has an earlier generation than its spec", what)
	case len(generated) == 0 && c.whole:
		f = finding.Warn(reasonConfigNotAccepted, "%s; no MachineConfig was generated from it", what)
	case len(generated) == 0:
		f = finding.Unknown(reasonConfigNotAccepted, "%s; whether a MachineConfig was generated from it is unknown", what)
	default:
		f = finding.Fail(reasonConfigNotAccepted, "%s, so the target does not generate %s again, "+
			"and refuses to render pools with it", what,
			words.List(generated, maxConfigsNamed))
	}
	resource := strings.ToLower(report.Kind)
	return f.Named(finding.NameOf(nameGeneratedConfigs, report.Kind+"."+report.Name)).About(object).
		Remedy("Correct the object until the operator accepts it, or delete it, then update.").
		Do(finding.Read("oc describe %s %s", resource, report.Name), finding.Change("oc edit %s %s", resource, report.Name))
}

// clause continues a sentence with what is known; it is empty for nothing.
func clause(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// outdated is true for a status of an earlier generation than the spec. Releases before 4.4 state none.
func outdated(report *reported.Object) bool {
	observed, ok := report.Status["observedGeneration"].(int64)
	return ok && observed < report.Generation
}

var (
	reasonNetworkScripts = finding.NewReason("NetworkScriptsNotRead", finding.Explanation{
		Meaning: "MachineConfigs of a pool that gets RHEL 10 configure the network in the format ifcfg, which RHEL 10 does not read: " +
			"its nodes start without these connections.",
		Cause: "RHEL CoreOS 9 reads /etc/sysconfig/network-scripts/ifcfg-* (openshift-docs machine_configuration/index). RHEL 10 has no " +
			"support for this format, as the RHEL 9.0 release notes announce (BZ#1894877): NetworkManager is built without ifcfg-rh " +
			"(centos-stream/rpms/NetworkManager!114). No operator reports the files.",
		Remedy: "Write the connections as keyfiles of mode 0600 in /etc/NetworkManager/system-connections/, and remove the ifcfg files " +
			"from the MachineConfig, before the pool gets RHEL 10.",
		Command: "oc edit machineconfig NAME",
	})
	reasonNetworkTeam = finding.NewReason("NetworkTeamNotAvailable", finding.Explanation{
		Meaning: "MachineConfigs of a pool that gets RHEL 10 set the kernel argument team, which configures a network team. RHEL 10 " +
			"does not support teams, so its nodes start without this connection.",
		Cause: "The documentation of OpenShift describes the argument since 4.6 (openshift-docs#39648), and RHEL 9 deprecates teams " +
			"(BZ#1935544). RHEL 10 has neither teamd nor the plugin of NetworkManager (coreos/fedora-coreos-tracker#1727). No operator " +
			"reports the argument.",
		Remedy:  "Configure a bond instead of the team, and remove the kernel argument from the MachineConfig, before the pool gets RHEL 10.",
		Command: "oc edit machineconfig NAME",
	})

	nameNetworkScripts = reasonNetworkScripts.Names("MachineConfigNetworkScripts")
	nameNetworkTeam    = reasonNetworkTeam.Names("MachineConfigNetworkTeam")
)

// firstWithRHEL10 is the first release that has RHEL CoreOS 10 beside 9, as a Technology Preview (openshift-docs
// machine_configuration/mco-image-streams).
func firstWithRHEL10() semver.Version { return release(4, 21) }

// judgeNetworks is about pools that get RHEL 10 and whose network configuration it does not have. It is not about those that
// have RHEL 10 already, nor about those with an image of their own: the update changes the operating system of neither. The
// stream of the cluster is read only where a pool has such a configuration and no stream of its own.
func (c *configuration) judgeNetworks(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	target := withoutPre(s.Update.To)
	if target.LT(firstWithRHEL10()) {
		return nil, nil
	}
	var found []finding.Finding
	for i := range c.pools {
		pool := c.inPool(&c.pools[i], target)
		if !slices.ContainsFunc(pool.configs, configuresOldNetwork) || isRHEL10(pool.Status.OSImageStream.Name) || len(pool.overriding()) > 0 {
			continue
		}
		stream, err := c.streamOf(ctx, s, pool.MachineConfigPool)
		if err != nil {
			return found, err
		}
		if !isRHEL10(stream) {
			continue
		}
		network := oldNetwork{pool: pool, stream: stream}
		for _, rule := range []func() (finding.Finding, string){network.scripts, network.team} {
			if f, name := rule(); name != "" {
				found = append(found, f.Named(name+"-"+pool.Name))
			}
		}
	}
	return found, nil
}

// configuresOldNetwork reports whether a MachineConfig configures the network, or may do it, by what RHEL 10 does not have.
func configuresOldNetwork(config *snapshot.MachineConfig) bool {
	return config.NetworkTeam || len(config.NetworkScripts) > 0 || config.ScriptsUnread
}

type oldNetwork struct {
	pool   *configuredPool
	stream string
}

// scripts is about files in the format ifcfg, with the name of the finding; the name is empty where there are none.
func (n oldNetwork) scripts() (finding.Finding, string) {
	clauses, configs := n.pool.refused(func(config *snapshot.MachineConfig) []string { return config.NetworkScripts })
	if len(clauses) > 0 {
		return n.pool.of(finding.Warn(reasonNetworkScripts,
			"MachineConfigPool %q has the stream %q, whose NetworkManager does not read files in the format ifcfg; its nodes do not have "+
				"these connections after the update to %s: %s",
			n.pool.Name, n.stream, n.pool.target, words.Clauses(clauses, maxConfigsNamed)), configs), nameNetworkScripts
	}
	unread := slices.IndexFunc(n.pool.configs, func(config *snapshot.MachineConfig) bool { return config.ScriptsUnread })
	if unread < 0 {
		return finding.Finding{}, ""
	}
	config := n.pool.configs[unread].Name
	return n.pool.of(finding.Unknown(reasonNetworkScripts,
		"whether MachineConfig %s configures the network in the format ifcfg, which the stream %q of MachineConfigPool %q does not "+
			"read, is unknown: %v",
		config, n.stream, n.pool.Name, nodeconfig.ErrScriptsUnread), []string{config}), nameNetworkScripts
}

func (n oldNetwork) team() (finding.Finding, string) {
	at := slices.IndexFunc(n.pool.configs, func(config *snapshot.MachineConfig) bool { return config.NetworkTeam })
	if at < 0 {
		return finding.Finding{}, ""
	}
	config := n.pool.configs[at].Name
	return n.pool.of(finding.Warn(reasonNetworkTeam, "the kernel argument team of MachineConfig %s configures a network team, which "+
		"the stream %q of MachineConfigPool %q does not support; its nodes do not have this connection after the update to %s",
		config, n.stream, n.pool.Name, n.pool.target), []string{config}), nameNetworkTeam
}
