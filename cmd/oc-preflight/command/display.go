package command

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

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/jobs"
)

// display shows what a run is doing while it does.
type display interface {
	// show is called one event at a time.
	show(event runner.Event)
	// clear leaves the screen to the report; events may still follow.
	clear()
	// close is the end.
	close()
}

// newDisplay chooses live lines for a terminal, and plain lines otherwise.
func newDisplay(w io.Writer) display {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return newPlain(w)
	}
	return newLive(file)
}

// patience is how long a check may be in one state before a log tells of it.
const patience = 2 * time.Second

// plain writes one line for each step and each answer, and for what a check
// does while that lasts: a log shows what was waited for, and nothing twice.
type plain struct {
	w       io.Writer
	start   time.Time
	stopped chan struct{}
	ticker  sync.WaitGroup

	mutex  sync.Mutex
	active map[string]jobs.Status
	told   map[string]string
}

func newPlain(w io.Writer) *plain {
	p := &plain{
		w: w, start: time.Now(), stopped: make(chan struct{}),
		active: map[string]jobs.Status{}, told: map[string]string{},
	}
	p.ticker.Go(func() { every(patience/4, p.stopped, p.tellActive) })
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

func (p *plain) show(event runner.Event) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch {
	case event.Step != "":
		p.line(event.Step)
	case event.Status != nil && event.Status.State == jobs.Done:
		delete(p.active, event.Status.Check)
	case event.Status != nil:
		p.active[event.Status.Check] = *event.Status
	default:
		for _, f := range event.Answered {
			p.line(answer(f))
		}
	}
}

// tellActive writes what has lasted for a while and was not told yet.
func (p *plain) tellActive() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.active)) {
		status := p.active[name]
		text := strings.TrimSpace(string(status.State) + ": " + status.Detail)
		if time.Since(status.Since) >= patience && p.told[name] != text {
			p.told[name] = text
			p.line(name + ": " + text)
		}
	}
}

func (p *plain) line(text string) {
	fmt.Fprintf(p.w, "%6.1fs  %s\n", time.Since(p.start).Seconds(), words.Line(text, maxLine))
}

func (*plain) clear() {}

func (p *plain) close() {
	close(p.stopped)
	p.ticker.Wait()
}

// answer is how a finished check reads in the progress.
func answer(f finding.Finding) string {
	return fmt.Sprintf("%s: %s (%s)", f.Name, f.Outcome, f.Reason)
}

// maxLine bounds one line of progress, in bytes.
const maxLine = 4 << 10
