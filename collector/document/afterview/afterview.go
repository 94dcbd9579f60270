// Package afterview answers: how is the judgement of an update shown to people?
//
// [Report] is its document, with the JSON of its fields.
package afterview

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

// entries is the default limit of lists.
const entries = 20

// Report is the document of a judgement.
type Report struct {
	afterupdate.Report

	// Next is the next step, with its command; empty if the worse objects have their own, or there is none.
	Next string `json:"-"`
	// ToolVersion is the version of the program.
	ToolVersion string `json:"-"`
}

// Document lists the decision, the regressions, then the objects that are left out.
func (r Report) Document(view document.View) document.Document {
	blocks := []document.Block{document.Verdict{Mark: mark(r.Decision), Meaning: r.Message + "."}, r.facts(view)}
	number := 0
	for _, each := range []struct {
		found []afterupdate.Regression
		total int
		mark  document.Mark
	}{
		{r.Regressions, r.Counts.Regressions, document.Mark{Level: document.Bad, Word: "WORSE"}},
		{r.Pending, r.Counts.Pending, document.Mark{Level: document.Unclear, Word: "PENDING"}},
		{r.Unattributed, r.Counts.Unattributed, document.Mark{Level: document.Unclear, Word: "BAD"}},
	} {
		shown := view.Entries(len(each.found), entries)
		blocks = append(blocks, r.items(each.found[:shown], number, each.mark, each.total-shown))
		number += shown
	}
	blocks = append(blocks,
		document.List{Most: entries, Lead: "Already failing before the update:", Entries: lines(r.Unchanged)},
		document.List{Most: entries, Lead: "Bad, but not because of the update (changed " +
			"by their owners, or begun later):", Entries: lines(r.Excused)},
		document.List{Lead: "Notes:", Entries: r.Notices},
		document.List{Lead: "Not read:", Entries: r.Unread},
	)
	if r.Decision == afterupdate.Good || view.Full {
		blocks = append(blocks, document.List{Lead: "Not covered, because no object shows it:", Entries: r.NotCovered})
	}
	next := r.Next
	if r.Stored != "" {
		next = "Run \"after\" again when the next update is complete; it is compared with the baseline of " + r.Stored + "."
	}
	return document.Document{
		Title: "After the update", Source: "The JSON document " +
			"has all data.", Cluster: r.Cluster.ID, Time: r.Samples.Last, Blocks: blocks,
		Ticket: document.Ticket{
			Verdict: fmt.Sprintf("After the update from %s to %s: %s: %s.", r.Update.From, r.Update.To, r.Decision, r.Message),
			By:      strings.TrimSpace("oc-preflight " + r.ToolVersion), Next: next,
		},
	}
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
	table.Row("Update", r.Update.From+" to "+r.Update.To+instead(r.Update.Retargeted))
	table.Row("Started", r.Update.StartTime)
	table.Row("Completed", r.Update.CompletionTime)
	table.Row("Settled", r.Update.SettledTime)
	if r.Baseline != nil {
		run := ""
		if r.Update.Run != "" {
			run = " by run " + r.Update.Run
		}
		table.Row("Baseline", fmt.Sprintf("%s%s, %s", r.Baseline.Time, run, words.Count(r.Baseline.Objects, "object")))
	}
	if r.Stored != "" {
		table.Row("Baseline", fmt.Sprintf("%s, of %s, for the next update", r.Stored, r.Update.To))
	}
	if r.Samples.Number > 0 && !view.Brief {
		table.Row("Samples", fmt.Sprintf("%d, from %s to %s", r.Samples.Number, r.Samples.First, r.Samples.Last))
	}
	table.Row("Problems", r.counts())
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
		{r.Counts.Excused, "not because of the update"},
	} {
		if each.number > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", each.number, each.text))
		}
	}
	return strings.Join(append(counts, words.Count(r.Counts.Good, "good object")), ", ")
}

// items are the problems that speak against the update, numbered after those before.
func (r Report) items(found []afterupdate.Regression, before int, as document.Mark, more int) document.Block {
	made := document.Items{More: more}
	for i, each := range found {
		item := document.Item{
			Number: before + i + 1, Mark: as, Names: []string{each.Name}, State: name(each.Object), Counts: as.Level == document.Bad,
			Message: "Is: " + each.Is + "\nWas: " + each.Was, Commands: []document.Command{{Text: each.Command}},
		}
		for _, follows := range each.Follows {
			item.Facts = append(item.Facts, document.Fact{Lead: "Also:", Text: name(follows.Object) + ": " + follows.Is, Brief: true})
		}
		if each.Unlisted > 0 {
			item.Fact("Also:", words.Count(each.Unlisted, "more problem"))
		}
		item.Fact("Since", each.Since)
		item.Fact("Counts", r.counted(each.CountsTime))
		item.Fact("Coincides with", each.Step)
		made.Entries = append(made.Entries, item)
	}
	return made
}

// counted is when a problem counts, from the last sample on; empty where that is not known.
func (r Report) counted(at string) string {
	counts, err := time.Parse(time.RFC3339, at)
	last, wrong := time.Parse(time.RFC3339, r.Samples.Last)
	if err != nil || wrong != nil {
		return ""
	}
	return "in " + words.Count(int64(math.Ceil(counts.Sub(last).Minutes())), "minute") + ", if it lasts"
}

func name(of finding.Object) string {
	return of.Kind + " " + strings.TrimPrefix(of.Namespace+"/"+of.Name, "/")
}

func lines(found []afterupdate.Regression) []string {
	var all []string
	for _, each := range found {
		clauses := []string{fmt.Sprintf("%s: %s (was %s)", name(each.Object), each.Is, each.Was)}
		for _, follows := range each.Follows {
			clauses = append(clauses, "also "+name(follows.Object)+": "+follows.Is)
		}
		if each.Unlisted > 0 {
			clauses = append(clauses, "and "+words.Count(each.Unlisted, "more problem"))
		}
		all = append(all, strings.Join(clauses, "; "))
	}
	return all
}
