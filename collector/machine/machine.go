// Package machine answers: what keeps the machines of this cluster from being updated and
// from coming back?
//
// The checks are about what the update does to nodes by way of their machines and
// kubelets: certificates that are not approved, health checks that replace a machine while
// it reboots, a configuration or boot images that the target does not support, and MachineConfigs that
// nodes need and that are not there. What prevents nodes from being drained is in package health.
package machine

import (
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/machine/machineconfig"
)

// Checks are all checks of the machines. A new one is added here.
func Checks() []check.Check {
	return append([]check.Check{CertificateRequests(), HealthChecks(), CgroupMode(), BootImages()}, machineconfig.Checks()...)
}

var reasonAsExpected = finding.NewReason("AsExpected", finding.Explanation{
	Meaning: "Reported when nothing keeps the machines from being updated.",
	Cause:   "What the check looks for was not found.",
})
