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
)

// Report is the document of a report.
type Report struct{ report.Report }

// Document is the decision first, then what is to be done, the most urgent first, the facts
// that the decision rests on, and the decision again.
func (r Report) Document(view document.View) document.Document {
	return document.Document{
		Title:  "Update preflight: " + cmp.Or(r.From(), "unknown version") + " to " + cmp.Or(r.Target.Version, "unknown version"),
		Source: sourceOf(r.Run.ToolVersion, cmp.Or(r.Run.ID, "not recorded")), Cluster: r.Cluster.ID,
		Blocks: r.blocks(view),
	}
}

// sourceOf states where a page comes from.
func sourceOf(version, run string) string {
	return fmt.Sprintf("Written by oc preflight %s. Run: %s. The JSON document of the run has all data.", version, run)
}

func (r Report) blocks(view document.View) []document.Block {
	blocks := []document.Block{r.verdict(view), postponed(r)}
	blocks = append(blocks, document.Items{Lead: r.toDo(), Entries: itemsOf(r.Findings)})
	blocks = append(blocks, quietOf(r.Findings)...)
	var starts []document.Block
	for _, action := range r.Actions {
		if action.Type == finding.ActionStart {
			if r.Permits() {
				starts = append(starts, document.Command{Lead: "Next:", Text: action.Command})
			}
			continue
		}
		lead := map[finding.ActionType]string{finding.ActionRetry: "Run again:", finding.ActionAccept: "Or accept:", finding.ActionAttach: "Attach:"}[action.Type]
		blocks = append(blocks, document.Command{Lead: lead, Text: action.Command})
	}
	blocks = append(blocks, r.facts(view))
	if view.Full {
		blocks = append(blocks, timeline(r.Findings)...)
	}
	return append(append(blocks, document.Conclusion{Text: r.Short()}), starts...)
}

// toDo introduces what is open.
func (r Report) toDo() string {
	if r.Run.Detached {
		return "Not decided yet; attach to the run:"
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
