package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

// Timeline is a picture of when checks waited and ran, with the same data as a table.
type Timeline struct {
	Title string
	// Bars are at least one.
	Bars []Bar
}

// Bar is the time of one check, which waited or ran. Ends are not before starts.
type Bar struct {
	Name, Result string
	Level        document.Level
	Waits        []Wait
	// Start and End bound the run of the check; zero for a check that has not run, or still runs.
	Start, End time.Time
}

// Wait is a period in which a check did not run.
type Wait struct {
	Reason, Message string
	Start, End      time.Time
}

// maxBars bounds the picture; the table has more.
const maxBars = 60

func (t Timeline) sorted() []Bar {
	bars := slices.Clone(t.Bars)
	slices.SortStableFunc(bars, func(a, b Bar) int {
		return cmp.Or(a.first().Compare(b.first()), a.last().Compare(b.last()), cmp.Compare(a.Name, b.Name))
	})
	return bars
}

// periods are when a check waited, and when it ran if it did.
func (b Bar) periods() []Wait {
	if !b.ran() {
		return b.Waits
	}
	return append(slices.Clone(b.Waits), Wait{Start: b.Start, End: b.End})
}

func (b Bar) ran() bool { return !b.Start.IsZero() }

func (b Bar) first() time.Time {
	return slices.MinFunc(b.periods(), func(x, y Wait) int { return x.Start.Compare(y.Start) }).Start
}

func (b Bar) last() time.Time {
	return slices.MaxFunc(b.periods(), func(x, y Wait) int { return x.End.Compare(y.End) }).End
}

func (b Bar) waited() time.Duration {
	total := time.Duration(0)
	for _, wait := range b.Waits {
		total += wait.End.Sub(wait.Start)
	}
	return total
}

// Picture is the timeline with its table.
func (t Timeline) Picture() document.Picture {
	bars := t.sorted()
	start, span, shown := bars[0].first(), t.span(), bars[:min(len(bars), maxBars)]
	drawing := g.Group{label("0", axisBaseline, "0 s"), label("100%", axisBaseline, span.String(), anchor("end"))}
	for i, bar := range shown {
		drawing = append(drawing, bar.node(axisHeight+barHeight*i, start, scale(span)))
	}
	legend := "It begins at " + words.Time(start) + ". A check waits while its bar is striped, and runs while it is solid."
	if more := len(bars) - len(shown); more > 0 {
		legend += fmt.Sprintf(" Left out of the picture: %s that started last.", words.Count(more, "check"))
	}
	label := fmt.Sprintf(": %s; the table below has the same data", words.Count(len(shown), "check"))
	return document.Picture{
		Title: t.Title, Legend: legend, Table: t.table(bars),
		Drawing: drawn(t.Title, label, "100%", axisHeight+barHeight*len(shown), drawing),
	}
}

// span is at least a second, so that shares of it are defined.
func (t Timeline) span() time.Duration {
	bars := t.sorted()
	last := bars[0].last()
	for _, bar := range bars {
		if end := bar.last(); end.After(last) {
			last = end
		}
	}
	return max(time.Second, last.Sub(bars[0].first()))
}

// node draws a bar and its label, top pixels below the top of the picture.
func (b Bar) node(top int, start time.Time, width scale) g.Node {
	at := func(t time.Time) float64 { return float64(t.Sub(start)) }
	content := g.Group{label("0", top+barBaseline, b.label()), baseline(top + barTop)}
	for _, wait := range b.Waits {
		content = append(content, width.striped(top+barTop, at(wait.Start), at(wait.End)))
	}
	if b.ran() {
		content = append(content, width.solid(top+barTop, at(b.Start), at(b.End), colorOf(b.Level)))
	}
	return content
}

func (b Bar) label() string {
	text := b.Result + ", " + cmp.Or(b.duration(), "duration unknown") + ": " + b.Name
	if len(b.Waits) == 0 {
		return text
	}
	var reasons []string
	for _, wait := range b.Waits {
		if !slices.Contains(reasons, wait.Reason) {
			reasons = append(reasons, wait.Reason)
		}
	}
	return text + "; waited " + b.waited().String() + ": " + strings.Join(reasons, ", ")
}

// duration is how long the check ran; empty if it did not.
func (b Bar) duration() string {
	if !b.ran() {
		return ""
	}
	return b.End.Sub(b.Start).String()
}

func (t Timeline) table(bars []Bar) document.Table {
	table := document.Table{Title: t.Title + ", as a table", Columns: []string{"Check", "Result", "Started", "Ended", "Duration", "Waited"}}
	for _, bar := range bars {
		started, ended := "", ""
		if bar.ran() {
			started, ended = words.Time(bar.Start), words.Time(bar.End)
		}
		table.Rows = append(table.Rows, []string{bar.Name, bar.Result, started, ended, bar.duration(), bar.waits()})
	}
	return table
}

// waits are the periods in words.
func (b Bar) waits() string {
	var texts []string
	for _, wait := range b.Waits {
		text := wait.End.Sub(wait.Start).String() + " " + wait.Reason
		if wait.Message != "" {
			text += ": " + wait.Message
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}
