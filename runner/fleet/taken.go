package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/record/judgement"
)

// OutcomeUnknown is the outcome of an update whose stored data does not count, or could not be read.
const OutcomeUnknown = "Unknown"

// The bounds of the last updates: the objects of one, and the versions, origins and clusters of a table.
const maxObjects, maxTaken, maxOrigins, maxWorse = 3, 10, 10, 20

// LastUpdate is the last update of a cluster, to whichever release.
type LastUpdate struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Outcome is Good, Regressed, RolledBack, Settling, Unfinished, Unknown or NotJudged, according to the data stored
	// in the cluster.
	Outcome string `json:"outcome"`
	// Objects are the objects that became worse with the update, such as "Deployment shop/web"; MoreObjects is the
	// number of further ones.
	Objects     []string `json:"objects,omitempty"`
	MoreObjects int      `json:"moreObjects,omitempty"`
	// Message is why the outcome is Unknown.
	Message string `json:"message,omitempty"`
}

// Taken is how an update was in the clusters of which it is the last one.
type Taken struct {
	Version  string `json:"version"`
	Clusters int    `json:"clusters"`
	// From are the releases from which they were updated, and Outcomes how that was. The most frequent one is first in From;
	// Outcomes are in the order of Good, Regressed, RolledBack, Settling, Unfinished, Unknown and NotJudged.
	From     []Tally `json:"from"`
	Outcomes []Tally `json:"outcomes"`
	// Worse are the clusters in which the update was not good, sorted by name, at most 20.
	Worse []Worse `json:"worse,omitempty"`
}

// Tally is a number of clusters.
type Tally struct {
	Name     string `json:"name"`
	Clusters int    `json:"clusters"`
}

// Worse is a cluster in which an update was not good.
type Worse struct {
	Cluster     string   `json:"cluster"`
	Outcome     string   `json:"outcome"`
	Objects     []string `json:"objects,omitempty"`
	MoreObjects int      `json:"moreObjects,omitempty"`
}

// outcomes are all of them, in the order of a sentence. Any other is Unknown.
func outcomes() []string {
	return []string{
		string(afterupdate.Good), string(afterupdate.Regressed), string(afterupdate.RolledBack), string(afterupdate.Settling),
		string(afterupdate.Unfinished), OutcomeUnknown, judgement.NotJudged,
	}
}

func (u *LastUpdate) bounded() *LastUpdate {
	if u == nil || u.To == "" {
		return nil
	}
	made := &LastUpdate{
		From: line(u.From, maxName), To: line(u.To, maxName), Outcome: u.Outcome, MoreObjects: max(0, u.MoreObjects),
		Message: line(u.Message, maxText),
	}
	if !slices.Contains(outcomes(), made.Outcome) {
		made.Outcome, made.Message = OutcomeUnknown, fmt.Sprintf("the outcome %q is unknown", line(u.Outcome, maxName))
	}
	for i, each := range u.Objects {
		if i == maxObjects {
			made.MoreObjects += len(u.Objects) - i
			break
		}
		made.Objects = append(made.Objects, line(each, maxName))
	}
	return made
}

// agreed is the last update of a cluster that has two rows: where they differ, an outcome that is not good counts, and
// otherwise it is Unknown. Nothing counts where they are about different updates.
func agreed(a, b *LastUpdate) *LastUpdate {
	switch {
	case a == nil || b == nil || a.From != b.From || a.To != b.To:
		return nil
	case a.Outcome == b.Outcome || a.isWorse():
		return a
	case b.isWorse():
		return b
	}
	return &LastUpdate{From: a.From, To: a.To, Outcome: OutcomeUnknown, Message: "the rows of the cluster differ on how the update was"}
}

func (u *LastUpdate) isWorse() bool {
	return u.Outcome == string(afterupdate.Regressed) || u.Outcome == string(afterupdate.RolledBack)
}

// taken are the updates to the requested version, or to those that a cluster may be updated to, the newest first.
func taken(target string, rows []Row) []Taken {
	var made []Taken
	for _, version := range wanted(target, rows) {
		took := slices.DeleteFunc(slices.Clone(rows), func(row Row) bool { return row.LastUpdate == nil || row.LastUpdate.To != version })
		if len(took) > 0 {
			made = append(made, takenBy(version, took))
		}
	}
	return made[:min(len(made), maxTaken)]
}

// takenBy is the update to a version in the clusters that took it.
func takenBy(version string, rows []Row) Taken {
	made := Taken{Version: version, Clusters: len(rows)}
	from, how := map[string]int{}, map[string]int{}
	for _, row := range rows {
		last := row.LastUpdate
		from[cmp.Or(last.From, "?")]++
		how[last.Outcome]++
		if last.isWorse() && len(made.Worse) < maxWorse {
			made.Worse = append(made.Worse, Worse{
				Cluster: row.Cluster.Name, Outcome: last.Outcome, Objects: last.Objects,
				MoreObjects: last.MoreObjects,
			})
		}
	}
	for name, clusters := range from {
		made.From = append(made.From, Tally{name, clusters})
	}
	slices.SortFunc(made.From, func(a, b Tally) int { return cmp.Or(cmp.Compare(b.Clusters, a.Clusters), newer(a.Name, b.Name)) })
	made.From = made.From[:min(len(made.From), maxOrigins)]
	for _, name := range outcomes() {
		if how[name] > 0 {
			made.Outcomes = append(made.Outcomes, Tally{name, how[name]})
		}
	}
	return made
}

// wanted are the versions about which the table is, the newest first.
func wanted(target string, rows []Row) []string {
	if target != "" {
		return []string{target}
	}
	var versions []string
	for _, row := range rows {
		versions = append(versions, row.Target)
		for _, each := range row.Targets {
			versions = append(versions, each.Version)
		}
	}
	slices.SortFunc(versions, newer)
	return slices.DeleteFunc(slices.Compact(versions), func(version string) bool { return version == "" })
}

// newer orders versions, the newest first, and what is none after them.
func newer(a, b string) int {
	first, err := semver.Parse(a)
	second, other := semver.Parse(b)
	if err == nil && other == nil {
		return cmp.Or(second.Compare(first), strings.Compare(a, b))
	}
	none := map[bool]int{true: 1}
	return cmp.Or(cmp.Compare(none[err != nil], none[other != nil]), strings.Compare(a, b))
}

// Sentence is how the update was, such as "4.19.12: taken by 3 clusters of this fleet, from 4.18.12 (3): 3 good".
func (t Taken) Sentence() string {
	var from, how []string
	rest := t.Clusters
	for _, each := range t.From {
		from, rest = append(from, fmt.Sprintf("%s (%d)", each.Name, each.Clusters)), rest-each.Clusters
	}
	if rest > 0 {
		from = append(from, fmt.Sprintf("others (%d)", rest))
	}
	for _, each := range t.Outcomes {
		how = append(how, fmt.Sprintf("%d %s", each.Clusters, wordOf(each.Name))+t.worse(each.Name))
	}
	return fmt.Sprintf("%s: taken by %s of this fleet, from %s: %s", t.Version, words.Count(t.Clusters, "cluster"), listed(from),
		strings.Join(how, ", "))
}

func wordOf(outcome string) string {
	return cmp.Or(map[string]string{string(afterupdate.RolledBack): "rolled back", judgement.NotJudged: "not evaluated"}[outcome],
		strings.ToLower(outcome))
}

// worse names the clusters with an outcome, and what is worse there.
func (t Taken) worse(outcome string) string {
	const most = 3
	var named []string
	for _, each := range t.Worse {
		if each.Outcome != outcome {
			continue
		}
		name := each.Cluster
		if len(each.Objects) > 0 {
			name += ": " + words.ListOf(each.Objects, len(each.Objects)+each.MoreObjects)
		}
		named = append(named, name)
	}
	if len(named) == 0 {
		return ""
	}
	return " (" + strings.Join(named[:min(len(named), most)], "; ") + more(len(named)-most) + ")"
}

func more(count int) string {
	if count <= 0 {
		return ""
	}
	return fmt.Sprintf("; and %d more", count)
}

// listed are texts as in a sentence.
func listed(texts []string) string {
	last := len(texts) - 1
	if last < 1 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}

// The bounds of a row, in bytes and counts. A whole row is smaller than 100 KiB.
const (
	maxName, maxText                                = 253, 1 << 10
	maxCauses, maxActions, maxLabels, maxCandidates = 20, 4, 32, 20
)

// Bounded returns the row with bounded and printable texts, and with a known state: any other is Undecided. Of applies
// it to every row; callers that keep many rows apply it earlier.
func Bounded(row Row) Row {
	row.Cluster = row.Cluster.bounded()
	if row.State.rank() < 0 {
		row.State, row.Message = Undecided, fmt.Sprintf("the state %q is unknown", line(string(row.State), maxName))
	}
	row.Version, row.Target = line(row.Version, maxName), line(row.Target, maxName)
	row.Message, row.Evidence = line(row.Message, maxText), line(row.Evidence, maxText)
	row.Observed, row.Until = line(row.Observed, maxName), line(row.Until, maxName)
	if row.Update != nil {
		row.Update = &Update{
			Stage: line(row.Update.Stage, maxName), Since: line(row.Update.Since, maxName),
			Message: line(row.Update.Message, maxText), Judgement: row.Update.Judgement.bounded(),
		}
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
		row.State, row.Message = Undecided, fmt.Sprintf("the row contradicts itself: it is %s, but has causes "+
			"against the update", row.State)
	}
	return row
}

// bounded returns the first causes, without duplicates by name and reason.
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
