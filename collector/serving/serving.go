// Package serving answers: does the API server of this cluster serve every API, and can it
// delete what is being deleted?
//
// Garbage collection, the deletion of namespaces and the migration of stored objects stop at
// an API that is not served. Few of these conditions stop the cluster-version operator itself,
// so most findings warn.
package serving

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
)

// Checks are all checks of what is served. A new one is added here.
func Checks() []check.Check {
	return []check.Check{APIServices(), Namespaces(), Conversions()}
}

// ReasonAsExpected is reported when the API server serves and deletes what it should.
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
