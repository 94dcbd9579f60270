package conformance

import (
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch"
)

// Needs is what it takes to try any manifest, but for what its roles allow.
func Needs() access.Needs { return baseNeeds().And(launch.AnyNeeds()) }

// baseNeeds are those that do not depend on the manifest. Namespaces are made
// only where the cluster does not have them.
func baseNeeds() access.Needs {
	own := access.Needs{
		Required: append(
			access.WritesNeeds(),
			access.Request{Verb: "get", Resource: "namespaces"},
			access.Request{Verb: "patch", Resource: "pods"},
		),
		Optional: append(
			access.Verbs(access.Request{Resource: "namespaces"}, "create", "delete"),
			access.Request{Verb: "get", Resource: "serviceaccounts", Name: "default"},
		),
	}
	return own.And(jobs.Needs()).And(launch.ListNeeds())
}
