package projection

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// Observation is the state on which a status depends, in addition to the object.
type Observation struct {
	// Now is the time by the clock of the cluster.
	Now time.Time
	// Target is the release that spec.target selects; zero where it selects none, and then
	// Unknown states why.
	Target  update.Release
	Unknown string
	// Outlook is set for the update that is scheduled for the managed-upgrade-operator.
	Outlook *Outlook
	// Running is the run in progress of the target; nil for none.
	Running *Run
	// Verdict is the report of the last complete run of the target that covers the object,
	// with its standing; nil for none. It is of an authentic record.
	Verdict *report.Report
	// Failure is why the last run, which ended after that of the verdict, has no record;
	// empty otherwise.
	Failure string
	// Waiting states why the preflight does not start though it is due; empty otherwise.
	Waiting string
	// Attestation is the verdict, signed; empty where it is not.
	Attestation string
	// Updated is whether the update to the target is complete, without times; nil while the
	// cluster neither runs the target nor updates to it.
	Updated *metav1.Condition
	// After is the judgement of the update to the target; nil while there is none. Statement is the statement about it;
	// empty for none.
	After     *afterupdate.Report
	Statement string
}

// Run is a run in progress.
type Run struct {
	// ID is empty while the run has no record.
	ID string
}

const (
	maxID      = 64
	maxVersion = 128
	maxName    = 256
)

// projected is an object with what its status depends on.
type projected struct {
	observed      Observation
	object        *v1alpha1.UpdatePreflight
	opens, closes time.Time
	// ended is why the verdict does not count; empty where it does, and without one.
	ended string
}

func (p projected) release() *v1alpha1.Release {
	release := v1alpha1.Release{Version: p.observed.Target.Version, Image: p.observed.Target.Image}
	if release.Version == "" && p.observed.Verdict != nil {
		release.Version = p.observed.Verdict.Target.Version
	}
	release.Version = words.Cut(release.Version, maxVersion)
	return &release
}
