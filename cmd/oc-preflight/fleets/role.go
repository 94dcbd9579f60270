package fleets

import (
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/runner/fleet/roster"
)

// membersRole is what the command for many clusters needs in the cluster whose objects name them; each of them needs
// the roles of the verb for one cluster and, for the judgement after an update, those of "history".
func membersRole(verb string) role.Role {
	return role.Role{Flags: []string{"hive", "hosted"}, Members: []role.Members{
		{Flag: "hive", Cluster: "the cluster with the ClusterDeployments", Part: role.Part{Needs: roster.HiveNeeds(), Remarks: []string{
			"In the cluster with the ClusterDeployments, for --hive. The Secrets are those that spec.clusterMetadata.adminKubeconfigSecretRef of each names.",
			"A user who may get these Secrets has the credentials of an administrator of each cluster, so the clusters need no roles. Instead of the ClusterRole, the permission may be given by a Role in the namespace of each ClusterDeployment: the others are Unreachable.",
		}}},
		{Flag: "hosted", Cluster: "the management cluster", Part: role.Part{Needs: roster.HostedNeeds(), Remarks: []string{
			"In the management cluster, for --hosted.",
			"Each HostedCluster needs roles of its own, in the management cluster and in the guest, which \"auth " + verb + " --hosted-cluster NAMESPACE/NAME\" prints.",
		}}},
	}}
}
