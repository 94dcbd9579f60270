package command

import (
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/jobs"
)

// observer shows a run on the display and writes its report.
type observer struct {
	display display
	prompt  *interruptPrompt
	write   func(report.Report) error
	// failure is the error of writing the report.
	failure error
}

// Started implements runner.Observer.
func (o *observer) Started(run string) {
	o.prompt.started(run)
	o.display.started(run)
}

// Step implements runner.Observer.
func (o *observer) Step(step string) { o.display.step(step) }

// Status implements runner.Observer.
func (o *observer) Status(status jobs.Status) { o.display.status(status) }

// Reported implements runner.Observer.
func (o *observer) Reported(findings []finding.Finding) { o.display.reported(findings) }

// Decided implements runner.Observer.
func (o *observer) Decided(decided report.Report) {
	o.display.clear()
	o.failure = o.write(decided)
}

// progressOnly is the observer of a command that writes no report of a run.
func progressOnly(display display) *observer {
	return &observer{display: display, prompt: &interruptPrompt{}, write: func(report.Report) error { return nil }}
}
