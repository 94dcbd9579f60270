// Package tableview answers: how is the table of a fleet shown to people?
//
// [Table] returns the document: the decision in one sentence, the clusters, and the causes with the clusters that they
// block. On a page the clusters come first, in a text the causes.
package tableview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/document/junit"
	"github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/fleet"
)

// Table is the document of a table.
type Table struct{ fleet.Table }

const (
	// mostGroups and mostRows limit the lists by default, and briefGroups and briefRows in a brief view.
	mostGroups, mostRows, briefGroups, briefRows = 20, 50, 2, 5
	// mostNames and mostCauses are how many names of clusters and causes a line has.
	mostNames, mostCauses = 8, 3
	// widestName and widestWhy bound the cells of the table of clusters, in bytes and characters. The other formats
	// have them as a whole.
	widestName, widestWhy = 100, 300
)

// Document is the document of the table.
func (t Table) Document(view document.View) document.Document {
	made := document.Document{
		Title:  "The clusters of a fleet before the update" + t.toTarget(),
		Source: fmt.Sprintf("Written by oc preflight %s at %s. The JSON document has all data.", t.ToolVersion, t.Time),
		Ticket: document.Ticket{Verdict: t.Short(), By: "oc-preflight " + t.ToolVersion + " at " + t.Time},
		Blocks: []document.Block{t.verdict(), t.facts(view), t.causes(view), t.clusters(view)},
	}
	if view.Full { // a page is scrolled, and a text is read from its end
		made.Blocks[2], made.Blocks[3] = made.Blocks[3], made.Blocks[2]
	}
	made.Blocks = append(made.Blocks, t.taken())
	if !view.Brief {
		made.Blocks = append(made.Blocks, document.List{Lead: "Notices:", Entries: t.Notices})
	}
	for _, action := range t.Actions {
		made.Blocks = append(made.Blocks, document.Command{Lead: "Next:", Text: action.Command})
	}
	return made
}

// taken is how the updates were in the clusters that took them.
func (t Table) taken() document.List {
	list := document.List{Lead: "The same update in this fleet:"}
	for _, each := range t.Counts.Taken {
		list.Entries = append(list.Entries, each.Sentence())
	}
	return list
}

// Short returns the decision as a self-contained line.
func (t Table) Short() string {
	return "Fleet" + t.toTarget() + ": " + word(t.Decision) + "; " + t.counts()
}

// Names is cluster/NAME for each cluster, the worst first.
func (t Table) Names() ([]string, error) {
	names := make([]string, 0, len(t.Rows))
	for _, row := range t.Rows {
		names = append(names, "cluster/"+row.Cluster.Name)
	}
	return names, nil
}

// Wide is the clusters as a table with all columns and without the causes.
func (t Table) Wide(view document.View) document.Document {
	rows := t.Rows[:view.Entries(len(t.Rows), len(t.Rows))]
	table := document.Table{
		Columns: []string{"Cluster", "Version", "Target", "State", "Causes", "Message", "Observed", "Until", "Source", "ID"}, Result: "State",
		Whole: true, More: len(t.Rows) - len(rows),
	}
	for _, row := range rows {
		table.Rows = append(table.Rows, []string{
			row.Cluster.Name, row.Version, row.Target, string(row.State), strings.Join(causeNames(row), ","), joined(row.Message, judgement(row)),
			row.Observed, row.Until, row.Cluster.Source, row.Cluster.ID,
		})
	}
	return document.Document{Blocks: []document.Block{table}}
}

// toTarget is the target in a sentence; empty where each cluster has its own.
func (t Table) toTarget() string {
	if t.Target == "" {
		return ""
	}
	return " to " + t.Target
}

// word is the decision. What is Clear may have more against it once the checks of the release run.
func word(decision verdict.Decision) string {
	if decision == verdict.NothingKnown {
		return string(fleet.Clear)
	}
	return string(decision)
}

func (t Table) verdict() document.Verdict {
	meaning := map[verdict.Decision]string{
		verdict.Ready: t.evaluated("every cluster may be updated", "each of %s may be updated") + t.toTarget() + ".",
		verdict.NothingKnown: "no gate, risk or health check of " + t.evaluated("any cluster", "%s") + " blocks the update" + t.toTarget() +
			"; the checks of the release were not run.",
		verdict.Blocked:   fmt.Sprintf("do not update %s%s yet.", words.Count(t.Counts.Blocked, "cluster"), t.toTarget()),
		verdict.Undecided: "not every cluster could be evaluated completely.",
	}[t.Decision]
	if t.Counts.Updated > 0 && t.Counts.Updated+t.Counts.NotInstalled == t.Counts.Clusters {
		meaning = "every cluster runs" + strings.TrimPrefix(t.toTarget(), " to") + " already: nothing was evaluated."
	}
	return document.Verdict{Mark: document.Mark{Level: levelOf(t.Decision), Word: word(t.Decision)}, Meaning: meaning}
}

// evaluated names the clusters that were evaluated: all, or how many.
func (t Table) evaluated(all, some string) string {
	if count := t.Counts.Ready + t.Counts.Clear; count < t.Counts.Clusters {
		return fmt.Sprintf(some, words.Count(count, "cluster"))
	}
	return all
}

func levelOf(decision verdict.Decision) document.Level {
	switch decision {
	case verdict.Ready, verdict.NothingKnown:
		return document.Good
	case verdict.Blocked:
		return document.Bad
	case verdict.Undecided:
	}
	return document.Unclear
}

func (t Table) counts() string {
	of := t.Counts
	var parts []string
	for _, each := range []struct {
		count int
		state fleet.State
	}{
		{of.Ready, fleet.Ready},
		{of.Clear, fleet.Clear},
		{of.Blocked, fleet.Blocked},
		{of.Undecided, fleet.Undecided},
		{of.Unreachable, fleet.Unreachable},
		{of.Hibernating, fleet.Hibernating},
		{of.NotInstalled, fleet.NotInstalled},
		{of.Updated, fleet.Updated},
	} {
		if each.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", each.count, each.state))
		}
	}
	return strings.TrimSuffix(words.Count(of.Clusters, "cluster")+": "+strings.Join(parts, ", "), ": ")
}

func (t Table) facts(view document.View) document.Table {
	table := document.Table{Title: "About this fleet"}
	table.Row("Target", t.Target)
	table.Row("Clusters", t.counts())
	if !view.Brief && len(t.Groups) > 0 {
		table.Row("Causes", fmt.Sprintf("%d; first the causes that alone prevent the most clusters from updating", len(t.Groups)))
	}
	return table
}

func (t Table) causes(view document.View) document.Items {
	most := mostGroups
	if view.Brief {
		most = briefGroups
	}
	groups := t.Groups[:view.Entries(len(t.Groups), most)]
	items := document.Items{Lead: "Causes", More: len(t.Groups) - len(groups)}
	for i, group := range groups {
		items.Entries = append(items.Entries, item(i+1, group, view))
	}
	return items
}

func item(number int, group fleet.Group, view document.View) document.Item {
	cause := group.Cause
	made := document.Item{
		Group: "Causes", Number: number, Mark: markOf(cause), Names: []string{cause.Name}, State: "(" + cause.Reason + ")",
		Counts: true, Message: cause.Message, Remedy: cause.Remediation,
	}
	findingview.AddCommands(&made, cause.Actions)
	most := mostNames
	if view.Full {
		most = len(group.Clusters)
	}
	made.Facts = []document.Fact{
		{Lead: "Clusters:", Text: strconv.Itoa(len(group.Clusters)) + ": " + words.List(group.Clusters, most), Brief: true},
		{Lead: "Frees:", Text: frees(group), Brief: true},
	}
	return made
}

// frees states which clusters the remedy of the cause alone frees.
func frees(group fleet.Group) string {
	switch {
	case group.Frees == 0 && group.Cause.Name == fleet.CauseUnread:
		return "unknown: clusters that were not read may have other causes"
	case group.Frees == 0 && len(group.Cause.Repeats) > 0:
		return "no cluster: it repeats " + words.List(group.Cause.Repeats, mostCauses) + ", and ends with that"
	case group.Frees == 0:
		return "no cluster alone: each has other causes as well"
	}
	return words.Count(group.Frees, "cluster") + ", of which it is the only cause"
}

func markOf(cause fleet.Cause) document.Mark {
	return findingview.Mark(finding.Finding{Finding: preflight.Finding{Outcome: cause.Outcome}, Blocks: true})
}

func (t Table) clusters(view document.View) document.Table {
	most := mostRows
	if view.Brief {
		most = briefRows
	}
	rows := t.Rows[:view.Entries(len(t.Rows), most)]
	table := document.Table{
		Title: "Clusters", Columns: []string{"Cluster", "Version", "Target", "State", "Why"}, Result: "State",
		More: len(t.Rows) - len(rows),
	}
	for _, row := range rows {
		table.Rows = append(table.Rows, []string{
			words.Cut(row.Cluster.Name, widestName), cmp.Or(row.Version, "?"), row.Target, string(row.State),
			shortened(why(row)),
		})
	}
	return table
}

func shortened(why string) string {
	if kept := text.Beginning(why, widestWhy); kept != why {
		return kept + "… (-o json)"
	}
	return why
}

func why(row fleet.Row) string {
	text := strings.Join(causeNames(row)[:min(len(row.Causes), mostCauses)], ", ")
	if more := len(row.Causes) - mostCauses; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if row.State == fleet.Unreachable && row.Message != "" {
		text = "" // the message belongs to the cause
	}
	return joined(text, row.Message, judgement(row), row.Evidence)
}

// joined are the texts that are not empty, as clauses.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

// judgement is whether the update of the cluster was good, as a clause; empty where that is not stated.
func judgement(row fleet.Row) string {
	if row.Update == nil || row.Update.Judgement == nil {
		return ""
	}
	judged := *row.Update.Judgement
	lead := map[metav1.ConditionStatus]string{
		metav1.ConditionTrue: "the update was good", metav1.ConditionFalse: "the update was not good",
		metav1.ConditionUnknown: "it is unknown whether the update was good",
	}[metav1.ConditionStatus(judged.Status)]
	if lead == "" || judged.Status == string(metav1.ConditionTrue) || judged.Message == "" {
		return lead
	}
	return lead + ": " + judged.Message
}

func causeNames(row fleet.Row) []string {
	names := make([]string, 0, len(row.Causes))
	for _, cause := range row.Causes {
		names = append(names, cause.Name)
	}
	return names
}

// JUnit contains a test case for each cluster, and one for the decision about all, so that a fleet without clusters
// does not pass.
func (t Table) JUnit() junit.Results {
	made := junit.Results{Time: t.Time, Properties: []junit.Property{
		{Name: "to", Value: t.Target},
		{Name: "decision", Value: word(t.Decision)},
	}}
	for _, row := range t.Rows {
		made.Cases = append(made.Cases, junit.Case{
			Suite: "clusters", Class: "preflight.fleet", Name: row.Cluster.Name, Outcome: outcomeOf(row.State),
			Type: string(row.State), Message: why(row), Text: textOf(row),
		})
	}
	outcome := map[verdict.Decision]preflight.Outcome{
		verdict.Ready: preflight.Warn, verdict.NothingKnown: preflight.Warn,
		verdict.Undecided: preflight.Unknown,
	}[t.Decision]
	if outcome == "" {
		outcome = preflight.Fail
	}
	return junit.Results{Time: made.Time, Properties: made.Properties, Cases: append(made.Cases, junit.Case{
		Suite: "verdict", Class: "preflight", Name: "preflight.Fleet", Outcome: outcome, Type: word(t.Decision), Message: t.Short(),
		Text: t.Short(),
	})}
}

func outcomeOf(state fleet.State) preflight.Outcome {
	switch state {
	case fleet.Ready, fleet.Clear:
		return preflight.Pass
	case fleet.Blocked:
		return preflight.Fail
	case fleet.NotInstalled, fleet.Updated:
		return preflight.Skipped
	case fleet.Undecided, fleet.Unreachable, fleet.Hibernating:
	}
	return preflight.Unknown
}

func textOf(row fleet.Row) string {
	var text strings.Builder
	for _, each := range []string{row.Message, judgement(row), row.Evidence} {
		if each != "" {
			text.WriteString(each + "\n")
		}
	}
	for _, cause := range row.Causes {
		text.WriteString(cause.Name + " (" + cause.Reason + "): " + cause.Message + "\n")
		if cause.Remediation != "" {
			text.WriteString(cause.Remediation + "\n")
		}
		for _, action := range cause.Actions {
			if action.Command != "" {
				text.WriteString("$ " + action.Command + "\n")
			} else if action.Sentence != "" {
				text.WriteString(action.Sentence + "\n")
			}
		}
	}
	return text.String()
}
