// Package serving answers: does the API server of this cluster serve every API, and can it
// delete what is being deleted?
//
// Garbage collection, the deletion of namespaces and the migration of stored objects stop at
// an API that is not served. Few of these conditions stop the cluster-version operator itself,
// so most findings warn.
package serving

import (
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
)

// Checks are all checks of what is served. A new one is added here.
func Checks() []check.Check {
	return []check.Check{APIServices(), Namespaces(), Conversions()}
}

var reasonAsExpected = finding.NewReason("AsExpected", finding.Explanation{
	Meaning: "Reported when the API server serves and deletes what it should.",
	Cause:   "What the check looks for was not found.",
})
