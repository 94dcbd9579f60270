package command

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/cmd/oc-preflight/hubs"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/fleet/hub"
)

// The commands that read a hub, by the names of their roles.
const (
	fleetHub     = "fleet-hub"
	fleetGate    = "fleet-gate"
	fleetRequest = "fleet-request"
)

// hubCommands are the commands of a hub.
func hubCommands() []string { return []string{fleetHub, fleetGate, fleetRequest} }

// agentActs is the consequence of the permission to create ManifestWorkReplicaSets.
const agentActs = "A user who may create a ManifestWorkReplicaSet has the work agent of each cluster of its Placement create any object there, as which it is an administrator by default. It is not needed to print the request."

// hubRoles are the roles on the hub for a Placement; for the zero value, for any. keys is the ConfigMap of the
// public keys; the zero value is none.
func hubRoles(placement, keys types.NamespacedName) []commandRole {
	reads := func() access.Needs { return hubReads(placement, keys) }
	const alone = "On the hub. No Secret is read, and no cluster of the hub is reached."
	return []commandRole{
		{command: fleetHub, needs: reads, remarks: []string{alone}},
		{command: fleetGate, needs: reads, remarks: []string{alone}},
		{command: fleetRequest, needs: func() access.Needs { return hub.RequestNeeds(placement.Namespace) }, remarks: []string{"On the hub, to apply what the command prints, and to delete it.", agentActs}},
	}
}

func hubReads(placement, keys types.NamespacedName) access.Needs {
	reads := hub.Query{Placement: placement}.Needs()
	if placement.Name == "" {
		reads = reads.And(hub.PlacementNeeds(placement))
	}
	if keys.Name != "" {
		reads = reads.And(hub.KeyNeeds(keys))
	}
	return reads
}

// ofHub are the chosen roles for the Placement and the keys of the flags.
func (f authFlags) ofHub(chosen []commandRole) ([]commandRole, error) {
	if f.placement == "" && f.keys == "" {
		return chosen, nil
	}
	var placement, keys types.NamespacedName
	var err error
	if f.placement != "" {
		if placement, err = hubs.PlacementOf(f.placement); err != nil {
			return nil, err
		}
	}
	if f.keys != "" {
		if keys, err = hubs.KeysOf(f.keys); err != nil {
			return nil, err
		}
	}
	made := hubRoles(placement, keys)
	for i, each := range chosen {
		at := slices.Index(hubCommands(), each.command)
		if at < 0 {
			return nil, errors.New("--placement and --keys apply to the roles of " + strings.Join(hubCommands(), ", ") + ", and not of " + each.command)
		}
		chosen[i] = made[at]
	}
	return chosen, nil
}
