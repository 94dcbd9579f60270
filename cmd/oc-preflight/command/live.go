package command

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
)

// live shows one line for each unfinished check at the bottom of the terminal; results
// that are no passes scroll by above, and passes are counted. It is not one of the libraries for terminal programs: those that
// were tried count lines, not rows, so that lines which a narrower terminal wraps stay
// on the screen, and they take over the keyboard.
type live struct {
	file    *os.File
	start   time.Time
	stopped chan struct{}
	ticker  sync.WaitGroup

	mutex  sync.Mutex
	active map[string]jobs.Status
	// current is the current step of the run.
	current string
	// drawn are the widths of the lines at the bottom, in characters.
	drawn []int
	// queued has the checks that have a Job: each waits before it runs. Others, such
	// as that of the images, are shown but not counted.
	queued map[string]bool
	done   int
	// passed counts the findings that are passes.
	passed int
}

func newLive(file *os.File) *live {
	l := &live{file: file, start: time.Now(), stopped: make(chan struct{}), active: map[string]jobs.Status{}, queued: map[string]bool{}}
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
	switch status.State {
	case jobs.Done:
		delete(l.active, status.Check)
		if l.queued[status.Check] {
			l.done++
		}
	case jobs.Queued, jobs.Waiting:
		l.queued[status.Check] = true
		l.active[status.Check] = status
	case jobs.Running:
		l.active[status.Check] = status
	}
	l.redraw("")
}

func (l *live) reported(findings []finding.Finding) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var lines strings.Builder
	for _, f := range findings {
		if f.Outcome == preflight.Pass {
			l.passed++
			continue
		}
		lines.WriteString("  " + words.Line(summary(f), maxLine) + "\n")
	}
	l.redraw(lines.String())
}

// redraw replaces our lines at the bottom, after writing scroll above them.
func (l *live) redraw(scroll string) {
	var page strings.Builder
	l.erase(&page)
	page.WriteString(scroll)
	width, height := terminalSize(l.file)
	for _, line := range l.lines(height-1, width-1) {
		shown := cut(line, width-1)
		page.WriteString(shown + "\n")
		l.drawn = append(l.drawn, utf8.RuneCountInString(shown))
	}
	fmt.Fprint(l.file, page.String())
}

// erase removes the lines at the bottom: as many rows as they take now, since the
// terminal wraps them when it becomes narrower. The cursor need not be in the first
// column: the terminal echoes Ctrl-C.
func (l *live) erase(page *strings.Builder) {
	width, _ := terminalSize(l.file)
	rows := 0
	for _, drawn := range l.drawn {
		rows += max(1, (drawn+width-1)/width)
	}
	if rows > 0 {
		fmt.Fprintf(page, "\r\x1b[%dA\x1b[J", rows)
	}
	l.drawn = l.drawn[:0]
}

// lines are the current step and the active checks, at most as many as fit, for a
// terminal of that many columns.
func (l *live) lines(most, columns int) []string {
	if l.current == "" {
		return nil
	}
	lines := []string{fmt.Sprintf("%s%s  %s", words.Line(l.current, maxLine), l.counts(), since(l.start))}
	statuses := make([]jobs.Status, 0, len(l.active))
	for _, status := range l.active {
		statuses = append(statuses, status)
	}
	slices.SortFunc(statuses, func(a, b jobs.Status) int {
		return cmp.Or(cmp.Compare(order(a.State), order(b.State)), cmp.Compare(a.Check, b.Check))
	})
	names := nameColumns(statuses, columns)
	for i, status := range statuses {
		if len(lines) == most-1 && i < len(statuses)-1 {
			return append(lines, fmt.Sprintf("  and %d more", len(statuses)-i))
		}
		lines = append(lines, fmt.Sprintf("  %-8s %-*s %5s  %s", status.State, names, cut(status.Check, names), since(status.Since), words.Line(status.Detail, maxLine)))
	}
	return lines
}

// counts are the number of passes and those of checks with a Job in each state, for the
// first line.
func (l *live) counts() string {
	states := map[jobs.State]int{jobs.Done: l.done}
	for name, status := range l.active {
		if l.queued[name] {
			states[status.State]++
		}
	}
	var counts []string
	if l.passed > 0 {
		counts = append(counts, fmt.Sprintf("%d passed", l.passed))
	}
	for _, state := range []jobs.State{jobs.Running, jobs.Waiting, jobs.Queued, jobs.Done} {
		if states[state] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", states[state], state))
		}
	}
	if len(counts) == 0 {
		return ""
	}
	return "  (" + strings.Join(counts, ", ") + ")"
}

// nameColumns is the width of the names of checks. Where a line does not fit, the
// name is cut before the detail, which is why the check has not finished, but not to
// less than a third of the space.
func nameColumns(statuses []jobs.Status, columns int) int {
	const others = len("  Starting  00m00  ")
	name, detail := 0, 0
	for _, status := range statuses {
		name, detail = max(name, utf8.RuneCountInString(status.Check)), max(detail, utf8.RuneCountInString(status.Detail))
	}
	space := max(0, columns-others)
	return min(name, max(space-detail, space/3))
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

// cut is the line in at most width columns.
func cut(line string, width int) string {
	runes := []rune(line)
	if len(runes) <= width || width < 1 {
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
