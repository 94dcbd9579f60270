package diff

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
)

// Document is the two verdicts, what the reports are about, then what is new, changed and fixed.
func (c Changes) Document(document.View) document.Document {
	var items document.Items
	for _, change := range c.New {
		items.Entries = append(items.Entries, newItem(change))
	}
	for _, change := range c.Changed {
		items.Entries = append(items.Entries, changedItem(change))
	}
	for _, change := range c.Fixed {
		items.Entries = append(items.Entries, fixedItem(change))
	}
	return document.Document{
		Title: "Changes between two preflights", Source: "The JSON document has all data.", Cluster: c.After.Cluster.ID,
		Blocks: []document.Block{
			c.verdict(), c.sides(), items,
			document.List{Lead: "ADDED", Entries: c.Added, Names: true},
			document.List{Lead: "DROPPED", Entries: c.Dropped, Names: true},
			document.Paragraph{Text: fmt.Sprintf("Verdict: %s before, %s now", c.Before.Verdict.Summary(), c.After.Verdict.Summary())},
		},
	}
}

func (c Changes) verdict() document.Block {
	was, is := c.Before.Verdict.Summary(), c.After.Verdict.Summary()
	if was == is {
		return document.Paragraph{Text: is + ", as before."}
	}
	return document.Paragraph{Text: fmt.Sprintf("%s now, %s before.", is, was)}
}

// sides has the subjects of the two reports.
func (c Changes) sides() document.Table {
	before, after := c.Before, c.After
	table := document.Table{Title: "What is compared"}
	table.Row("Before", ran(before))
	table.Row("Now", ran(after))
	if before.Target.Image != after.Target.Image {
		table.Row("Releases", before.Target.Image+" before,\n"+after.Target.Image+" now")
	}
	if before.Cluster.ID != after.Cluster.ID {
		table.Row("Clusters", fmt.Sprintf("these are runs on two clusters: %s before, %s now", before.Cluster.ID, after.Cluster.ID))
	}
	table.Row("Checks", fmt.Sprintf("%d of %d reported before, %d of %d now",
		before.Expected.Reported, before.Expected.Checks, after.Expected.Reported, after.Expected.Checks))
	table.Row("Findings", fmt.Sprintf("%d new, %d changed, %d fixed, %d the same", len(c.New), len(c.Changed), len(c.Fixed), c.Same))
	return table
}

func ran(side Side) string {
	phase := side.Run.Phase + " at " + side.Run.CompletionTime
	if side.Run.Phase == report.PhaseRunning {
		phase = side.Run.Phase + " since " + side.Run.StartTime
	}
	of := ""
	if side.Run.ID != "" { // that of an archive is not recorded
		of = " of run " + side.Run.ID
	}
	return fmt.Sprintf("%s%s, from %s to %s, %s", side.Verdict.Summary(), of,
		cmp.Or(side.Cluster.Version, "an unknown version"), cmp.Or(side.Target.Version, "an unknown version"), phase)
}

// itemOf is a finding as it is now, with the word for its change.
func itemOf(f finding.Finding, word, state string) document.Item {
	item := findingview.Item(f)
	item.Group, item.Mark.Word, item.State = strings.ToUpper(word[:1])+word[1:], strings.ToUpper(word), state
	return item
}

func newItem(change Change) document.Item {
	state := "is " + findingview.Outcome(*change.After)
	if change.Before != nil {
		state += ", was " + findingview.Outcome(*change.Before)
	}
	return itemOf(*change.After, "new", state)
}

func changedItem(change Change) document.Item {
	was, is := findingview.Outcome(*change.Before), findingview.Outcome(*change.After)
	state := "is " + is + " as before"
	if was != is {
		state = "is " + is + ", was " + was
	}
	item := itemOf(*change.After, "changed", state)
	if before := strings.TrimSpace(change.Before.Message); before != strings.TrimSpace(change.After.Message) {
		item.Fact("Before:", before)
	}
	return item
}

func fixedItem(change Change) document.Item {
	is := "is gone"
	if change.After != nil {
		is = "is " + findingview.Outcome(*change.After)
	}
	item := document.Item{Group: "Fixed", Mark: document.Mark{Level: document.Good, Word: "FIXED"}, Names: []string{change.Before.Name}}
	item.State = is + ", was " + findingview.Outcome(*change.Before)
	item.Fact("Before:", change.Before.Message)
	return item
}
