// Package afterview answers: how is the judgement of an update shown to people?
//
// [Report] is its document, with the JSON of its fields.
package afterview

import (
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

// entries is the default limit of lists.
const entries = 20

// Report is the document of a judgement.
type Report struct {
	afterupdate.Report

	// Next is the next step, with its command; empty for none.
	Next string `json:"-"`
}

// Document has the decision, what is worse than before the update, then what is left out.
func (r Report) Document(view document.View) document.Document {
	blocks := []document.Block{
		document.Verdict{Mark: mark(r.Decision), Meaning: r.Message + "."},
		r.facts(view),
		items(r.Regressions, r.Counts.Regressions, document.Mark{Level: document.Bad, Word: "WORSE"}, view),
		items(r.Pending, r.Counts.Pending, document.Mark{Level: document.Unclear, Word: "PENDING"}, view),
		items(r.Unattributed, r.Counts.Unattributed, document.Mark{Level: document.Unclear, Word: "BAD"}, view),
		list("Bad before and after:", lines(r.Unchanged), view),
		list("Bad, and changed or created by their owners since the baseline:", lines(r.Excused), view),
		document.List{Lead: "To be known:", Entries: r.Notices},
		document.List{Lead: "Not read:", Entries: r.Unread},
	}
	if r.Decision == afterupdate.Good || view.Full {
		blocks = append(blocks, document.List{Lead: "Not covered, since no object shows it:", Entries: r.NotCovered})
	}
	if r.Next != "" {
		blocks = append(blocks, document.Paragraph{Text: r.Next})
	}
	return document.Document{Title: "After the update", Source: "The JSON document has all data.", Cluster: r.Cluster.ID, Blocks: blocks}
}

// Wide is the document with all entries of its lists.
func (r Report) Wide(document.View) document.Document { return r.Document(document.View{Full: true}) }

func mark(decision afterupdate.Decision) document.Mark {
	level := document.Unclear
	switch decision {
	case afterupdate.Good:
		level = document.Good
	case afterupdate.Regressed, afterupdate.RolledBack:
		level = document.Bad
	case afterupdate.Settling, afterupdate.Unfinished, afterupdate.Undecided:
	}
	return document.Mark{Level: level, Word: string(decision)}
}

func (r Report) facts(view document.View) document.Block {
	table := document.Table{}
	add := func(name, value string) {
		if value != "" {
			table.Rows = append(table.Rows, []string{name, value})
		}
	}
	add("Update", r.Update.From+" to "+r.Update.To+instead(r.Update.Retargeted))
	add("Started", r.Update.StartTime)
	add("Completed", r.Update.CompletionTime)
	add("Settled", r.Update.SettledTime)
	if r.Baseline != nil {
		run := ""
		if r.Update.Run != "" {
			run = " by run " + r.Update.Run
		}
		add("Baseline", fmt.Sprintf("%s%s, %s", r.Baseline.Time, run, words.Count(r.Baseline.Objects, "object")))
	}
	if r.Samples.Number > 0 && !view.Brief {
		add("Samples", fmt.Sprintf("%d, from %s to %s", r.Samples.Number, r.Samples.First, r.Samples.Last))
	}
	add("Problems", r.counts())
	return table
}

func instead(retargeted []string) string {
	if len(retargeted) == 0 {
		return ""
	}
	return ", first requested: " + words.List(retargeted, entries)
}

func (r Report) counts() string {
	var counts []string
	for _, each := range []struct {
		number int
		text   string
	}{
		{r.Counts.Regressions, "worse than before"},
		{r.Counts.Pending, "too new to count"},
		{r.Counts.Unattributed, "of unknown origin"},
		{r.Counts.Unchanged, "as before"},
		{r.Counts.Excused, "by their owners"},
	} {
		if each.number > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", each.number, each.text))
		}
	}
	return strings.Join(append(counts, words.Count(r.Counts.Good, "good object")), ", ")
}

// items are the problems that speak against the update.
func items(found []afterupdate.Regression, total int, as document.Mark, view document.View) document.Block {
	shown := view.Entries(len(found), entries)
	made := document.Items{More: total - shown}
	for i, each := range found[:shown] {
		item := document.Item{
			Number: i + 1, Mark: as, Names: []string{each.Name}, State: name(each), Counts: as.Level == document.Bad,
			Message: "Is: " + each.Is + "\nWas: " + each.Was,
		}
		item.Fact("Since", each.Since)
		item.Fact("Follows", each.Step)
		item.Commands = []document.Command{{Text: each.Command}}
		made.Entries = append(made.Entries, item)
	}
	return made
}

func name(of afterupdate.Regression) string {
	if of.Object.Namespace == "" {
		return of.Object.Kind + " " + of.Object.Name
	}
	return of.Object.Kind + " " + of.Object.Namespace + "/" + of.Object.Name
}

func lines(found []afterupdate.Regression) []string {
	var all []string
	for _, each := range found {
		all = append(all, fmt.Sprintf("%s: %s (was %s)", name(each), each.Is, each.Was))
	}
	return all
}

// list is a list of at most as many entries as the view has.
func list(lead string, all []string, view document.View) document.List {
	shown := view.Entries(len(all), entries)
	kept := all[:shown:shown]
	if more := len(all) - shown; more > 0 {
		kept = append(kept, fmt.Sprintf("and %d more", more))
	}
	return document.List{Lead: lead, Entries: kept}
}

// next is what to do where the decision is not final.
