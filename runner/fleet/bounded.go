package fleet

import (
	"fmt"
	"maps"
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The bounds of a row, in bytes and counts. A whole row is smaller than 100 KiB.
const (
	maxName, maxText                                = 253, 1 << 10
	maxCauses, maxActions, maxLabels, maxCandidates = 20, 4, 32, 20
)

// Bounded is the row with texts that are bounded and printable, and with a state that is
// known: any other is Undecided. Of applies it to every row; who keeps many rows applies it
// before.
func Bounded(row Row) Row {
	row.Cluster = row.Cluster.bounded()
	if row.State.rank() < 0 {
		row.State, row.Message = Undecided, fmt.Sprintf("the state %q is unknown", line(string(row.State), maxName))
	}
	row.Version, row.Target = line(row.Version, maxName), line(row.Target, maxName)
	row.Message, row.Evidence = line(row.Message, maxText), line(row.Evidence, maxText)
	row.Observed, row.Until = line(row.Observed, maxName), line(row.Until, maxName)
	if row.Update != nil {
		row.Update = &Update{Stage: line(row.Update.Stage, maxName), Since: line(row.Update.Since, maxName), Message: line(row.Update.Message, maxText), Judgement: row.Update.Judgement.bounded()}
	}
	row.LastUpdate = row.LastUpdate.bounded()
	row.Targets = slices.Clone(row.Targets[:min(len(row.Targets), maxCandidates)])
	for i, each := range row.Targets {
		row.Targets[i].Version = line(each.Version, maxName)
		if each.State.rank() < 0 {
			row.Targets[i].State = Undecided
		}
	}
	row.Causes = bounded(row.Causes)
	if len(row.Causes) > 0 && slices.Contains([]State{Ready, Clear, Updated}, row.State) {
		row.State, row.Message = Undecided, fmt.Sprintf("the row contradicts itself: it is %s, and has causes against the update", row.State)
	}
	return row
}

// bounded are the first causes, those of one name and reason once.
func bounded(causes []Cause) []Cause {
	var kept []Cause
	for _, each := range causes[:min(len(causes), maxCauses)] {
		cause := each.bounded()
		same := func(other Cause) bool { return other.Name == cause.Name && other.Reason == cause.Reason }
		if !slices.ContainsFunc(kept, same) {
			kept = append(kept, cause)
		}
	}
	return kept
}

func (c Cluster) bounded() Cluster {
	c.Name, c.ID, c.Source = line(c.Name, maxName), line(c.ID, maxName), line(c.Source, maxText)
	if c.Name == "" {
		c.Name = "unnamed"
	}
	if len(c.Labels) == 0 {
		c.Labels = nil
		return c
	}
	labels := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(c.Labels))[:min(len(c.Labels), maxLabels)] {
		labels[line(key, maxName)] = line(c.Labels[key], maxName)
	}
	c.Labels = labels
	return c
}

func (c Cause) bounded() Cause {
	c.Name, c.Reason = line(c.Name, maxName), line(c.Reason, maxName)
	c.Outcome = preflight.Outcome(line(string(c.Outcome), maxName))
	c.Message, c.Remediation = words.Lines(c.Message, maxText), words.Lines(c.Remediation, maxText)
	actions := make([]finding.Action, 0, min(len(c.Actions), maxActions))
	for _, action := range c.Actions {
		// What remains of a command that is cut may do something else.
		if len(action.Command) <= maxText && len(action.Value) <= maxName && len(actions) < maxActions {
			action.Type = finding.ActionType(line(string(action.Type), maxName))
			action.Command, action.Value = words.Lines(action.Command, maxText), line(action.Value, maxName)
			action.Sentence = words.Lines(action.Sentence, maxText)
			if len(action.Calls) > 0 {
				action = action.Written() // what is shown are the words
			}
			actions = append(actions, action)
		}
	}
	c.Actions = actions
	if len(actions) == 0 {
		c.Actions = nil
	}
	c.Repeats = slices.Clone(c.Repeats[:min(len(c.Repeats), maxCauses)])
	for i, name := range c.Repeats {
		c.Repeats[i] = line(name, maxName)
	}
	return c
}

func line(text string, limit int) string { return words.Line(text, limit) }

// number makes the names of rows, which are sorted by name, unique: the second cluster "a" is "a (2)".
func number(rows []Row) {
	used := map[string]bool{}
	for _, row := range rows {
		used[row.Cluster.Name] = true
	}
	last, again := "", 1
	for i := range rows {
		name := rows[i].Cluster.Name
		if i == 0 || name != last {
			last, again = name, 1
			continue
		}
		for used[rows[i].Cluster.Name] {
			again++
			rows[i].Cluster.Name = fmt.Sprintf("%s (%d)", name, again)
		}
		used[rows[i].Cluster.Name] = true
	}
}

func (j *Judgement) bounded() *Judgement {
	if j == nil {
		return nil
	}
	return &Judgement{Status: words.Line(j.Status, maxName), Since: words.Line(j.Since, maxName), Message: words.Line(j.Message, maxText)}
}
