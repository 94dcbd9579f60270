package terminal

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/openshift/update-preflight/cmd/oc-preflight/screen"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/progress"
)

// drawInterval is the time between two frames while nothing happens.
const drawInterval = 200 * time.Millisecond

// live draws the state of a run in the last lines of a terminal, as a frame of screen.
type live struct {
	file    *os.File
	stopped chan struct{}
	ticker  sync.WaitGroup

	mutex    sync.Mutex
	about    About
	progress screen.Progress
	region   *screen.Region
}

func newLive(file *os.File, about About) *live {
	l := &live{
		file: file, stopped: make(chan struct{}), region: screen.NewRegion(file), about: about,
		progress: screen.Progress{Target: about.Target, Start: time.Now(), Limit: about.Limit, Hints: about.hints(""), Findings: about.Decides},
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
	width, height := Size(l.file)
	style := StyleOf(l.file, ColorAuto)
	style.Width = width - 1                                                         // a line of all columns may move the cursor to the next
	_ = l.region.Draw(l.progress.Frame(time.Now(), height-1, style), scroll, width) // the report is unaffected
}

func (l *live) started(run string) {
	l.change(func() { l.progress.Hints = l.about.hints(run) })
}

func (l *live) Step(text string) { l.change(func() { l.progress.Step(text) }) }

func (l *live) status(status jobs.Status) { l.change(func() { l.progress.Status(status) }) }

func (l *live) reported(findings []finding.Finding) {
	l.change(func() { l.progress.Reported(findings) })
}

func (l *live) Clear() { l.change(l.progress.Reset) }

// Close removes the frame. Findings that no report follows for stay on the screen.
func (l *live) Close() {
	l.mutex.Lock()
	var left strings.Builder
	if l.about.Decides {
		for _, f := range l.progress.Notable() {
			left.WriteString("  " + words.Line(summary(f), MaxLine) + "\n")
		}
	}
	l.progress.Reset()
	l.draw(left.String())
	l.mutex.Unlock()
	close(l.stopped)
	l.ticker.Wait()
}

// About is the context of the command for its display.
type About struct {
	// Decides is true for a run, whose report has the findings.
	Decides bool
	// Target is the version of the release; empty where it is not known yet. limit bounds
	// the run.
	Target string
	Limit  time.Duration
	// Interrupt is the effect of Ctrl-C, as a hint, and program the name of the program.
	Interrupt, Program string
}

// shortRun is the length of the first group of the ID of a run, which selects it.
const shortRun = 8

// hints are the last line of the display; run is empty until it is recorded.
func (a About) hints(run string) []string {
	if !a.Decides {
		return nil
	}
	hints := []string{"Ctrl-C: " + a.Interrupt}
	if run != "" {
		hints = append(hints, fmt.Sprintf("follow: %s logs %s CHECK -f", a.Program, run[:min(shortRun, len(run))]))
	}
	return hints
}

// OnInterrupts calls first when ctx ends, which is the first interrupt, and second at the next interrupt,
// until the returned function is called. That returns when no signal is awaited any more.
func OnInterrupts(ctx context.Context, first, second func()) (stop func()) {
	again, stopped := make(chan os.Signal, 1), make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-ctx.Done():
		case <-stopped:
			return
		}
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(again)
		first()
		select {
		case <-again:
			second()
		case <-stopped:
		}
	})
	return func() {
		close(stopped)
		waiting.Wait()
	}
}

// ProgressOnly shows the progress of a run, and leaves its report to the caller.
func ProgressOnly(display Display) progress.Observer { return shown{display} }

type shown struct{ display Display }

func (s shown) Started(run string) { s.display.started(run) }

func (s shown) Step(step string) { s.display.Step(step) }

func (s shown) Status(status jobs.Status) { s.display.status(status) }

func (s shown) Reported(findings []finding.Finding) { s.display.reported(findings) }

func (s shown) Decided(report.Report) { s.display.Clear() }
