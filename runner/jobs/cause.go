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

// unknown ends a check that is inconclusive.
func (o Observation) unknown(why cause) Classification {
	return o.done(finding.Unknown(why.reason, "%s", why.detail).Remedy("%s", why.remedy).Do(why.actions...))
}

// waiting is the classification while a cause lasts.
func (why cause) waiting() Classification {
	return Classification{State: Waiting, Detail: why.detail, Reason: why.reason, cause: why}
}

// tolerate waits until the timeout of the cause has passed.
func (o Observation) tolerate(why cause) Classification {
	classified := why.waiting()
	if why.timeout == untilDeadline {
		classified.Idle = o.neverRan()
		return classified
	}
	waited := time.Duration(0)
	if o.Reason == why.reason {
		waited = o.Waited
	}
	if waited >= why.timeout {
		return o.unknown(why)
	}
	classified.Recheck = why.timeout - waited
	return classified
}
