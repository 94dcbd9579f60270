// Package reportview answers: how is a verdict shown to people?
//
// [Report], [Path] and [Targets] are the documents of the values of package report: they state
// of which blocks they consist, in the order in which they are read, and their JSON is that of
// the value. Nothing is decided here.
package reportview

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
)

// Report is the document of a report.
type Report struct {
	report.Report

	// After is the command that shows the judgement of the update; empty where it is not known.
	After string `json:"-"`
}

// Document is the decision first, then what is to be done, the most urgent first, the facts
// that the decision rests on, and the decision again.
func (r Report) Document(view document.View) document.Document {
	return document.Document{
		Title:  "Update preflight: " + cmp.Or(r.From(), "unknown version") + " to " + cmp.Or(r.Target.Version, "unknown version"),
		Source: sourceOf(r.Run.ToolVersion, cmp.Or(r.Run.ID, "not recorded")), Cluster: r.Cluster.ID, Time: r.judged(),
		Blocks: r.blocks(view), Ticket: r.ticket(),
	}
}

// judged is when the cluster was read for what is shown.
func (r Report) judged() string {
	if r.Standing != nil && r.Standing.Judged != "" {
		return r.Standing.Judged
	}
	return cmp.Or(r.Run.CompletionTime, r.Run.StartTime)
}

// ticket is the verdict for a change ticket. A verdict that does not hold leads to a new run, whatever was found then.
func (r Report) ticket() document.Ticket {
	made := document.Ticket{Verdict: r.Short(), By: by(r.Run.ToolVersion)}
	if r.Verdict.Forced {
		made.By += ", forced by " + cmp.Or(words.External(r.Verdict.ForcedBy), "request")
	}
	next := finding.ActionStart
	if r.Holds() {
		made.Until = r.Verdict.ValidUntil
	} else {
		next, made.Next = finding.ActionRetry, words.Sentence(r.again())
	}
	for _, action := range r.Actions {
		if action.Type == next && action.Command != "" && (r.Permits() || !r.Holds() && !r.updated()) {
			made.Next = "$ " + action.Command
		}
	}
	return made
}

// updated reports whether the update was made after the run, and not undone: a new run would be about another one.
func (r Report) updated() bool {
	return r.AfterUpdate != nil && r.AfterUpdate.Decision != "RolledBack"
}

// again is what to do about a verdict that no longer holds, as a clause.
func (r Report) again() string {
	if r.updated() {
		return strings.TrimSuffix("see what is worse since the update: "+r.After, ": ")
	}
	return "run the preflight again"
}

// by is the program that made a document.
func by(version string) string { return strings.TrimSpace("oc-preflight " + version) }

// sourceOf states where a page comes from.
func sourceOf(version, run string) string {
	return fmt.Sprintf("Written by oc preflight %s. Run: %s. The JSON document of the run has all data.", version, run)
}

func (r Report) blocks(view document.View) []document.Block {
	blocks := []document.Block{r.verdict(view), postponed(r)}
	blocks = append(blocks, document.Items{Lead: r.toDo(), Entries: itemsOf(r.Findings)})
	blocks = append(blocks, quietOf(r.Findings)...)
	for _, action := range r.Actions {
		lead := map[finding.ActionType]string{finding.ActionRetry: "Run again:", finding.ActionAccept: "Or accept:", finding.ActionAttach: "Attach:"}[action.Type]
		if action.Type != finding.ActionStart && (action.Type != finding.ActionRetry || !r.updated()) { // the ticket has the start
			blocks = append(blocks, document.Command{Lead: lead, Text: action.Command, Accepts: action.Type == finding.ActionAccept})
		}
	}
	blocks = append(blocks, r.facts(view))
	if view.Full {
		blocks = append(blocks, timeline(r.Findings)...)
	}
	return blocks
}

// toDo introduces what is open.
func (r Report) toDo() string {
	switch {
	case r.Run.Detached:
		return "Not decided yet; attach to the run:"
	case r.updated():
		return ""
	}
	return "Fix these, then run the preflight again:"
}

// postponed are the checks of a later update that were not evaluated, by reason.
func postponed(r Report) document.List {
	list := document.List{Lead: fmt.Sprintf("Asked again when the cluster runs %s, and not evaluated now:", r.From())}
	var reasons []string
	names := map[string][]string{}
	for _, each := range r.AskedAgain {
		if names[each.Reason] == nil {
			reasons = append(reasons, each.Reason)
		}
		names[each.Reason] = append(names[each.Reason], each.Name)
	}
	for _, reason := range reasons {
		list.Entries = append(list.Entries, fmt.Sprintf("%s (%s)", strings.Join(names[reason], ", "), reason))
	}
	return list
}

// Names is preflight/ID. A report that was not recorded has no name.
func (r Report) Names() ([]string, error) {
	if r.Run.ID == "" {
		return nil, errors.New("the report has no name: its run is not recorded")
	}
	return []string{format.RunName + "/" + r.Run.ID}, nil
}

func (r Report) level() document.Level {
	if !r.Holds() || r.Run.Phase == report.PhaseRunning && r.Verdict.Decision != verdict.Blocked {
		return document.Unclear
	}
	if isNarrowed(r.Verdict) {
		return document.Caution
	}
	return levelOf(r.Verdict.Decision)
}

func levelOf(decision verdict.Decision) document.Level {
	switch decision {
	case verdict.Ready:
		return document.Good
	case verdict.Blocked:
		return document.Bad
	case verdict.NothingKnown:
		return document.Caution
	case verdict.Undecided:
	}
	return document.Unclear
}
