// Package machine answers: what keeps the machines of this cluster from being updated and
// from coming back?
//
// The checks are about what the update does to nodes by way of their machines and
// kubelets: certificates that are not approved, health checks that replace a machine while
// it reboots, and a configuration that the target does not support. What prevents nodes
// from being drained is in package health.
package machine

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
)

// Checks are all checks of the machines. A new one is added here.
func Checks() []check.Check {
	return []check.Check{CertificateRequests(), HealthChecks(), CgroupMode()}
}

// ReasonAsExpected is reported when nothing keeps the machines from being updated.
//
// Cause: what the check looks for was not found.
//
// Remedy: none needed.
const ReasonAsExpected finding.Reason = "AsExpected"

// ReasonUnread is reported when the objects of a check that only warns could not be read.
//
// Cause: the message has the error, such as a missing permission.
//
// Remedy: bind the roles that `oc preflight auth` prints, or fix what the message names.
const ReasonUnread finding.Reason = "Unread"

// unread is the finding of a check that warns at most.
func unread(what string, err error) []finding.Finding {
	f := finding.Warn(ReasonUnread, "could not list the %s: %v", what, err)
	if apierrors.IsForbidden(err) {
		return []finding.Finding{f.Remedy("Run the preflight as a user with permission to list them.").Do(finding.Roles())}
	}
	return []finding.Finding{f.Remedy("Fix what the message names, then run the preflight again.")}
}
