package hold

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/record"
)

// Timeout bounds the last writes about a run.
const Timeout = 30 * time.Second

// EndingOf is what is recorded of a report.
func EndingOf(decided report.Report) (record.Ending, error) {
	text, err := json.Marshal(decided)
	if err != nil {
		return record.Ending{}, fmt.Errorf("the report cannot be recorded: %w", err)
	}
	return record.Ending{Phase: record.Phase(decided.Run.Phase), Verdict: decided.Verdict, Report: text}, nil
}

// RemovalOf is what a report has of a cleanup.
func RemovalOf(done place.Removal) *report.Removal {
	return &report.Removal{Deleted: append([]report.Object{}, done.Deleted...), Left: append([]report.Object{}, done.Left...), Foreign: done.Foreign}
}

// RemovalError is what could not be deleted of a run.
type RemovalError struct {
	// Run is its ID, Left counts its objects that are still in the cluster.
	Run  string
	Left int
	Err  error
}

// Error implements error.
func (e *RemovalError) Error() string {
	return fmt.Sprintf("%s of run %s left in the cluster: %v", words.Count(e.Left, "object"), e.Run, e.Err)
}

// Unwrap returns the cause.
func (e *RemovalError) Unwrap() error { return e.Err }
