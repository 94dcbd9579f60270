// Package terminal answers: how does a command show its progress on this stream?
//
// [New] chooses live lines for a terminal, and plain lines otherwise.
package terminal

import (
	"io"
	"os"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/jobs"
)

// Display shows the progress of a run. Its methods are called one at a time.
type Display interface {
	follower
	// Clear leaves the screen to the report; more progress may follow.
	Clear()
	Close()
}

// follower receives the progress of a run.
type follower interface {
	// started reports the ID of the run.
	started(run string)
	Step(text string)
	status(status jobs.Status)
	reported(findings []finding.Finding)
}

// Silent shows nothing.
type Silent struct{}

func (Silent) started(string) {}

// Step does nothing.
func (Silent) Step(string)                {}
func (Silent) status(jobs.Status)         {}
func (Silent) reported([]finding.Finding) {}

// Clear does nothing.
func (Silent) Clear() {}

// Close does nothing.
func (Silent) Close() {}

// New chooses live lines for a terminal, and plain lines otherwise.
func New(w io.Writer, about About) Display {
	file, ok := Of(w)
	if !ok || os.Getenv("TERM") == "dumb" {
		return NewPlain(w)
	}
	return newLive(file, about)
}
