package diagnosis

import (
	"time"

	"github.com/openshift/update-preflight/collector/finding"
)

// State is the progress of a check.
type State string

// The states of a check.
const (
	// Queued means that the check waits until the parallelism allows its Job.
	Queued State = "queued"
	// Waiting means that the Job exists and the container of the check does not run.
	Waiting State = "waiting"
	// Running means that the container runs, or has just terminated.
	Running State = "running"
	// Done means that the findings of the check are complete.
	Done State = "done"
)

// Classification of an Observation.
type Classification struct {
	// State is Waiting, Running or Done.
	State State
	// Detail is a clause about what the check waits for.
	Detail string
	// Reason is the reason of the finding if the state lasts until the deadline; empty in an ordinary state.
	Reason finding.Reason
	// Findings are set when State is Done.
	Findings []finding.Finding
	ReadLog  string
	// ListPods is true when the pods have to be listed first, because the watch may lag behind.
	ListPods bool
	// Recheck is after how long to classify again without a change; 0 is never.
	Recheck time.Duration
	// Restart is true when the outcome of the Job is lost: the Job has to be
	// deleted if it exists, and created once more.
	Restart bool
	// Idle is true when no container of the Job has ever run and it waits for
	// something without a time limit, so that it may yield to queued checks.
	Idle bool

	// cause has the Reason.
	cause cause
	// LogTimeout is how long to retry the reading of the log.
	LogTimeout time.Duration
}

func (why cause) waiting() Classification {
	return Classification{State: Waiting, Detail: why.detail, Reason: why.reason, cause: why}
}

const (
	// RequiredLogTimeout is how long the reading of a log is retried that decides
	// the check: a kubelet that restarts is back by then. While the API server is
	// unreachable, it is retried until the deadline of the run.
	RequiredLogTimeout = 30 * time.Second
	// OptionalLogTimeout bounds the reading of a log that does not decide the check.
	OptionalLogTimeout = 3 * time.Second
)

const (
	// TransientTimeout is how long a cause is tolerated that may resolve without
	// intervention: a registry under load, a quota that another pod is about to
	// free.
	TransientTimeout = 90 * time.Second
	// watchLag is how far the watch on pods may lag behind that on Jobs.
	watchLag = 5 * time.Second
	// untilDeadline is the timeout of a cause that is tolerated until the deadline of the run.
	untilDeadline = time.Duration(-1)

	reportDefect = "Report this defect of the check to its owners."
	runAgain     = "Run the preflight again."
	fixMessage   = "Fix what the message names, then run the preflight again."
)

type cause struct {
	reason finding.Reason
	// detail is a clause, remedy an imperative sentence, actions its commands.
	detail, remedy string
	actions        []finding.Action
	// timeout is how long the cause is tolerated; 0 is not at all.
	timeout time.Duration
}
