package terminal

import (
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/progress"
)

// ProgressOnly shows the progress of a run, and leaves its report to the caller.
func ProgressOnly(display Display) progress.Observer { return shown{display} }

type shown struct{ display Display }

func (s shown) Started(run string) { s.display.started(run) }

func (s shown) Step(step string) { s.display.Step(step) }

func (s shown) Status(status jobs.Status) { s.display.status(status) }

func (s shown) Reported(findings []finding.Finding) { s.display.reported(findings) }

func (s shown) Decided(report.Report) { s.display.Clear() }
