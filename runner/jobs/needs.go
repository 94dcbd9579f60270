package jobs

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/openshift/update-preflight/collector/access"
)

// Needs is what it takes to follow Jobs, wherever they are, beyond starting
// them.
func Needs() access.Needs {
	var needs access.Needs
	for _, about := range []access.Request{{Group: batchv1.GroupName, Resource: "jobs"}, {Resource: "pods"}, {Resource: "events"}} {
		needs.Required = append(needs.Required, access.Verbs(about, "list", "watch")...)
	}
	needs.Required = append(needs.Required, access.Request{Verb: "get", Resource: "pods", Subresource: "log"})
	return needs
}
