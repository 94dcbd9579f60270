package jobs

import (
	"time"

	"github.com/openshift/update-preflight/collector/finding"
)

const (
	// transientTimeout is how long a cause is tolerated that may resolve without
	// intervention: a registry under load, a quota that another pod is about to
	// free.
	transientTimeout = 90 * time.Second
	// watchLag is how far the watch on pods may lag behind that on Jobs.
	watchLag = 5 * time.Second
	// untilDeadline is the timeout of a cause that is tolerated until the deadline
	// of the run.
	untilDeadline = time.Duration(-1)

	reportDefect = "Report this defect of the check to its owners."
	runAgain     = "Run the preflight again."
	fixMessage   = "Fix what the message names, then run the preflight again."
)

// cause is why a check has no result.
type cause struct {
	reason finding.Reason
	// detail is a clause, remedy an imperative sentence, actions its commands.
	detail, remedy string
	actions        []finding.Action
	// timeout is how long the cause is tolerated; 0 is not at all.
	timeout time.Duration
}
