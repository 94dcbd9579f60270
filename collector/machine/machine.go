// Package machine answers: what keeps the machines of this cluster from being updated and
// from coming back?
//
// The checks are about what the update does to nodes by way of their machines and
// kubelets: certificates that are not approved, health checks that replace a machine while
// it reboots, and a configuration or boot images that the target does not support. What prevents nodes
// from being drained is in package health.
package machine

import (
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
)

// Checks are all checks of the machines. A new one is added here.
func Checks() []check.Check {
	return []check.Check{CertificateRequests(), HealthChecks(), CgroupMode(), BootImages()}
}

var reasonAsExpected = finding.NewReason("AsExpected", finding.Explanation{
	Meaning: "Reported when nothing keeps the machines from being updated.",
	Cause:   "What the check looks for was not found.",
})
