// Package launch answers: how are the Jobs of a release created in this cluster, and
// deleted again?
//
// [NewDraft] is pure: it reads the checks of a release, and rejects those that
// violate the policy for manifests. [Draft.Bind] returns the [Plan] of one run. A
// [Launcher] creates its objects: Validate sends every object as a dry run before the
// first is created, Prepare creates the temporary copies of the supporting objects,
// Start creates one Job, and Cleanup deletes all objects of a run, given only its ID.
//
// A check never runs as an existing ServiceAccount: CopyAccounts replaces it by a
// temporary copy that only reads. Guard denies the writes of the run's pods besides, and
// GuardChanged reports whether it stayed in force.
//
// The names of all objects depend on the release and the ID of the run only. A
// runner that continues the run of another therefore creates the same objects:
// existing ones are adopted if they equal the plan, by their content and not by their
// labels. Any other object of a planned name is a finding of the checks that need it,
// and is not deleted by that runner. A version of this tool that plans other objects
// does not adopt those of an earlier one.
//
// An object is of a run if it has the run's label and a name with the run's suffix:
// the first can be added to any object, the second cannot. Objects with the label
// alone are never deleted. An object that was created with a name of the run is
// deleted by a later Cleanup, also if another client created it.
//
// The pods of checks have the default priority of the cluster, so they preempt only
// pods of lower priority. Their requests for CPU and memory are not limited: a check
// that requests more than any node has free waits, and an autoscaler may add nodes
// for it.
package launch

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/runner/label"
)

// Launcher creates the objects of runs in one cluster. Its methods may be called
// concurrently.
type Launcher struct {
	objects *Objects
	// starting bounds the Jobs that are created concurrently: thousands of
	// concurrent requests would use memory without being faster.
	starting chan struct{}
}

// New returns a Launcher of objects.
func New(objects *Objects) *Launcher {
	return &Launcher{objects: objects, starting: make(chan struct{}, MaxParallel)}
}

// UID returns the UID of the Job of a check that this Launcher has created, or
// adopted after comparing it with the plan; empty before. Another Job of that name is
// not the run's.
func (l *Launcher) UID(check Check) types.UID {
	k, err := kindOf(check.Job)
	if err != nil {
		return ""
	}
	uid, _ := l.objects.Created.UID(check.Job.Labels[label.Run], k.object(check.Job))
	return uid
}
