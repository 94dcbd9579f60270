package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/runner/fleet/roster"
)

// fleetName is the command for many clusters.
const fleetName = "fleet"

// ofFleet are the commands that fleet has for many clusters, too.
func ofFleet() []string { return []string{"targets", "run"} }

// ofMembers are the roles in the cluster whose objects name the clusters of a fleet, before those in each of
// these.
func (f authFlags) ofMembers(members []commandRole) ([]commandRole, error) {
	var all []commandRole
	for _, member := range members {
		if !slices.Contains(ofFleet(), member.command) {
			return nil, fmt.Errorf("--hive and --hosted apply to the roles of %s, and not of %s", strings.Join(ofFleet(), ", "), member.command)
		}
		name := fleetName + "-" + member.command
		if f.hive {
			all = append(all, commandRole{command: name, needs: roster.HiveNeeds, suffix: "-hive", remarks: []string{
				"In the cluster with the ClusterDeployments, for --hive. The Secrets are those that spec.clusterMetadata.adminKubeconfigSecretRef of each names.",
				"A user who may get these Secrets has the credentials of an administrator of each cluster, so the clusters need no roles. Instead of the ClusterRole, the permission may be given by a Role in the namespace of each ClusterDeployment: the others are Unreachable.",
			}})
		}
		if f.hosted {
			all = append(all, commandRole{command: name, needs: roster.HostedNeeds, suffix: "-hosted", remarks: []string{
				"In the management cluster, for --hosted.",
				"Each HostedCluster needs roles of its own, in the management cluster and in the guest, which \"auth " + member.command + " --hosted-cluster NAMESPACE/NAME\" prints.",
			}})
		}
	}
	return all, nil
}

// checkMembers is an error for the roles of no command.
func (f authFlags) checkMembers(commands []string) error {
	switch {
	case !f.hive && !f.hosted:
		return nil
	case len(commands) == 0:
		return fmt.Errorf("--hive and --hosted require a command: %s", strings.Join(ofFleet(), " or "))
	}
	return nil
}
