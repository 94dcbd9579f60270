package command

import (
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/cmd/oc-preflight/logs"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
)

// hostedCommands are the commands that judge a hosted cluster, with what each needs in the management cluster
// besides the reads of the HostedCluster, given the namespace of its control plane.
func hostedCommands(controlPlane string) map[string]func() access.Needs {
	removal := func() access.Needs { return place.Confine(cleanup.Needs(), controlPlane) }
	none := func() access.Needs { return access.Needs{} }
	return map[string]func() access.Needs{
		"run": func() access.Needs {
			return estate.ManagementNeeds().And(optional(place.ControlPlaneNeeds(controlPlane)))
		},
		"status": hostedguard.ReadNeeds,
		"logs":   func() access.Needs { return place.Confine(logs.Needs(), controlPlane) },
		"cancel": removal, "cleanup": removal,
		"targets": none, "plan": none, "drain-plan": none,
	}
}

// optional are needs that only some releases have: without them, their checks are inconclusive.
func optional(needs access.Needs) access.Needs {
	return access.Needs{Optional: append(needs.Required, needs.Optional...), Given: needs.Given}
}

// hostedNames are the commands that judge a hosted cluster, in the order of their roles.
func hostedNames() string {
	var names []string
	for _, name := range commandNames() {
		if _, judges := hostedCommands("")[name]; judges {
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
		inControlPlane, judges := hostedCommands(hypershift.ControlPlaneNamespace(namespace, name))[guest.command]
		if !judges {
			return nil, fmt.Errorf("--hosted-cluster applies to the roles of %s, and not of %s", hostedNames(), guest.command)
		}
		needs := hosted.Reads(namespace, name).And(inControlPlane())
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
		both = append(both, commandRole{command: guest.command, needs: func() access.Needs { return needs }, suffix: "-" + namespace + "-" + name, remarks: remarks}, guest)
	}
	return both, nil
}
