package command

import (
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
)

// hostedCommands are the commands that judge a hosted cluster, with what each needs in the management cluster
// besides the reads of the HostedCluster.
func hostedCommands() map[string]access.Needs {
	return map[string]access.Needs{
		"run": estate.ManagementNeeds(), "status": hostedguard.ReadNeeds(),
		"targets": {}, "plan": {}, "drain-plan": {},
	}
}

// hostedNames are the commands that judge a hosted cluster, in the order of their roles.
func hostedNames() string {
	var names []string
	for _, name := range commandNames() {
		if _, judges := hostedCommands()[name]; judges {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// ofHosted are the roles of the commands in the management cluster of a hosted cluster, each followed by that
// of its guest.
func ofHosted(of string, guests []commandRole) ([]commandRole, error) {
	namespace, name, ok := strings.Cut(of, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("--hosted-cluster wants NAMESPACE/NAME, not %q", of)
	}
	var both []commandRole
	for _, guest := range guests {
		needs, judges := hostedCommands()[guest.command]
		if !judges {
			return nil, fmt.Errorf("--hosted-cluster applies to the roles of %s, and not of %s", hostedNames(), guest.command)
		}
		needs = hosted.Reads(namespace, name).And(needs)
		needs.Optional = append(needs.Optional, check.Get("", "secrets", namespace, name+"-admin-kubeconfig"))
		remarks := []string{
			"In the management cluster of HostedCluster " + of + ".",
			"The Secret is the one that status.kubeconfig of the HostedCluster names, by default NAME-admin-kubeconfig. It has the credentials of an administrator of the guest: with --guest-kubeconfig it is not read.",
		}
		if guest.command == "run" {
			needs.Optional = append(needs.Optional, check.Get("", "secrets", namespace, name+"-pull-secret"))
			remarks = append(remarks, "The other one is that of spec.pullSecret, by default NAME-pull-secret.")
		}
		guest.remarks = append(guest.remarks, "In the guest of HostedCluster "+of+".")
		both = append(both, commandRole{command: guest.command, needs: needs, suffix: "-" + namespace + "-" + name, remarks: remarks}, guest)
	}
	return both, nil
}
