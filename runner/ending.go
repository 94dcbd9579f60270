package runner

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/record"
)

// endingOf is what is recorded of a report.
func endingOf(decided report.Report) (record.Ending, error) {
	text, err := json.Marshal(decided)
	if err != nil {
		return record.Ending{}, fmt.Errorf("the report cannot be recorded: %w", err)
	}
	return record.Ending{Phase: record.Phase(decided.Run.Phase), Verdict: decided.Verdict, Report: text}, nil
}

// recordTimeout bounds the last writes about a run.
const recordTimeout = 30 * time.Second
