// Package terminal answers: how does a command show its progress on this stream?
//
// [New] chooses live lines for a terminal, and plain lines otherwise.
package terminal

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/openshift/update-preflight/cmd/oc-preflight/screen"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/progress"
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

// Silent returns a display that shows nothing.
func Silent() Display { return silent{} }

type silent struct{}

func (silent) started(string)             {}
func (silent) Step(string)                {}
func (silent) status(jobs.Status)         {}
func (silent) reported([]finding.Finding) {}
func (silent) Clear()                     {}
func (silent) Close()                     {}

// New chooses live lines for a terminal, and plain lines otherwise.
func New(w io.Writer, about About) Display {
	file, ok := Of(w)
	if !ok || os.Getenv("TERM") == "dumb" {
		return NewPlain(w)
	}
	return newLive(file, about)
}

// StateTime is how long a check is in one state before a log reports it.
const StateTime = 2 * time.Second

// plain writes one line for each step and each result, and for a state of a check
// that lasts.
type plain struct {
	w       io.Writer
	start   time.Time
	stopped chan struct{}
	ticker  sync.WaitGroup

	mutex  sync.Mutex
	active map[string]jobs.Status
	// written is the last line about each check.
	written map[string]string
}

// NewPlain writes one line for each event, without control sequences.
func NewPlain(w io.Writer) Display {
	p := &plain{
		w: w, start: time.Now(), stopped: make(chan struct{}),
		active: map[string]jobs.Status{}, written: map[string]string{},
	}
	p.ticker.Go(func() { every(StateTime/4, p.stopped, p.writeActive) })
	return p
}

// every calls do at intervals, until stopped is closed.
func every(interval time.Duration, stopped <-chan struct{}, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-ticker.C:
			do()
		}
	}
}

func (*plain) started(string) {}

func (p *plain) Step(text string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.line(text)
}

func (p *plain) status(status jobs.Status) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if status.State == diagnosis.Done {
		delete(p.active, status.Check)
		return
	}
	p.active[status.Check] = status
}

func (p *plain) reported(findings []finding.Finding) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, f := range findings {
		p.line(summary(f))
	}
}

// writeActive writes the states that have lasted for a while, each once.
func (p *plain) writeActive() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.active)) {
		status := p.active[name]
		text := strings.TrimSpace(string(status.State) + ": " + status.Detail)
		if time.Since(status.Since) >= StateTime && p.written[name] != text {
			p.written[name] = text
			p.line(name + ": " + text)
		}
	}
}

func (p *plain) line(text string) {
	fmt.Fprintf(p.w, "%6.1fs  %s\n", time.Since(p.start).Seconds(), words.Line(text, MaxLine))
}

func (*plain) Clear() {}

func (p *plain) Close() {
	close(p.stopped)
	p.ticker.Wait()
}

// summary is one finding in the progress.
func summary(f finding.Finding) string {
	return fmt.Sprintf("%s: %s (%s)", f.Name, f.Outcome, f.Reason)
}

// MaxLine bounds one line of progress, in bytes.
const MaxLine = 4 << 10

// The values of --color.
const (
	ColorAuto   = "auto"
	ColorAlways = "always"
	ColorNever  = "never"
)

// Style is the style of a text on w that no flag changes.
func Style(w io.Writer) format.Style {
	style := StyleOf(w, ColorAuto)
	style.Details, style.Hint = true, "--details"
	return style
}

// StyleOf is the style of a text on w, for a value of --color.
func StyleOf(w io.Writer, color string) format.Style {
	style := format.Style{Color: color == ColorAlways}
	file, ok := Of(w)
	if !ok {
		return style
	}
	style.Width, _ = Size(file)
	if os.Getenv("TERM") == "dumb" {
		return style
	}
	style.Symbols = unicodeLocale()
	style.Color = style.Color || color == ColorAuto && os.Getenv("NO_COLOR") == ""
	return style
}

// unicodeLocale reports whether the locale has the encoding UTF-8.
func unicodeLocale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToUpper(os.Getenv(name)); value != "" {
			return strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8")
		}
	}
	return false
}

// Of returns the file of a stream that is a terminal.
func Of(stream any) (*os.File, bool) {
	file, ok := stream.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// Size is the size of a terminal in characters, 80 by 24 where it is unknown.
func Size(file *os.File) (width, height int) {
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width < 20 || height < 4 {
		return 80, 24
	}
	return width, height
}

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
