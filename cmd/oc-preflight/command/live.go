package command

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/jobs"
)

// live shows one line for each unfinished check at the bottom of the terminal; results
// scroll by above.
type live struct {
	file    *os.File
	start   time.Time
	stopped chan struct{}
	ticker  sync.WaitGroup

	mutex  sync.Mutex
	active map[string]jobs.Status
	// current is the current step of the run.
	current string
	drawn   int // lines at the bottom that are ours
	done    int
}

func newLive(file *os.File) *live {
	l := &live{file: file, start: time.Now(), stopped: make(chan struct{}), active: map[string]jobs.Status{}}
	l.ticker.Go(func() { every(200*time.Millisecond, l.stopped, l.tick) })
	return l
}

// tick redraws, so that the clocks run while nothing happens.
func (l *live) tick() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.redraw("")
}

func (l *live) step(text string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.current = text
	l.redraw("")
}

func (l *live) status(status jobs.Status) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if status.State == jobs.Done {
		delete(l.active, status.Check)
		l.done++
	} else {
		l.active[status.Check] = status
	}
	l.redraw("")
}

func (l *live) reported(findings []finding.Finding) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var lines strings.Builder
	for _, f := range findings {
		lines.WriteString("  " + words.Line(summary(f), maxLine) + "\n")
	}
	l.redraw(lines.String())
}

// redraw replaces our lines at the bottom, after writing scroll above them.
func (l *live) redraw(scroll string) {
	var page strings.Builder
	l.erase(&page)
	page.WriteString(scroll)
	width, height := l.size()
	lines := l.lines(height - 1)
	for _, line := range lines {
		page.WriteString(cut(line, width-1) + "\n")
	}
	l.drawn = len(lines)
	fmt.Fprint(l.file, page.String())
}

func (l *live) erase(page *strings.Builder) {
	if l.drawn > 0 {
		fmt.Fprintf(page, "\x1b[%dA\x1b[J", l.drawn)
	}
	l.drawn = 0
}

func (l *live) size() (width, height int) {
	width, height, err := term.GetSize(int(l.file.Fd()))
	if err != nil || width < 20 || height < 4 {
		return 80, 24
	}
	return width, height
}

// lines are the current step and the active checks, at most as many as fit.
func (l *live) lines(most int) []string {
	if l.current == "" {
		return nil
	}
	lines := []string{fmt.Sprintf("%s  (%d running or waiting, %d done)  %s", words.Line(l.current, maxLine), len(l.active), l.done, since(l.start))}
	if len(l.active) == 0 {
		lines[0] = fmt.Sprintf("%s  %s", words.Line(l.current, maxLine), since(l.start))
	}
	statuses := make([]jobs.Status, 0, len(l.active))
	for _, status := range l.active {
		statuses = append(statuses, status)
	}
	slices.SortFunc(statuses, func(a, b jobs.Status) int {
		return cmp.Or(cmp.Compare(order(a.State), order(b.State)), cmp.Compare(a.Check, b.Check))
	})
	widest := 0
	for _, status := range statuses {
		widest = max(widest, len(status.Check))
	}
	for i, status := range statuses {
		if len(lines) == most-1 && i < len(statuses)-1 {
			return append(lines, fmt.Sprintf("  and %d more", len(statuses)-i))
		}
		lines = append(lines, fmt.Sprintf("  %-8s %-*s %5s  %s", status.State, widest, status.Check, since(status.Since), words.Line(status.Detail, maxLine)))
	}
	return lines
}

// order sorts the states that delay the run first.
func order(state jobs.State) int {
	switch state {
	case jobs.Waiting:
		return 0
	case jobs.Running:
		return 1
	case jobs.Queued:
		return 2
	case jobs.Done:
		return 3
	}
	return 4
}

func since(start time.Time) string {
	return time.Since(start).Truncate(time.Second).String()
}

// cut keeps a line from wrapping, which would throw off the count of lines.
func cut(line string, width int) string {
	runes := []rune(line)
	if len(runes) <= width {
		return line
	}
	return string(runes[:width-1]) + "…"
}

func (l *live) clear() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.current = ""
	l.active = map[string]jobs.Status{}
	l.redraw("")
}

func (l *live) close() {
	l.clear()
	close(l.stopped)
	l.ticker.Wait()
}
