package diff

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	page "github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/report"
)

// WriteText writes the changes as text.
func (c Changes) WriteText(w io.Writer) error {
	var p page.Page
	writeSides(&p, c)
	for _, change := range c.New {
		writeNew(&p, change)
	}
	for _, change := range c.Changed {
		writeChanged(&p, change)
	}
	for _, change := range c.Fixed {
		writeFixed(&p, change)
	}
	if len(c.Added) > 0 {
		p.Names("ADDED", c.Added)
	}
	if len(c.Dropped) > 0 {
		p.Names("DROPPED", c.Dropped)
	}
	p.Line("Verdict: %s before, %s now", c.Before.Verdict.Summary(), c.After.Verdict.Summary())
	_, err := p.WriteTo(w)
	return err
}

func writeSides(p *page.Page, changes Changes) {
	before, after := changes.Before, changes.After
	if was, is := before.Verdict.Summary(), after.Verdict.Summary(); was == is {
		p.Line("%s, as before.\n", is)
	} else {
		p.Line("%s now, %s before.\n", is, was)
	}
	p.Row("Before", ran(before))
	p.Row("Now", ran(after))
	if before.Target.Image != after.Target.Image {
		p.Row("Releases", before.Target.Image+" before,\n"+after.Target.Image+" now")
	}
	if before.Cluster.ID != after.Cluster.ID {
		p.Row("Clusters", fmt.Sprintf("these are runs on two clusters: %s before, %s now", before.Cluster.ID, after.Cluster.ID))
	}
	p.Row("Checks", fmt.Sprintf("%d of %d reported before, %d of %d now",
		before.Expected.Reported, before.Expected.Checks, after.Expected.Reported, after.Expected.Checks))
	p.Row("Findings", fmt.Sprintf("%d new, %d changed, %d fixed, %d the same", len(changes.New), len(changes.Changed), len(changes.Fixed), changes.Same))
	p.Line("")
}

// ran describes a run and how it ended.
func ran(side Side) string {
	phase := side.Run.Phase + " at " + side.Run.CompletionTime
	if side.Run.Phase == report.PhaseRunning {
		phase = side.Run.Phase + " since " + side.Run.StartTime
	}
	return fmt.Sprintf("%s of run %s, from %s to %s, %s", side.Verdict.Summary(), side.Run.ID,
		cmp.Or(side.Cluster.Version, "an unknown version"), cmp.Or(side.Target.Version, "an unknown version"), phase)
}

func writeNew(p *page.Page, change Change) {
	was := ""
	if change.Before != nil {
		was = ", was " + page.Outcome(*change.Before)
	}
	p.Line("%-8s %s: %s%s", "NEW", change.After.Name, page.Outcome(*change.After), was)
	p.Details(*change.After)
	p.Line("")
}

func writeChanged(p *page.Page, change Change) {
	was, is := page.Outcome(*change.Before), page.Outcome(*change.After)
	if was == is {
		p.Line("%-8s %s: %s as before", "CHANGED", change.After.Name, is)
	} else {
		p.Line("%-8s %s: %s, was %s", "CHANGED", change.After.Name, is, was)
	}
	if strings.TrimSpace(change.Before.Message) != strings.TrimSpace(change.After.Message) {
		p.Paragraph("Before: ", change.Before.Message)
		p.Paragraph("Now:    ", change.After.Message)
		after := *change.After
		after.Message = ""
		p.Details(after)
	} else {
		p.Details(*change.After)
	}
	p.Line("")
}

func writeFixed(p *page.Page, change Change) {
	is := "is gone"
	if change.After != nil {
		is = page.Outcome(*change.After)
	}
	p.Line("%-8s %s: %s, was %s", "FIXED", change.Before.Name, is, page.Outcome(*change.Before))
	p.Paragraph("Before: ", change.Before.Message)
	p.Line("")
}
