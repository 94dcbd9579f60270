package jobs

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
	// Waiting means that the Job exists and the container of the check does not
	// run.
	Waiting State = "waiting"
	// Running means that the container runs, or has just terminated.
	Running State = "running"
	// Done means that the findings of the check are complete.
	Done State = "done"
)

// Status is the progress of one check.
type Status struct {
	// Check is the name of the check.
	Check string
	State State
	// Detail is a clause about what the check waits for; may be empty.
	Detail string
	// Since is when State and Detail last changed.
	Since time.Time
	// Findings are set when State is Done.
	Findings []finding.Finding
}
