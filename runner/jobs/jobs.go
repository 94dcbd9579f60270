// Package jobs answers: what did the Jobs of this run say?
//
// [Sources] gives one source for each check of a plan. It starts the Job when
// there is room, follows it by one watch for all, and ends with what the check
// said, or with the reason why nobody knows. [Classify] is the judgement
// itself, and pure.
//
// A container that ended and left a final result is the answer; nobody waits
// for the Job to say Complete. Without a promise of such a result the exit code
// is the answer, once the Job tries no more. Whatever else a pod can come to is
// Unknown, with its cause and what to do about it.
//
// A run goes on when its runner changes: Jobs that are in the cluster already
// are taken over, in whatever state they are, and nothing is started twice. A
// Job whose word is lost for good, because somebody deleted it or its pod went
// before anybody saw how it ended, is started once more; so is one that was
// given up because its pods were evicted or drained. Everything is learned by
// watching, and a watch that was cut, or is too old, begins with all that is
// there.
//
// Limitations: the check is the first container of the manifest; the others
// only have to exit 0. While more checks wait than may be at work, the Job of a
// check that is answered and does not end is deleted, and a check whose pod has
// not come to run for a while makes room and comes to its turn again.
package jobs

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/launch"
)

// State is how far a check is.
type State string

// The states of a check.
const (
	// Queued means that it waits for other Jobs to make room.
	Queued State = "queued"
	// Waiting means that its Job is there and its container is not running.
	Waiting State = "waiting"
	// Running means that its container is running, or has just ended.
	Running State = "running"
	// Done means that its findings are there.
	Done State = "done"
)

// Status tells of a check while the run goes on.
type Status struct {
	// Check is the name of the check.
	Check string
	State State
	// Detail says in a few words what it waits for; it may be empty.
	Detail string
	// Since is when State and Detail came to be.
	Since time.Time
	// Findings are there when State is Done.
	Findings []finding.Finding
}

// Observation is all that is known about the Job of one check at one moment.
type Observation struct {
	Check launch.Check
	// Job is nil until the API server has shown it.
	Job *batchv1.Job
	// Deleted is true when the Job was there and is not any more.
	Deleted bool
	// Pods are all that were ever seen, oldest first.
	Pods []Pod
	// Warnings are the events about the Job and its pods, oldest first.
	Warnings []*corev1.Event
	// Log is what was read of a container's log; nil before.
	Log *Log
	// Waited says for how long the reading has had this Cause.
	Waited time.Duration
	Cause  string
	// Listed is true when the pods were listed after the Job had ended: there are
	// no more than these.
	Listed bool
	// Restarted is true when the Job stands in for one whose word is lost.
	Restarted bool
	// Expired is true when the time of the run is up.
	Expired bool
	// Trouble is what does not work with the cluster for now, if anything.
	Trouble string
}

// Pod is a pod in its last known state.
type Pod struct {
	*corev1.Pod
	// Gone is true when it is not in the cluster any more.
	Gone bool
}

// Log is the end of a container's log.
type Log struct {
	// Pod is the name of the pod whose log it is.
	Pod  string
	Text []byte
	// Problem says why there is no text, where that is so.
	Problem string
}

// Reading is what an Observation means.
type Reading struct {
	// State is Waiting, Running or Done.
	State State
	// Detail says what it waits for, for people.
	Detail string
	// Cause is Detail for machines: a CamelCase word, the reason of the
	// finding if it lasts until the time is up. Empty when nothing is amiss.
	Cause string
	// Findings are there when State is Done.
	Findings []finding.Finding
	// ReadLog names the pod whose log has to be read before there can be an
	// answer.
	ReadLog string
	// ListPods is true when the pods have to be listed before there can be an
	// answer: the watch may be behind.
	ListPods bool
	// Recheck is when to look again though nothing happened; 0 is never.
	Recheck time.Duration
	// Restart is true when what the Job had to say is lost: it has to be deleted,
	// if it is there, and started once more.
	Restart bool
	// Idle is true when nothing of the Job has run and it waits for something
	// that may take long: it would hold up others.
	Idle bool

	// remedy goes with Cause.
	remedy string
	// logTime is how long to try to read the log.
	logTime time.Duration
}
