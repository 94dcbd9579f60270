package jobplan

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/runner/launch/inventory"
)

// Check is one Job of a release that conforms to the policy.
type Check struct {
	// Name is "<Component>.<JobName>" in CamelCase, unique in its release. The names
	// of the Job's findings start with the part before the dot.
	Name string
	// Component is the name in the release, File that of the manifest.
	Component, File string
	// Framed is true when the author promised a result in the SDK's format:
	// annotation preflight.openshift.io/result: framed of the Job.
	Framed bool
	// Serial is true when the check must not run concurrently with other serial
	// checks of its component: annotation preflight.openshift.io/serial: "true" of the Job.
	Serial bool
	// Job is the author's in a Draft, and the one to create in a Plan.
	Job *batchv1.Job

	// Needs are the supporting objects that must exist first.
	Needs []inventory.Reference
	// Exceeded describes the quotas that had too little left for the pod when the check
	// was validated; empty for none.
	Exceeded string
	// Site is true for a check of the site instead of the release.
	Site bool
	// Side is the cluster of a hosted cluster in which the Job runs.
	Side check.Side
}

// Prefix is the part of the check's name before the dot, with which the names of its findings start.
func (c Check) Prefix() string {
	prefix, _, _ := strings.Cut(c.Name, ".")
	return prefix
}

// Account is the ServiceAccount that the check runs as.
func (c Check) Account() inventory.Reference {
	return inventory.Refer("ServiceAccount", c.Job.Namespace, AccountOf(c.Job.Spec.Template.Spec))
}
