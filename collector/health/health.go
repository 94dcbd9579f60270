// Package health answers: is the cluster in a state in which an update can go
// through? It looks at what the managed-upgrade-operator (MUO) looks at before
// it starts one, for any cluster: operators, nodes, what keeps nodes from being
// drained, capacity where it is to be reserved, external dependencies, and the
// window of an UpgradeConfig. Critical alerts, which that operator looks at too,
// are among the risks: see collector/risk.
//
// What is found may be accepted by name. It concerns all updates: patches reboot
// nodes too. What departs from MUO, and why:
//
//   - An operator that does not say how it is, is Unknown. MUO takes silence for
//     health.
//   - All nodes are looked at, and not workers alone: a control plane that
//     cannot be scheduled to keeps its own guards from moving.
//   - A PodDisruptionBudget is judged by its status, if that is current: MUO
//     reads spec.maxUnavailable of the first one that it finds wrong.
//   - An answer by redirection is an answer. MUO wants 200.
package health

import (
	"github.com/openshift/update-preflight/collector/check"
)

// Checks are all checks of the cluster's health, for one update of one cluster.
// Here belongs a new one. The cluster may be shared by the checks of many
// updates; then everything is read once for all.
func Checks(dependencies *Dependencies) []check.Check {
	return []check.Check{
		ClusterOperators(),
		Nodes(),
		Drain(),
		Capacity(),
		ExternalDependencies(dependencies),
		UpgradeWindow(),
	}
}
