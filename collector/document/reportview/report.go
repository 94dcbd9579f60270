// Package reportview answers: how is a verdict shown to people?
//
// [Report], [Path] and [Targets] are the documents of the values of package report: they list their blocks in
// reading order, and have the JSON of the value. Nothing is decided here.
package reportview

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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

	// After is the command that shows the judgement of the update; empty if unknown.
	After string `json:"-"`
}

// Document lists the decision first, then what to do, the most urgent first, then the facts that the decision
// rests on, and the decision again.
func (r Report) Document(view document.View) document.Document {
	return document.Document{
		Title:  "Update preflight: " + cmp.Or(r.From(), "unknown version") + " to " + cmp.Or(r.Target.Version, "unknown version"),
		Source: sourceOf(r.Run.ToolVersion, cmp.Or(r.Run.ID, "not recorded")), Cluster: r.Cluster.ID, Time: r.evaluated(),
		Blocks: r.blocks(view), Ticket: r.ticket(),
	}
}

// evaluated is when the cluster was read for the displayed state.
func (r Report) evaluated() string {
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

// again says, as a clause, what to do about a verdict that no longer holds.
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
		lead := map[finding.ActionType]string{
			finding.ActionRetry: "Run again:", finding.ActionAccept: "Or accept:",
			finding.ActionAttach: "Attach:",
		}[action.Type]
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
	list := document.List{Lead: fmt.Sprintf("Evaluated again when the cluster runs %s, and not now:", r.From())}
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

// verdict is the decision with the numbers of findings, and what it means where that is not
// the same for every such decision.
func (r Report) verdict(view document.View) document.Verdict {
	word, meaning := decisionOf(r.Report)
	if r.Verdict.Forced && r.Holds() {
		word += " (forced)"
	}
	made := document.Verdict{Subject: r.update() + ": " + r.counts() + r.took()}
	made.Level, made.Word = r.level(), cmp.Or(word, r.Run.Phase)
	plain := r.Verdict.Decision == verdict.Ready || r.Verdict.Decision == verdict.Blocked
	if !view.Brief || !plain || !r.Holds() || r.Run.Phase == report.PhaseRunning || remarks(r.Report) != "" {
		made.Meaning = strings.ToUpper(meaning[:1]) + meaning[1:]
	}
	return made
}

func (r Report) headline() string {
	word, meaning := decisionOf(r.Report)
	if word == "" {
		return strings.ToUpper(meaning[:1]) + meaning[1:]
	}
	return word + ": " + meaning
}

// decisionOf is the word for the decision, and what it means. A run in progress has no
// word unless a finding blocks.
func decisionOf(r report.Report) (word, meaning string) {
	target := cmp.Or(r.Target.Version, "the release")
	switch {
	case r.Run.Phase == report.PhaseRunning && r.Verdict.Decision == verdict.Blocked:
		return "Blocked so far", fmt.Sprintf("do not update this cluster to %s yet. The run has not ended.", target)
	case r.Run.Phase == report.PhaseRunning:
		return "", fmt.Sprintf("no verdict yet on the update to %s: the run has not ended.", target)
	case !r.Holds() && Report{Report: r}.updated():
		return "Outdated", fmt.Sprintf("the verdict on the update to %s was %s, and ended with the update.", target, r.Verdict.Summary())
	case !r.Holds():
		return "Outdated", fmt.Sprintf("the verdict on the update to %s was %s, and no longer holds.", target, r.Verdict.Summary())
	}
	text := map[verdict.Decision]string{
		verdict.Ready:        fmt.Sprintf("this cluster can be updated to %s.", target),
		verdict.NothingKnown: fmt.Sprintf("nothing that can be evaluated in advance blocks the update to %s.", target),
		verdict.Blocked:      fmt.Sprintf("do not update this cluster to %s yet.", target),
		verdict.Undecided:    fmt.Sprintf("the update to %s could not be evaluated completely.", target),
	}[r.Verdict.Decision]
	word = string(r.Verdict.Decision)
	if isNarrowed(r.Verdict) || lacking(r) != "" {
		word = "Ready for what was asked"
	}
	return word, cmp.Or(text, "this version does not know the decision.") + remarks(r)
}

// isNarrowed reports whether a verdict is Ready only for what was asked, and the request left something out.
func isNarrowed(v verdict.Verdict) bool { return v.Decision == verdict.Ready && len(v.Narrowed) > 0 }

// leftOut is a sentence on what the request left out of a Ready verdict; empty for nothing.
func leftOut(v verdict.Verdict) string {
	const most = 5
	if !isNarrowed(v) {
		return ""
	}
	return fmt.Sprintf(" Left out by the request: %s.", words.External(words.List(v.Narrowed, most)))
}

// lacking states what is asked and a stored Ready does not cover, beside what its request left out; empty for nothing.
func lacking(r report.Report) string {
	if r.Standing == nil || r.Verdict.Decision != verdict.Ready {
		return ""
	}
	leftOut := r.Verdict.LeavesOut()
	return words.Clauses(slices.DeleteFunc(slices.Clone(r.Standing.Lacks), func(lack string) bool { return slices.Contains(leftOut, lack) }),
		mostClauses)
}

const mostClauses = 5

// sentence is a clause about the run as a sentence that follows another; empty for none.
func sentence(clause string) string {
	if clause == "" {
		return ""
	}
	return " " + strings.ToUpper(clause[:1]) + clause[1:] + "."
}

func summary(v verdict.Verdict) string {
	if isNarrowed(v) {
		return v.Summary() + ", narrowed"
	}
	return v.Summary()
}

func remarks(r report.Report) string {
	text := ""
	if r.Verdict.Provisional {
		text += fmt.Sprintf(" Provisional: evaluated for %s.", r.Cluster.Version)
	}
	text += forced(r.Verdict)
	text += leftOut(r.Verdict) + sentence(lacking(r))
	if r.Standing != nil {
		text += sentence(words.Clauses(r.Standing.Remarks, mostClauses))
	}
	switch {
	case r.Run.Detached:
		text += " The checks continue in the cluster: attach to the run."
	case r.Run.Phase == report.PhaseInterrupted:
		text += " The run was interrupted."
	case r.Run.Phase == report.PhaseCanceled:
		text += " The run was canceled."
	}
	return text
}

// forced states that force was requested, by whom and why, as a sentence that follows another; empty without
// force. Documents of earlier versions have no reason and no user.
func forced(v verdict.Verdict) string {
	if !v.Forced {
		return ""
	}
	text := " FORCED by " + cmp.Or(words.External(v.ForcedBy), "request")
	if reason := words.External(v.ForceReason); reason != "" {
		text += ": " + strings.TrimSuffix(reason, ".")
	}
	return text + "."
}

// standing is the decision about one update, if it is current.
func (r Report) standing() string {
	if !r.Holds() {
		return notHolding(r.Verdict.Decision)
	}
	return summary(r.Verdict)
}

func notHolding(decision verdict.Decision) string {
	return fmt.Sprintf("none that holds (it was %s)", decision)
}

func (r Report) update() string {
	return cmp.Or(r.From(), "?") + " → " + cmp.Or(r.Target.Version, "the release")
}

// took is how long the run took; empty where that is unknown.
func (r Report) took() string {
	start, end, ok := period(r.Run.StartTime, r.Run.CompletionTime)
	const longest = 7 * 24 * time.Hour // a longer run has a wrong clock
	took := end.Sub(start).Round(time.Second)
	if !ok || took > longest {
		return ""
	}
	return fmt.Sprintf(" (%s)", took)
}

// Short is the verdict in one self-contained line, with the judgement after the update.
func (r Report) Short() string {
	const most = 2
	text := "Verdict: " + summary(r.Verdict)
	switch {
	case r.Run.Phase == report.PhaseRunning:
		text = "Verdict so far: " + string(r.Verdict.Decision)
	case !r.Holds():
		text = "Verdict: " + notHolding(r.Verdict.Decision)
	}
	text += ", " + r.update()
	if r.Run.ID != "" {
		text += ", run " + r.Run.ID[:min(shortID, len(r.Run.ID))]
	}
	if r.AfterUpdate != nil {
		text += ", " + r.AfterUpdate.Decision + " after the update"
	}
	var open []string
	for _, f := range r.Findings {
		if f.Open() && !slices.Contains(open, f.Name) {
			open = append(open, f.Name)
		}
	}
	switch {
	case r.updated():
	case !r.Holds():
		text += ": " + r.again()
	case r.Run.Detached:
		text += ": attach to the run"
	case len(open) > 0:
		text += ": fix " + words.List(open, most)
	}
	return text
}

// shortID is the length of the first group of a UUID.
const shortID = 8
