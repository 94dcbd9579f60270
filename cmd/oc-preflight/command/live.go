package command

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/openshift/update-preflight/cmd/oc-preflight/screen"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/jobs"
)

// drawInterval is the time between two frames while nothing happens.
const drawInterval = 200 * time.Millisecond

// live draws the state of a run in the last lines of a terminal, as a frame of screen.
type live struct {
	file    *os.File
	stopped chan struct{}
	ticker  sync.WaitGroup

	mutex    sync.Mutex
	about    about
	progress screen.Progress
	region   *screen.Region
}

func newLive(file *os.File, about about) *live {
	l := &live{
		file: file, stopped: make(chan struct{}), region: screen.NewRegion(file), about: about,
		progress: screen.Progress{Target: about.target, Start: time.Now(), Limit: about.limit, Hints: about.hints(""), Findings: about.decides},
	}
	l.ticker.Go(func() { every(drawInterval, l.stopped, func() { l.change(func() {}) }) })
	return l
}

// change changes the state, and draws it in the present size of the terminal.
func (l *live) change(do func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	do()
	l.draw("")
}

func (l *live) draw(scroll string) {
	width, height := terminalSize(l.file)
	style := styleOf(l.file, colorAuto)
	style.Width = width - 1                                                         // a line of all columns may move the cursor to the next
	_ = l.region.Draw(l.progress.Frame(time.Now(), height-1, style), scroll, width) // the report is unaffected
}

func (l *live) started(run string) {
	l.change(func() { l.progress.Hints = l.about.hints(run) })
}

func (l *live) step(text string) { l.change(func() { l.progress.Step(text) }) }

func (l *live) status(status jobs.Status) { l.change(func() { l.progress.Status(status) }) }

func (l *live) reported(findings []finding.Finding) {
	l.change(func() { l.progress.Reported(findings) })
}

func (l *live) clear() { l.change(l.progress.Reset) }

// close removes the frame. Findings that no report follows for stay on the screen.
func (l *live) close() {
	l.mutex.Lock()
	var left strings.Builder
	if l.about.decides {
		for _, f := range l.progress.Notable() {
			left.WriteString("  " + words.Line(summary(f), maxLine) + "\n")
		}
	}
	l.progress.Reset()
	l.draw(left.String())
	l.mutex.Unlock()
	close(l.stopped)
	l.ticker.Wait()
}

// about is the context of the command for its display.
type about struct {
	// decides is true for a run, whose report has the findings.
	decides bool
	// target is the version of the release; empty where it is not known yet. limit bounds
	// the run.
	target string
	limit  time.Duration
	// interrupt is the effect of Ctrl-C, as a hint, and program the name of the program.
	interrupt, program string
}

// shortRun is the length of the first group of the ID of a run, which selects it.
const shortRun = 8

// hints are the last line of the display; run is empty until it is recorded.
func (a about) hints(run string) []string {
	if !a.decides {
		return nil
	}
	hints := []string{"Ctrl-C: " + a.interrupt}
	if run != "" {
		hints = append(hints, fmt.Sprintf("follow: %s logs %s CHECK -f", a.program, run[:min(shortRun, len(run))]))
	}
	return hints
}
