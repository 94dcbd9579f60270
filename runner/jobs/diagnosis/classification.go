package diagnosis

import (
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/alteration"
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

var reasonBesideAltered = finding.NewReason("BesideAlteredPod", finding.Explanation{
	Meaning: "Reported for a check that did not fail in a run in which a mutating webhook or policy changed the pod of another check. " +
		"The changed pod may have influenced it, for example by what it did to their node.",
	Cause: "The admission policy of the run, which rejects such pods before they start, is not in force, or does not see the change.",
	Remedy: "Exempt objects with the label preflight.openshift.io/run from the webhook or policy, check the node on which the changed " +
		"pod ran, then run the preflight again.",
})

// Withdraw returns the findings of a run without what the Jobs of a cluster report in favor of the update, if a pod of one of
// them was altered by admission and may have run: each such finding is Unknown, and names that pod.
func Withdraw(findings []finding.Finding) []finding.Finding {
	altered := map[string]finding.Finding{}
	for _, f := range findings {
		if f.Job != nil && f.Job.Attempts > 0 && f.Reason == alteration.ReasonAlteredByAdmission.String() {
			altered[f.Job.Cluster] = f
		}
	}
	if len(altered) == 0 {
		return findings
	}
	kept := make([]finding.Finding, 0, len(findings))
	for _, f := range findings {
		if f.Job != nil && f.Outcome != preflight.Fail && f.Outcome != preflight.Unknown {
			if by, found := altered[f.Job.Cluster]; found {
				f = besideAltered(f, by)
			}
		}
		kept = append(kept, f)
	}
	return kept
}

func besideAltered(f, by finding.Finding) finding.Finding {
	where := ""
	if by.Job.Node != "" {
		where = fmt.Sprintf("; what that pod did to node %s stays after the run", by.Job.Node)
	}
	withdrawn := finding.Unknown(reasonBesideAltered, "the result of the check does not count (%s: %s), because admission changed a pod of %s%s", f.Outcome, f.Message, by.Name, where).
		Named(f.Name).From(finding.SourceJob).About(append(f.Objects, by.Objects...)...).Do(by.Actions...).Do(finding.Retry(""))
	withdrawn.Job = f.Job
	return withdrawn
}
