// Package screen answers: what does a terminal show of a command that has not ended?
//
// Frames are pure functions of a state, a time and a size. Region draws them.
package screen

import (
	"time"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
)

// Progress is the state of a command that waits. Its methods are called one at a time.
type Progress struct {
	// Target is the version of the release; empty where it is not known yet.
	Target string
	// Start is when the command started, and Limit bounds its time; 0 if nothing does.
	Start time.Time
	Limit time.Duration
	// Hints are the last line, the most important first; as many as fit.
	Hints []string
	// Findings reports whether findings that are not passes are listed.
	Findings bool

	step   string
	active map[string]jobs.Status
	// expected has the checks that have a Job: each waits before it runs. Others, such as
	// that of the images, are shown but not counted.
	expected map[string]bool
	done     int
	// counts are the numbers of findings by label.
	counts  map[label]int
	notable []finding.Finding
	// reset is true after Reset: what is on the screen is not to scroll.
	reset bool
}

// label is the outcome of a finding as the text of a report names it.
type label string

const (
	labelFail     label = "FAIL"
	labelUnknown  label = "UNKNOWN"
	labelWarn     label = "WARN"
	labelBypassed label = "accepted"
	labelPass     label = "PASS"
	labelSkipped  label = "SKIPPED"
)

func labels() []label {
	return []label{labelFail, labelUnknown, labelWarn, labelBypassed, labelPass, labelSkipped}
}

func labelOf(f finding.Finding) label {
	switch {
	case f.Bypass != nil:
		return labelBypassed
	case f.Stops():
		return labelFail
	case f.Inconclusive():
		return labelUnknown
	case f.Outcome == preflight.Pass:
		return labelPass
	case f.Outcome == preflight.Skipped:
		return labelSkipped
	}
	return labelWarn
}

// Step sets the current step of the command.
func (p *Progress) Step(text string) { p.step = text }

// Status records the state of one check.
func (p *Progress) Status(status jobs.Status) {
	if p.active == nil {
		p.active, p.expected = map[string]jobs.Status{}, map[string]bool{}
	}
	switch status.State {
	case diagnosis.Done:
		delete(p.active, status.Check)
		if p.expected[status.Check] {
			p.done++
		}
		return
	case diagnosis.Queued, diagnosis.Waiting:
		p.expected[status.Check] = true
	case diagnosis.Running:
	}
	p.active[status.Check] = status
}

// Reported counts findings, and keeps those that need attention.
func (p *Progress) Reported(findings []finding.Finding) {
	if p.counts == nil {
		p.counts = map[label]int{}
	}
	for _, f := range findings {
		p.counts[labelOf(f)]++
		switch labelOf(f) {
		case labelFail, labelUnknown, labelWarn:
			p.notable = append(p.notable, f)
		case labelBypassed, labelPass, labelSkipped:
		}
	}
}

// Notable are the findings that need attention, in the order of Reported.
func (p *Progress) Notable() []finding.Finding { return p.notable }

// Reset forgets everything that was recorded: the frame is empty until the next step, and
// has one line until the next result.
func (p *Progress) Reset() {
	*p = Progress{Target: p.Target, Start: p.Start, Limit: p.Limit, Hints: p.Hints, Findings: p.Findings, reset: true}
}
