package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

// Route is a picture of the updates of a path, from left to right, with the same data as a table.
type Route struct {
	Title string
	// Stops are the versions, the first included.
	Stops []string
	// Hops are the updates between the stops, in order. There may be fewer.
	Hops []Hop
	// Pauses are the pools of nodes that are paused on the way.
	Pauses []Pause
	Others []OtherRoute
	// Table has the data of the picture.
	Table document.Table
	// Text is the picture in characters; empty for none.
	Text string
}

// Hop is one update of a path.
type Hop struct {
	// Text is above the arrow, and Detail below it.
	Text, Detail string
	// Marks are results that concern the update.
	Marks []Mark
}

// Mark is a result that concerns an update, with a text below it.
type Mark struct {
	document.Mark

	Text string
}

// Pause is a pool of nodes that is paused during all updates.
type Pause struct {
	Name string
	// Unpaused are the stops at which the nodes are updated, by their index.
	Unpaused []int
}

// OtherRoute is a path with a name.
type OtherRoute struct {
	Name  string
	Stops []string
}

// The limits of the picture; the table has more.
const (
	maxStops, maxMarks, maxPauses, maxOthers, maxOtherStops = 8, 4, 3, 3, 8
)

// The geometry of the picture, in pixels: rows of cells, of which each has a stop and the update that follows it.
const (
	cellsInRow  = 3
	cellWidth   = 300
	cellMargin  = 8
	boxWidth    = 104
	boxHeight   = 30
	textHeight  = 18
	markHeight  = 40
	pauseHeight = 20
	otherWidth  = 110
)

func (r Route) stops() []string { return r.Stops[:min(len(r.Stops), maxStops)] }

func (r Route) pauses() []Pause { return r.Pauses[:min(len(r.Pauses), maxPauses)] }

// Picture is the route with its table.
func (r Route) Picture() document.Picture {
	drawing, top := g.Group{}, 0
	for first := 0; first < len(r.stops()); first += cellsInRow {
		row := r.stops()[first:min(first+cellsInRow, len(r.stops()))]
		for i := range row {
			drawing = append(drawing, r.cell(first+i, cellWidth*i, top))
		}
		top += r.rowHeight(first)
	}
	for _, other := range r.Others[:min(len(r.Others), maxOthers)] {
		drawing = append(drawing, other.node(top))
		top += 2*textHeight + boxHeight
	}
	return document.Picture{
		Title: r.Title, Legend: strings.TrimSpace(r.legend()), Text: r.Text, Table: r.Table,
		Drawing: drawn(r.Title, "; the table below has the same data", fmt.Sprint(cellWidth*cellsInRow), top, drawing),
	}
}

func (r Route) rowHeight(first int) int {
	marks := 0
	for i := first; i < min(first+cellsInRow, len(r.Hops)); i++ {
		marks = max(marks, min(len(r.Hops[i].Marks), maxMarks+1))
	}
	return pauseHeight*len(r.pauses()) + boxHeight + markHeight*marks + textHeight
}

func (r Route) legend() string {
	legend := ""
	if len(r.Pauses) > 0 {
		legend += " A pool of nodes is paused while its bar is drawn, and unpaused where the bar has a gap."
	}
	if len(r.Others) > 0 {
		legend += " Other paths have dashed boxes."
	}
	stops, pools, others := len(r.Stops)-len(r.stops()), len(r.Pauses)-len(r.pauses()), max(0, len(r.Others)-maxOthers)
	if stops+pools+others > 0 {
		legend += fmt.Sprintf(" Left out of the picture: %s, %s, %s.",
			words.Count(stops, "version"), words.Count(pools, "pool"), words.Count(others, "other path"))
	}
	return legend
}

// cell draws a stop, the update that follows it, and the pools that are paused.
func (r Route) cell(stop, x, y int) g.Node {
	content := g.Group{}
	updates := len(r.Stops) - 1
	for i, pause := range r.pauses() {
		content = append(content, pause.node(stop, updates, x, y+pauseHeight*i))
	}
	y += pauseHeight * len(r.pauses())
	content = append(content, box(r.Stops[stop], x, y, boxWidth, g.Attr("stroke", "currentColor")))
	if stop == updates {
		return content
	}
	content = append(content, arrow(x+boxWidth, x+cellWidth-2, y+boxHeight/2))
	if stop < len(r.Hops) {
		content = append(content, r.Hops[stop].node(x, y))
	}
	return content
}

// node draws what concerns an update: its texts on the arrow, and its marks below.
func (p Hop) node(x, y int) g.Node {
	content := g.Group{clipped(x+boxWidth+cellMargin, y, cellWidth-boxWidth-2*cellMargin, boxHeight,
		g.Group{label("0", 11, p.Text), label("0", 27, p.Detail)})}
	marks := p.Marks[:min(len(p.Marks), maxMarks)]
	y += boxHeight + cellMargin
	for i, mark := range marks {
		content = append(content, clipped(x, y+markHeight*i, cellWidth-cellMargin, markHeight, mark.drawn()))
	}
	if more := len(p.Marks) - len(marks); more > 0 {
		content = append(content, clipped(x, y+markHeight*len(marks), cellWidth-cellMargin, textHeight,
			label("0", barBaseline, fmt.Sprintf("and %d more, in the table", more))))
	}
	return content
}

func (m Mark) drawn() g.Node {
	return g.Group{
		h.SVG(at("0", 1), size(fmt.Sprint(shapeSize), shapeSize), viewBox(), shape(m.Level)),
		label(fmt.Sprint(shapeSize+cellMargin), 14, words.Line(m.Word, maxLine), g.Attr("font-weight", "bold")),
		label("0", 31, m.Text),
	}
}

// node draws the bar of a pool above a stop and the update that follows it, of that many.
func (p Pause) node(stop, updates, x, y int) g.Node {
	unpaused, last, width := slices.Contains(p.Unpaused, stop), stop == updates, cellWidth-boxWidth
	if unpaused && last {
		return clipped(x+2, y, cellWidth-cellMargin, pauseHeight, label("0", 13, "unpause "+p.Name))
	}
	content := g.Group{rectangle(fmt.Sprint(x), y, fmt.Sprint(boxWidth), pauseHeight-4, gray)}
	if unpaused {
		content = g.Group{clipped(x+2, y, boxWidth, pauseHeight, label("0", 13, "unpause"))}
	}
	if last {
		return content
	}
	return append(content,
		rectangle(fmt.Sprint(x+boxWidth), y, fmt.Sprint(width), pauseHeight-4, gray),
		clipped(x+boxWidth+cellMargin, y, width-2*cellMargin, pauseHeight, line(g.El("text", at("0", 13), fill(white), text(p.Name+" paused")))),
	)
}

// node draws another path.
func (o OtherRoute) node(y int) g.Node {
	content := g.Group{clipped(0, y, cellWidth*cellsInRow, textHeight, label("0", barBaseline, o.Name))}
	for i, stop := range o.Stops[:min(len(o.Stops), maxOtherStops)] {
		content = append(content, box(stop, otherWidth*i, y+textHeight+2, otherWidth-2*cellMargin, g.Attr("stroke", axis),
			g.Attr("stroke-dasharray", "3 3")))
		if i > 0 {
			content = append(content, arrow(otherWidth*i-2*cellMargin, otherWidth*i-1, y+textHeight+2+boxHeight/2))
		}
	}
	return content
}

func box(version string, x, y, width int, frame ...g.Node) g.Node {
	return g.Group{
		line(g.El("rect", at(fmt.Sprint(x+1), y+1), size(fmt.Sprint(width-2), boxHeight-2), g.Attr("rx", "4"), fill("none"), g.Group(frame))),
		clipped(x+2, y, width-4, boxHeight, label("50%", 20, version, anchor("middle"))),
	}
}

func arrow(from, to, y int) g.Node {
	const head = 6
	return g.Group{
		rectangle(fmt.Sprint(from), y-1, fmt.Sprint(to-from-1), 2, axis),
		line(area(fmt.Sprintf("M%d %dl%d %dl-%d %dz", to-head, y-head+1, head, head-1, head, head-1), axis)),
	}
}

// clipped is a part of a picture that nothing leaves.
func clipped(x, y, width, height int, content g.Node) g.Node {
	return line(h.SVG(at(fmt.Sprint(x), y), size(fmt.Sprint(width), height), content))
}

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
