package machineconfig

import (
	"context"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/nodeconfig"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	reasonNetworkScripts = finding.NewReason("NetworkScriptsNotRead", finding.Explanation{
		Meaning: "Reported when MachineConfigs of a pool that gets RHEL 10 configure the network in the format ifcfg, which RHEL 10 does " +
			"not read: its nodes start without these connections.",
		Cause: "RHEL CoreOS 9 reads /etc/sysconfig/network-scripts/ifcfg-* (openshift-docs machine_configuration/index). RHEL 10 has no " +
			"support for this format, as the RHEL 9.0 release notes announce (BZ#1894877): NetworkManager is built without ifcfg-rh " +
			"(centos-stream/rpms/NetworkManager!114). No operator reports the files.",
		Remedy: "Write the connections as keyfiles of mode 0600 in /etc/NetworkManager/system-connections/, and remove the ifcfg files " +
			"from the MachineConfig, before the pool gets RHEL 10.",
		Command: "oc edit machineconfig NAME",
	})
	reasonNetworkTeam = finding.NewReason("NetworkTeamNotAvailable", finding.Explanation{
		Meaning: "Reported when MachineConfigs of a pool that gets RHEL 10 have the kernel argument team, which configures a network team: " +
			"RHEL 10 has none, so its nodes start without this connection.",
		Cause: "The documents of OpenShift have the argument since 4.6 (openshift-docs#39648), and RHEL 9 deprecates teams (BZ#1935544). " +
			"RHEL 10 has neither teamd nor the plugin of NetworkManager (coreos/fedora-coreos-tracker#1727). No operator reports the argument.",
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
		return n.pool.of(finding.Warn(reasonNetworkScripts, "MachineConfigPool %q has the stream %q, whose NetworkManager does not read files in the format ifcfg; its nodes do not have these connections after the update to %s: %s",
			n.pool.Name, n.stream, n.pool.target, words.Clauses(clauses, maxConfigsNamed)), configs), nameNetworkScripts
	}
	unread := slices.IndexFunc(n.pool.configs, func(config *snapshot.MachineConfig) bool { return config.ScriptsUnread })
	if unread < 0 {
		return finding.Finding{}, ""
	}
	config := n.pool.configs[unread].Name
	return n.pool.of(finding.Unknown(reasonNetworkScripts, "it is not known whether MachineConfig %s configures the network in the format ifcfg, which the stream %q of MachineConfigPool %q does not read: %v",
		config, n.stream, n.pool.Name, nodeconfig.ErrScriptsUnread), []string{config}), nameNetworkScripts
}

func (n oldNetwork) team() (finding.Finding, string) {
	at := slices.IndexFunc(n.pool.configs, func(config *snapshot.MachineConfig) bool { return config.NetworkTeam })
	if at < 0 {
		return finding.Finding{}, ""
	}
	config := n.pool.configs[at].Name
	return n.pool.of(finding.Warn(reasonNetworkTeam, "the kernel argument team of MachineConfig %s configures a network team, which the stream %q of MachineConfigPool %q does not have; its nodes do not have this connection after the update to %s",
		config, n.stream, n.pool.Name, n.pool.target), []string{config}), nameNetworkTeam
}
