package command

import (
	"io"
	"os"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/jobs"
)

// display shows the progress of a run. Its methods are called one at a time.
type display interface {
	follower
	// clear leaves the screen to the report; more progress may follow.
	clear()
	close()
}

// follower receives the progress of a run.
type follower interface {
	// started reports the ID of the run.
	started(run string)
	step(text string)
	status(status jobs.Status)
	reported(findings []finding.Finding)
}

// silent shows nothing.
type silent struct{}

func (silent) started(string)             {}
func (silent) step(string)                {}
func (silent) status(jobs.Status)         {}
func (silent) reported([]finding.Finding) {}
func (silent) clear()                     {}
func (silent) close()                     {}

// newDisplay chooses live lines for a terminal, and plain lines otherwise.
func newDisplay(w io.Writer, about about) display {
	file, ok := terminal(w)
	if !ok || os.Getenv("TERM") == "dumb" {
		return newPlain(w)
	}
	return newLive(file, about)
}
