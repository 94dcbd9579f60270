package conformance

import (
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// Needs are the permissions to test any manifest, apart from those in its roles.
func Needs() access.Needs { return baseNeeds().And(jobplan.AnyNeeds()) }

// baseNeeds do not depend on the manifest. Namespaces are created only if the cluster lacks them.
func baseNeeds() access.Needs {
	own := access.Needs{
		Required: append(
			rights.GrantsNeeds(),
			access.Request{Verb: "get", Resource: "namespaces"},
			access.Request{Verb: "patch", Resource: "pods"},
		),
		Optional: append(
			access.Verbs(access.Request{Resource: "namespaces"}, "create", "delete"),
			access.Request{Verb: "get", Resource: "serviceaccounts", Name: "default"},
		),
	}
	return own.And(jobs.Needs()).And(cleanup.ListNeeds())
}
