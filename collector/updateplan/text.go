package updateplan

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/openshift/update-preflight/collector/finding"
	page "github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	// width is that of the text, in characters.
	width = 80
	// maxName and maxText bound a name and a text from the graph, in bytes.
	maxName = 64
	maxText = 4 << 10
)

// WriteText writes the plan as text: its decision, a drawing of the path, then each
// update.
func (p Plan) WriteText(w io.Writer) error {
	var text page.Page
	text.Line("%s\n", page.Fold(p.headline(), "", width))
	p.writeComparison(&text)
	if len(p.Updates) > 0 {
		p.draw(&text)
		p.writeAlternatives(&text)
		p.writeDuration(&text)
		for i, each := range p.Updates {
			each.write(&text, i+1)
		}
	}
	writeList(&text, "Not part of this plan:", p.Missing)
	writeList(&text, "Notices:", p.Notices)
	_, err := text.WriteTo(w)
	return err
}

func (p Plan) headline() string {
	from, to := name(p.From), name(p.To)
	path := fmt.Sprintf("%s from %s to %s", count(len(p.Updates), "update"), from, to)
	switch {
	case p.NoPath != nil:
		return fmt.Sprintf("NoPath: %s. %s", words.Line(p.NoPath.Message, maxText), words.Line(p.NoPath.Remedy, maxText))
	case len(p.Updates) == 0:
		return "Complete: the cluster has " + to + "."
	case p.Decision == Clear:
		return "Clear: " + path + ", without open risks."
	case p.Decision == OpenRisks:
		return fmt.Sprintf("OpenRisks: %s, with %s; no path has fewer.", path, count(p.openRisks(), "open risk"))
	}
	return fmt.Sprintf("Inconclusive: %s, with %s, and it is unknown whether they apply.", path, count(p.openRisks(), "open risk"))
}

func (p Plan) openRisks() int {
	open := 0
	for _, each := range p.Updates {
		open += each.open()
	}
	return open
}

func (u Update) open() int {
	open := 0
	for _, risk := range u.Risks {
		if risk.Open {
			open++
		}
	}
	return open
}

func (p Plan) writeComparison(text *page.Page) {
	title, changes := p.compared()
	if title != "" && len(changes) == 0 {
		text.Line("%s\n", title)
	}
	writeList(text, title, changes)
}

// compared is what became of the stored plan, and its changes; empty without one.
func (p Plan) compared() (title string, changes []string) {
	switch {
	case p.Comparison == nil:
		return "", nil
	case p.Comparison.Holds:
		return fmt.Sprintf("The stored plan of %s still holds.", words.Line(p.Comparison.Time, maxName)), nil
	}
	for _, each := range p.Comparison.Changes {
		changes = append(changes, fmt.Sprintf("%s (%s)", each.Message, each.Reason))
	}
	return fmt.Sprintf("The stored plan of %s no longer holds:", words.Line(p.Comparison.Time, maxName)), changes
}

// draw draws the path from top to bottom. A column of # beside it is a pool that is
// paused.
func (p Plan) draw(text *page.Page) {
	paused := slices.DeleteFunc(slices.Clone(p.Pools), func(pool Pool) bool { return len(pool.Unpause) == 0 })
	for _, each := range p.Updates {
		text.Line("  %s  %s%s", bars(paused, unpausedAt(each.From)), name(each.From), unpausing(each.Unpause))
		bar := bars(paused, never)
		text.Line("  %s   |  %s, channel %s, %s", bar, each.Kind, name(each.Channel), each.ControlPlane)
		for _, risk := range each.Risks {
			text.Line("  %s   |  %s %s", bar, risk.label(), name(risk.Name))
		}
		for _, f := range each.Findings {
			if blocks(f) {
				text.Line("  %s   |  %s %s", bar, page.Label(f), name(f.Name))
			}
		}
		text.Line("  %s   v", bar)
	}
	var last []string
	for _, pool := range paused {
		last = append(last, pool.Name)
	}
	text.Line("  %s  %s%s\n", bars(paused, unpausedAt(p.To)), name(p.To), unpausing(last))
	for i, pool := range paused {
		text.Line("%s", page.Fold(pool.pausing(i+1), "", width))
	}
	if len(paused) > 0 {
		text.Line("")
	}
}

// pausing is what to do about a pool with a column in the drawing.
func (p Pool) pausing(column int) string {
	if p.Reboots < p.RebootsUnpaused {
		return fmt.Sprintf("Pause pool %s (column %d of #) before the first update: %s per node instead of %d.",
			name(p.Name), column, count(p.Reboots, "reboot"), p.RebootsUnpaused)
	}
	return fmt.Sprintf("Pool %s (column %d of #) is paused. Unpause it where the drawing requires it.", name(p.Name), column)
}

// unpausedAt is true for a pool that is unpaused at a version.
func unpausedAt(version string) func(Pool) bool {
	return func(pool Pool) bool { return slices.Contains(pool.Unpause, version) }
}

func never(Pool) bool { return false }

// bars has a column for each pool: # unless it is unpaused.
func bars(pools []Pool, unpaused func(Pool) bool) string {
	columns := make([]byte, 0, len(pools))
	for _, pool := range pools {
		if unpaused(pool) {
			columns = append(columns, ' ')
		} else {
			columns = append(columns, '#')
		}
	}
	return string(columns)
}

func unpausing(pools []string) string {
	if len(pools) == 0 {
		return ""
	}
	return "  unpause " + words.List(pools, 3) + " until its nodes are updated"
}

// label is the state of a risk in the drawing.
func (r Risk) label() string {
	switch {
	case r.Accepted != "":
		return "accepted"
	case r.Applies == False:
		return "does not apply"
	case r.Applies == True:
		return "OPEN, applies:"
	}
	return "OPEN, unknown:"
}

func blocks(f finding.Finding) bool {
	return f.Bypass == nil && (f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown)
}

func (p Plan) writeAlternatives(text *page.Page) {
	if len(p.Alternatives) == 0 {
		return
	}
	var rows bytes.Buffer
	table := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PATH\tUPDATES\tOPEN RISKS\tTHROUGH")
	fmt.Fprintf(table, "this plan\t%d\t%d\t%s\n", len(p.Updates), p.openRisks(), through(p.versions()))
	for _, each := range p.Alternatives {
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", each.Name, each.Updates, each.OpenRisks, through(each.Versions))
	}
	_ = table.Flush() // to a buffer
	text.Line("%s", rows.String())
	for _, each := range p.Alternatives {
		writeList(text, "Open risks of "+each.Name+":", each.Risks)
	}
}

// through are the releases of a path between the first and the last one.
func through(versions []string) string {
	if len(versions) < 3 {
		return "-"
	}
	return words.Line(words.List(versions[1:len(versions)-1], 3), maxName)
}

func (p Plan) writeDuration(text *page.Page) {
	text.Row("Duration", "control plane "+p.Duration.ControlPlane.String())
	if len(p.Pools) > 0 {
		text.Row("", "all nodes     "+p.Duration.Total.String()+", if every drain is quick")
	}
	for _, basis := range p.Duration.Basis {
		text.Line("%s", page.Fold(basis, strings.Repeat(" ", 11), width))
	}
	for _, pool := range p.Pools {
		text.Row("Pool", pool.String())
	}
	text.Line("")
	writeList(text, "What prolongs the updates:", p.Duration.ProlongedBy)
}

// String is the size of the pool, and how often its nodes are rebooted.
func (p Pool) String() string {
	state := ""
	if p.Paused {
		state = ", paused at present"
	}
	return fmt.Sprintf("%s: %s, %d at a time, %s each%s", name(p.Name), count(p.Nodes, "node"), p.Parallel, count(p.Reboots, "reboot"), state)
}

// write writes one update with its risks and findings.
func (u Update) write(text *page.Page, number int) {
	text.Line("Update %d: %s to %s%s", number, name(u.From), name(u.To), u.provisional())
	text.Row("Image", strings.Replace(words.Line(u.Image, maxText), "@", "\n@", 1))
	if u.URL != "" {
		text.Row("Errata", words.Line(u.URL, maxText))
	}
	text.Row("Channels", page.Fold(strings.Join(u.Channels, ", "), "", width-11))
	if len(u.Unpause) > 0 {
		text.Row("Unpause", words.List(u.Unpause, 10)+" before this update")
	}
	text.Line("")
	for _, risk := range u.Risks {
		risk.write(text)
	}
	for _, f := range u.Findings {
		if f.Outcome != preflight.Pass && f.Outcome != preflight.Skipped {
			text.Finding(f)
		}
	}
}

func (u Update) provisional() string {
	if u.Provisional {
		return " (provisional: as of the present cluster)"
	}
	return ""
}

func (r Risk) write(text *page.Page) {
	text.Line("%s %s", r.label(), name(r.Name))
	const indent = "         "
	for _, paragraph := range []string{r.Message, r.explanation()} {
		if paragraph != "" {
			text.Line("%s", page.Fold(words.Line(paragraph, maxText), indent, width))
		}
	}
	text.Paragraph("See:  ", words.Line(r.URL, maxText))
	text.Line("")
}

// explanation is by what the risk was accepted or evaluated, or why it is unknown whether
// it applies.
func (r Risk) explanation() string {
	switch {
	case r.Accepted != "":
		return "Accepted: " + r.Accepted
	case r.Applies == Unknown && r.Detail != "":
		return fmt.Sprintf("Unknown (%s): %s", r.Reason, r.Detail)
	case r.EvaluatedBy == CVO:
		return "Evaluated by CVO (conditionalUpdates of ClusterVersion)."
	case r.EvaluatedBy == Preflight:
		return "Evaluated by this preflight."
	}
	return ""
}

func writeList(text *page.Page, title string, items []string) {
	if len(items) == 0 {
		return
	}
	text.Line("%s", title)
	for _, item := range items {
		folded := page.Fold(words.Line(item, maxText), "  ", width)
		text.Line("- %s", strings.TrimPrefix(folded, "  "))
	}
	text.Line("")
}

func name(text string) string { return words.Line(text, maxName) }

func count(number int, noun string) string {
	if number == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", number, noun)
}
