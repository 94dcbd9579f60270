package hubs

import (
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/fleet/evidencesource"
	"github.com/openshift/update-preflight/runner/fleet/hub"
)

// readRole permits reading the reports of a hub.
func readRole() role.Role {
	return role.Role{Needs: readNeeds, Flags: []string{"placement", "keys", "evidence"}, Remarks: func(role.Request) []string {
		return []string{"On the hub. No Secret is read, and no cluster of the hub is reached."}
	}}
}

func readNeeds(r role.Request) access.Needs {
	needs := hub.Query{Placement: r.Placement}.Needs()
	if r.Placement.Name == "" {
		needs = needs.And(hub.PlacementNeeds(r.Placement))
	}
	if r.Keys.Name != "" {
		needs = needs.And(hub.KeyNeeds(r.Keys))
	}
	if r.Evidence.Name != "" {
		needs = needs.And(evidencesource.ConfigMapNeeds(r.Evidence))
	}
	return needs
}

// agentActs is the consequence of the permission to create ManifestWorkReplicaSets.
const agentActs = "A user who may create a ManifestWorkReplicaSet has the work agent of each cluster of its Placement create any object there, as which it is an administrator by default. It is not needed to print the request."

// requestRole permits applying the object that "fleet request" prints.
func requestRole() role.Role {
	return role.Role{
		Needs: func(r role.Request) access.Needs { return hub.RequestNeeds(r.Placement.Namespace) },
		Flags: []string{"placement"},
		Remarks: func(role.Request) []string {
			return []string{"On the hub, to apply what the command prints, and to delete it.", agentActs}
		},
	}
}
