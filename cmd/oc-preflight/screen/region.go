// Package screen answers: what does a terminal show of a command that has not ended?
//
// Frames are pure functions of a state, a time and a size. Region draws them.
package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
)

// Control sequences of terminals: ECMA-48 section 8.3, the cursor of the VT100 (DECSC, DECRC), and the synchronized
// output of terminals that have it (private mode 2026), so that no half frame is shown.
// Lines are overwritten and erased one by one: a terminal that is asked to erase a whole screen may keep it in its
// scrollback, as tmux does, with each frame.
const (
	beginFrame = "\x1b[?2026h"
	endFrame   = "\x1b[?2026l"
	cursorUp   = "\x1b[%dA"
	cursorDown = "\x1b[B"
	saveCursor = "\x1b7"
	loadCursor = "\x1b8"
	eraseLine  = "\x1b[K"
)

// colored measures text that may have control sequences, which take no column.
func colored() displaywidth.Options { return displaywidth.Options{ControlSequences: true} }

// widthOf is the number of columns that a line takes.
func widthOf(line string) int { return colored().String(line) }

// clip is a line in at most that many columns.
func clip(line string, most int, style format.Style) string {
	most, more := max(most, 1), style.Ellipsis()
	if widthOf(more) > most {
		more = ""
	}
	return colored().TruncateString(line, most, more)
}

// truncate returns at most rows lines, the last of which counts the lines that are left out.
func truncate(lines []string, rows int, more func(rest int) string) []string {
	switch {
	case len(lines) <= rows:
		return lines
	case rows < 1:
		return nil
	}
	return append(slices.Clone(lines[:rows-1]), more(len(lines)-rows+1))
}

// Region is the last lines of a terminal, which are drawn again and again. What is above
// stays on the screen and in its scrollback, and the keyboard is not used.
type Region struct {
	w io.Writer
	// drawn are the widths of the lines, in columns.
	drawn []int
}

// NewRegion is an empty region of the terminal w.
func NewRegion(w io.Writer) *Region { return &Region{w: w} }

// Draw replaces the lines of the region, after writing the lines of scroll above them. width is the
// present number of columns of the terminal. A line that the terminal shows in several rows
// since it became narrower is erased by its rows.
func (r *Region) Draw(lines []string, scroll string, width int) error {
	if len(lines) == 0 && len(r.drawn) == 0 && scroll == "" {
		return nil
	}
	var page strings.Builder
	page.WriteString(beginFrame)
	left := r.start(&page, width)
	for line := range strings.Lines(scroll) {
		rows := rowsOf(widthOf(strings.TrimRight(line, "\n")), width)
		erase(&page, rows)
		page.WriteString(line)
		left -= rows
	}
	for _, line := range lines {
		erase(&page, 1)
		page.WriteString(line + "\n")
		r.drawn = append(r.drawn, widthOf(line))
		left--
	}
	erase(&page, left+1)
	page.WriteString(endFrame)
	_, err := io.WriteString(r.w, page.String())
	return err
}

// start moves to the first row of the lines that were drawn, and returns the number of their rows. The cursor need not
// be in the first column: the terminal echoes Ctrl-C.
func (r *Region) start(page *strings.Builder, width int) int {
	rows := 0
	for _, drawn := range r.drawn {
		rows += rowsOf(drawn, width)
	}
	if rows > 0 {
		fmt.Fprintf(page, "\r"+cursorUp, rows)
	}
	r.drawn = r.drawn[:0]
	return rows
}

// erase erases that many rows from the cursor on, at least one, and leaves the cursor where it is.
func erase(page *strings.Builder, rows int) {
	page.WriteString(saveCursor + eraseLine)
	for range rows - 1 {
		page.WriteString(cursorDown + eraseLine)
	}
	page.WriteString(loadCursor)
}

// rowsOf is the number of rows in which a terminal shows a line.
func rowsOf(line, width int) int {
	return max(1, (line+width-1)/max(width, 1))
}

// Fit is a text in at most height lines of at most the style's columns; the last counts those
// that are left out.
func Fit(text string, height int, style format.Style) []string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, clip(strings.TrimRight(line, "\n"), style.Width, style))
	}
	return truncate(lines, height, func(rest int) string { return clip(fmt.Sprintf("... and %d more lines", rest), style.Width, style) })
}

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
	// the images, are shown but not counted.
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
