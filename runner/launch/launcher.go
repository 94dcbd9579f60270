// Package launch answers: how are the objects of a plan created in this cluster?
//
// [New] returns a [Launcher]. Validate sends every object of a plan as a dry run before
// the first is created, Prepare creates the temporary copies of the supporting objects,
// and Start creates one Job, which End deletes again. [Explain] is the finding for a check
// that could not be started.
//
// Existing objects are adopted if they equal the plan, by their content and not by their
// labels. Any other object of a planned name is a finding of the checks that need it,
// and is not deleted by that runner.
package launch

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// Launcher creates the objects of runs in one cluster. Its methods may be called concurrently.
type Launcher struct {
	objects *inventory.Objects
	// starting bounds the Jobs that are created concurrently: thousands of
	// concurrent requests would use memory without being faster.
	starting chan struct{}
}

// New returns a Launcher of objects.
func New(objects *inventory.Objects) *Launcher {
	return &Launcher{objects: objects, starting: make(chan struct{}, inventory.MaxParallel)}
}

// UID returns the UID of the Job of a check that this Launcher has created, or
// adopted after comparing it with the plan; empty before. Another Job of that name is
// not the run's.
func (l *Launcher) UID(check jobplan.Check) types.UID {
	k, err := inventory.KindOf(check.Job)
	if err != nil {
		return ""
	}
	uid, _ := l.objects.Created.UID(check.Job.Labels[label.Run], k.Object(check.Job))
	return uid
}
