package jobs

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/openshift/update-preflight/collector/access"
)

// Needs are the permissions to follow Jobs in all namespaces, without those to
// create them.
func Needs() access.Needs {
	var needs access.Needs
	for _, resource := range []access.Request{{Group: batchv1.GroupName, Resource: "jobs"}, {Resource: "pods"}, {Resource: "events"}} {
		needs.Required = append(needs.Required, access.Verbs(resource, "list", "watch")...)
	}
	needs.Required = append(needs.Required, access.Request{Verb: "get", Resource: "pods", Subresource: "log"})
	return needs
}
