package screen

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
)

const (
	// maxText bounds one line, in bytes.
	maxText = 4 << 10
	// indent begins the lines about one check or one finding.
	indent = "  "
)

// Frame is the state at a time, in at most height lines of at most style.Width columns:
// the bar, the step, the findings that need attention, the checks that run or wait,
// those that delay the run longest first, and the hints. It is empty without a step.
func (p *Progress) Frame(now time.Time, height int, style format.Style) []string {
	if p.step == "" || height < 1 {
		return nil
	}
	step := clip(indent+words.Line(p.step, maxText)+p.states(), style.Width, style)
	if p.reset && len(p.active) == 0 && len(p.counts) == 0 {
		return []string{step}
	}
	lines := []string{p.bar(now, style)}
	if height > 1 {
		lines = append(lines, step)
	}
	hint := fitting(p.Hints, style.Width)
	rows := height - len(lines)
	if hint != "" && rows > 1 {
		rows--
	} else {
		hint = ""
	}
	findings := p.findings(rows-min(len(p.shown()), rows/2), style)
	lines = append(lines, findings...)
	lines = append(lines, p.checks(now, rows-len(findings), style)...)
	if hint != "" {
		lines = append(lines, hint)
	}
	return lines
}

// bar is the state of the whole: the longest form that fits.
func (p *Progress) bar(now time.Time, style format.Style) string {
	elapsed := duration.HumanDuration(now.Sub(p.Start))
	bound := elapsed
	if p.Limit > 0 {
		bound += " of at most " + duration.HumanDuration(p.Limit)
	}
	target, number, counts := words.Line(p.Target, maxText), "", p.tally(style)
	if len(p.expected) > 0 {
		number = fmt.Sprintf("%d of %d", p.done, len(p.expected))
	}
	for _, form := range [][2][]string{
		{{target}, {number, counts, bound}},
		{{target}, {number, counts, elapsed}},
		{nil, {number, counts, elapsed}},
		{nil, {number, elapsed}},
	} {
		if line, ok := p.form(form[0], form[1], style); ok {
			return line
		}
	}
	return clip(elapsed, style.Width, style)
}

// form joins the parts, with a bar between before and after where checks are expected;
// false if that does not fit.
func (p *Progress) form(before, after []string, style format.Style) (string, bool) {
	const gap, narrowest, widest = "  ", 6, 20
	empty := func(part string) bool { return part == "" }
	parts := slices.DeleteFunc(slices.Concat(before, after), empty)
	space := style.Width - widthOf(strings.Join(parts, gap))
	if len(p.expected) == 0 {
		return strings.Join(parts, gap), space >= 0
	}
	if space -= len(gap); space < narrowest {
		return "", false
	}
	drawn := meter(p.done, len(p.expected), min(space, widest), style)
	return strings.Join(slices.DeleteFunc(slices.Concat(before, []string{drawn}, after), empty), gap), true
}

// meter is a bar of that many columns.
func meter(done, all, columns int, style format.Style) string {
	if !style.Symbols {
		full := (columns - 2) * done / all
		return "[" + strings.Repeat("#", full) + strings.Repeat(".", columns-2-full) + "]"
	}
	full := columns * done / all
	return strings.Repeat("█", full) + strings.Repeat("░", columns-full)
}

// tally is the number of findings by label: passes first.
func (p *Progress) tally(style format.Style) string {
	var parts []string
	for _, each := range []label{labelPass, labelWarn, labelUnknown, labelFail} {
		if p.counts[each] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", sign(each, style), p.counts[each]))
		}
	}
	return strings.Join(parts, "  ")
}

// sign is the symbol of a label in its color, or its word where symbols are not shown.
func sign(of label, style format.Style) string {
	if !style.Symbols {
		return style.Mark(string(of))
	}
	return strings.Replace(style.Mark(string(of)), " "+string(of), "", 1)
}

// states are the numbers of checks with a Job in each state.
func (p *Progress) states() string {
	numbers := map[diagnosis.State]int{}
	for name, status := range p.active {
		if p.expected[name] {
			numbers[status.State]++
		}
	}
	var parts []string
	for _, state := range []diagnosis.State{diagnosis.Running, diagnosis.Waiting, diagnosis.Queued} {
		if numbers[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", numbers[state], state))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// findings are the findings that need attention, the worst first, in at most rows lines.
func (p *Progress) findings(rows int, style format.Style) []string {
	if !p.Findings {
		return nil
	}
	place := func(f finding.Finding) int { return slices.Index(labels(), labelOf(f)) }
	worst := slices.SortedStableFunc(slices.Values(p.notable), func(a, b finding.Finding) int { return cmp.Compare(place(a), place(b)) })
	var lines []string
	for _, f := range worst {
		text := fmt.Sprintf("%s %s  %s", sign(labelOf(f), style), words.Line(f.Name, maxText), words.Line(cmp.Or(f.Message, f.Reason), maxText))
		lines = append(lines, clip(text, style.Width, style))
	}
	return truncate(lines, rows, func(rest int) string {
		return clip(fmt.Sprintf("%sand %d more findings", indent, rest), style.Width, style)
	})
}

// shown are the checks that run or wait, beginning with the ones that delay the run longest. One that
// is queued without a reason waits for another check.
func (p *Progress) shown() []jobs.Status {
	statuses := slices.SortedFunc(maps.Values(p.active), func(a, b jobs.Status) int {
		return cmp.Or(cmp.Compare(order(a.State), order(b.State)), a.Since.Compare(b.Since), cmp.Compare(a.Check, b.Check))
	})
	return slices.DeleteFunc(statuses, func(status jobs.Status) bool { return status.State == diagnosis.Queued && status.Detail == "" })
}

// checks lists the checks that run or wait, in at most rows lines.
func (p *Progress) checks(now time.Time, rows int, style format.Style) []string {
	statuses := p.shown()
	names := nameColumns(statuses, style.Width)
	var lines []string
	for _, status := range statuses {
		name := clip(words.Line(status.Check, maxText), names, style)
		name += strings.Repeat(" ", max(0, names-widthOf(name)))
		age := duration.HumanDuration(max(0, now.Sub(status.Since)))
		lines = append(lines, clip(fmt.Sprintf("%s %s %4s  %s", spinner(now, style), name, age, reason(status)), style.Width, style))
	}
	return truncate(lines, rows, func(rest int) string { return clip(fmt.Sprintf("%sand %d more", indent, rest), style.Width, style) })
}

// reason states why a check waits, or its state.
func reason(status jobs.Status) string {
	switch {
	case status.Detail == "":
		return string(status.State)
	case status.State == diagnosis.Waiting:
		return words.Line(status.Detail, maxText)
	}
	return words.Line(string(status.State)+": "+status.Detail, maxText)
}

// spinner shows that the display is alive.
func spinner(now time.Time, style format.Style) string {
	const interval = 200 * time.Millisecond
	turns := []string{"-", "\\", "|", "/"}
	if style.Symbols {
		turns = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	}
	return turns[now.UnixNano()/int64(interval)%int64(len(turns))]
}

// nameColumns is the width of the names of checks. Where a line does not fit, the name is
// cut before the reason, but not to less than two fifths of the space.
func nameColumns(statuses []jobs.Status, columns int) int {
	const others = len("x  0000  ")
	name, why := 0, 0
	for _, status := range statuses {
		name, why = max(name, widthOf(status.Check)), max(why, widthOf(reason(status)))
	}
	space := max(0, columns-others)
	return min(name, max(space-why, space*2/5))
}

// order sorts the states that delay the run first.
func order(state diagnosis.State) int {
	switch state {
	case diagnosis.Waiting:
		return 0
	case diagnosis.Running:
		return 1
	case diagnosis.Queued:
		return 2
	case diagnosis.Done:
		return 3
	}
	return 4
}

// fitting joins as many of the texts as fit, in their order.
func fitting(texts []string, columns int) string {
	line := ""
	for _, text := range texts {
		longer := strings.TrimPrefix(line+"   "+words.Line(text, maxText), "   ")
		if widthOf(longer) > columns {
			break
		}
		line = longer
	}
	return line
}
