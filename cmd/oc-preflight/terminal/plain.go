package terminal

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
)

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
