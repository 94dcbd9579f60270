package runner

import (
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/runner/definition"
	"github.com/openshift/update-preflight/runner/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

// contents is what a release contains: released, or unread where it may not or
// cannot be read.
type contents interface {
	// readable is false for unread.
	readable() bool
	// version is that of the release; empty for unread.
	version() string
	// images maps the name of a component to its pull spec.
	images() map[string]string
	// draft returns the checks of the release, for a cluster at the version from,
	// and the contents without the manifests of the Jobs: there can be thousands,
	// and the draft has them.
	draft(from string) (jobplan.Draft, contents)
	// foresee are the built-in checks that compare the release with the cluster, and
	// those of their permissions that depend on the release.
	foresee(client dynamic.Interface) ([]check.Check, access.Needs)
}

// unread has no contents.
type unread struct{}

func (unread) readable() bool { return false }

func (unread) version() string { return "" }

func (unread) images() map[string]string { return nil }

func (unread) draft(string) (jobplan.Draft, contents) { return jobplan.Draft{}, unread{} }

func (unread) foresee(dynamic.Interface) ([]check.Check, access.Needs) {
	return nil, access.Needs{}
}

// released is the contents of a release that was read.
type released struct{ payload *payload.Release }

func (r released) readable() bool { return true }

func (r released) version() string { return r.payload.Version }

func (r released) images() map[string]string { return r.payload.Images }

func (r released) foresee(client dynamic.Interface) ([]check.Check, access.Needs) {
	checks := append(r.definitionChecks(client), gate.AdminAckAhead(r.payload.AdminGates))
	return checks, definition.ListNeeds(r.payload.Definitions)
}

func (r released) draft(from string) (jobplan.Draft, contents) {
	withoutJobs := *r.payload
	withoutJobs.Jobs, withoutJobs.Supporting = nil, nil
	return jobplan.New(from, r.payload), released{payload: &withoutJobs}
}

// definitionChecks is the check of the release's CustomResourceDefinitions; none for a
// release without any.
func (r released) definitionChecks(client dynamic.Interface) []check.Check {
	if len(r.payload.Definitions) == 0 {
		return nil
	}
	return []check.Check{definition.Check(client, r.payload.Definitions)}
}
