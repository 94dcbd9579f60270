// Package health answers: is the cluster in a state in which an update can
// complete?
//
// [Checks] are what the managed-upgrade-operator (MUO) checks before it starts an
// update, for any cluster: operators, nodes, what prevents nodes from being
// drained, reserved capacity, external dependencies (package dependency), and the window of an
// UpgradeConfig; whether the update can make its own requests (package deadlock); whether a
// migration of the cluster is in progress (package migration); what any object of the platform reports
// (package platform), and what users configured that changes how the platform is updated (packages
// intrusion and mirrors). Critical alerts, which MUO checks too, are among the risks (package risk).
//
// The findings may be accepted by name. They concern all updates: patch updates
// reboot nodes too. Differences from MUO:
//
//   - An operator without the conditions Available and Degraded is Unknown. MUO
//     treats it as healthy.
//   - All nodes are checked, not only workers: a control plane that cannot be
//     scheduled to prevents its own guards from moving.
//   - A PodDisruptionBudget is judged by its status, unless that is out of date. MUO
//     judges spec.maxUnavailable of the first violation.
//   - A dependency that redirects is reachable. MUO requires 200.
package health

import (
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/health/certificate"
	"github.com/openshift/update-preflight/collector/health/deadlock"
	"github.com/openshift/update-preflight/collector/health/dependency"
	"github.com/openshift/update-preflight/collector/health/draining"
	"github.com/openshift/update-preflight/collector/health/intrusion"
	"github.com/openshift/update-preflight/collector/health/migration"
	"github.com/openshift/update-preflight/collector/health/mirrors"
	"github.com/openshift/update-preflight/collector/health/platform"
	"github.com/openshift/update-preflight/collector/health/subscription"
)

// Checks are all checks of the cluster's health. A new one is added here. Checks of
// many updates may share the dependencies, so that each is probed once for all.
func Checks(dependencies *dependency.Set) []check.Check {
	return []check.Check{
		ClusterOperators(),
		Nodes(),
		migration.Check(),
		draining.Check(),
		Capacity(),
		dependency.Check(dependencies),
		UpgradeWindow(),
		deadlock.Webhooks(),
		deadlock.Policies(),
		certificate.Authorities(),
		certificate.Secrets(),
		certificate.PausedPools(),
		subscription.Check(),
		EtcdQuorum(),
		platform.Check(),
		mirrors.Check(),
		intrusion.PlatformPods(),
		RollingUpdates(),
	}
}

const (
	// maxNamed bounds the objects in one message.
	maxNamed = 5
	// maxQuoted bounds a text of the cluster in a message, in bytes.
	maxQuoted = 1024
)
