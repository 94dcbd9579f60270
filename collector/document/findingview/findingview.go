// Package findingview answers: how is a finding shown to people?
//
// [Item] is a finding as an entry of a document, with its [Mark] and everything about it.
package findingview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The labels of findings that are bypassed.
const (
	Acknowledged = "acked"
	Accepted     = "accepted"
)

// Label is the outcome of a finding, or how it was bypassed.
func Label(f finding.Finding) string {
	if f.Bypass == nil {
		return strings.ToUpper(string(f.Outcome))
	}
	if f.Bypass.By == finding.ByAdminAck {
		return Acknowledged
	}
	return Accepted
}

// Mark is the label of a finding with its level.
func Mark(f finding.Finding) document.Mark {
	return document.Mark{Level: level(f), Word: Label(f)}
}

func level(f finding.Finding) document.Level {
	switch {
	case f.Bypass != nil:
		return document.Neutral
	case f.Outcome == preflight.Fail && f.Blocks:
		return document.Bad
	case f.Outcome == preflight.Unknown:
		return document.Unclear
	case f.Outcome == preflight.Warn, f.Outcome == preflight.Fail:
		return document.Caution
	case f.Outcome == preflight.Pass:
		return document.Good
	}
	return document.Neutral
}

// state is the reason of a finding, and what its label does not lead one to expect.
func state(f finding.Finding) string {
	text := "(" + f.Reason + ")"
	switch {
	case f.Bypass != nil && f.Bypass.Detail != "":
		text += ": " + f.Bypass.Detail
	case f.Outcome == preflight.Fail && !f.Blocks:
		text += ": does not block this update"
	}
	return text
}

// Outcome is how a finding ended, on one line.
func Outcome(f finding.Finding) string { return Label(f) + " " + state(f) }

// Findings are the document of findings alone.
type Findings []finding.Finding

// Document lists every finding in full, including the passed ones.
func (f Findings) Document(document.View) document.Document {
	var items document.Items
	for _, each := range f {
		items.Entries = append(items.Entries, Item(each))
	}
	return document.Document{Title: "Findings", Blocks: []document.Block{items}}
}

// maxFacts bounds the evidence and the objects of a finding.
const maxFacts = 20

// Item returns a finding with all its facts. The remedy of a finding that does not count is omitted.
func Item(f finding.Finding) document.Item {
	item := document.Item{Mark: Mark(f), Names: []string{f.Name}, State: state(f), Counts: f.Open(), Message: f.Message}
	if f.Bypass == nil {
		item.Remedy = f.Remediation
		AddCommands(&item, f.Actions)
	}
	item.Fact("See:", f.URL)
	for _, object := range f.Objects[:min(len(f.Objects), maxFacts)] {
		item.Fact("About:", objectName(object))
	}
	if more := len(f.Objects) - maxFacts; more > 0 {
		item.Fact("About:", fmt.Sprintf("and %d more", more))
	}
	if f.Job != nil && f.Job.Name != "" {
		item.Fact("Job:", placeOf(f.Job))
	}
	item.Evidence.Title = "Evidence"
	names := slices.Sorted(maps.Keys(f.Evidence))
	for _, name := range names[:min(len(names), maxFacts)] {
		item.Evidence.Row(name, f.Evidence[name])
	}
	if more := len(names) - maxFacts; more > 0 {
		item.Evidence.Row("More", fmt.Sprintf("the JSON document contains %d more facts", more))
	}
	return item
}

// AddCommands adds the commands of actions to an entry. If one of them acknowledges what its message requires, the
// whole message is shown.
func AddCommands(item *document.Item, actions []finding.Action) {
	for _, action := range actions {
		item.Whole = item.Whole || action.Type == finding.ActionAcknowledge
		accepts := action.Type == finding.ActionAccept || action.Type == finding.ActionAcknowledge
		if action.Command != "" {
			item.Commands = append(item.Commands, document.Command{Lead: leadOf(action), Text: action.Command, Accepts: accepts})
		}
		item.Remedy = strings.TrimSpace(item.Remedy + "\n" + action.Sentence)
	}
}

// leadOf names the cluster that a command is about, where there are two, and who wrote it, where that is not this program.
func leadOf(action finding.Action) string {
	if action.Type == finding.ActionScript {
		return "By the author of the check:"
	}
	switch action.Cluster {
	case finding.Management:
		return "In the management cluster:"
	case finding.Guest:
		return "In the guest:"
	}
	return ""
}

func objectName(object finding.Object) string {
	return strings.TrimSpace(object.APIVersion + " " + object.Kind + " " + strings.TrimPrefix(object.Namespace+"/"+object.Name, "/"))
}

func placeOf(job *finding.Job) string {
	text := job.Namespace + "/" + job.Name
	if job.Cluster != "" {
		text += " in the " + job.Cluster + " cluster"
	}
	return strings.TrimSuffix(text+" on node "+job.Node, " on node ")
}
