// Package diff answers: what is new, fixed or changed between two reports?
package diff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Kind is the kind of Changes.
const Kind = "PreflightChanges"

// Changes are the differences between the reports of two runs. Findings of the same
// name and source are the same finding. It has not changed when only what belongs to
// the run differs: its ID, the names of its Jobs and pods, its times.
type Changes struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Before     Side   `json:"before"`
	After      Side   `json:"after"`
	// New needs attention now and did not before: it passed, was skipped or was missing.
	New []Change `json:"new"`
	// Fixed needed attention before, and passes now or is gone.
	Fixed []Change `json:"fixed"`
	// Changed has another outcome, reason, message or effect. What passed and passes
	// has not changed, whatever its message.
	Changed []Change `json:"changed"`
	// Added and Dropped name checks that are in one report only, and pass or are skipped there, sorted.
	Added   []string `json:"added"`
	Dropped []string `json:"dropped"`
	// Same counts the findings in both that have not changed.
	Same int `json:"same"`
}

// Side is one of two reports.
type Side struct {
	Run      report.Run          `json:"run"`
	Cluster  report.Cluster      `json:"cluster"`
	Target   report.Target       `json:"target"`
	Verdict  verdict.Verdict     `json:"verdict"`
	Expected verdict.Expectation `json:"expected"`
}

// Change is one finding, before and after; nil where it is missing.
type Change struct {
	Before *finding.Finding `json:"before,omitempty"`
	After  *finding.Finding `json:"after,omitempty"`
}

// Compare finds the differences. The order of the findings in the reports does not
// matter. Both runs should have ended: a check that has not reported yet would count
// as gone.
func Compare(before, after report.Report) Changes {
	changes := Changes{
		APIVersion: report.APIVersion, Kind: Kind, Before: sideOf(before), After: sideOf(after),
		New: []Change{}, Fixed: []Change{}, Changed: []Change{}, Added: []string{}, Dropped: []string{},
	}
	for _, both := range pair(lasting(before), lasting(after)) {
		changes.count(both)
	}
	for _, list := range [][]Change{changes.New, changes.Fixed, changes.Changed} {
		slices.SortStableFunc(list, func(a, b Change) int { return finding.Compare(a.now(), b.now()) })
	}
	for _, names := range []*[]string{&changes.Added, &changes.Dropped} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return changes
}

func sideOf(r report.Report) Side {
	return Side{Run: r.Run, Cluster: r.Cluster, Target: r.Target, Verdict: r.Verdict, Expected: r.Expected}
}

func (c *Changes) count(both couple) {
	change := both.change()
	was, is := needsAttention(change.Before), needsAttention(change.After)
	switch {
	case is && !was:
		c.New = append(c.New, change)
	case was && (change.After == nil || change.After.Outcome == preflight.Pass):
		c.Fixed = append(c.Fixed, change)
	case change.Before == nil:
		c.Added = append(c.Added, change.After.Name)
	case change.After == nil:
		c.Dropped = append(c.Dropped, change.Before.Name)
	case both.before.equals(*both.after):
		c.Same++
	default:
		c.Changed = append(c.Changed, change)
	}
}

// needsAttention is false for findings that pass or are skipped. An outcome that
// this version does not know needs attention.
func needsAttention(f *finding.Finding) bool {
	return f != nil && f.Outcome != preflight.Pass && f.Outcome != preflight.Skipped
}

// now is the finding after, or before where it is gone.
func (c Change) now() finding.Finding {
	if c.After != nil {
		return *c.After
	}
	return *c.Before
}

// entry is a finding with its texts, without what belongs to one run.
type entry struct {
	finding                  finding.Finding
	message, objects, effect string
}

// identity is equal for findings of two reports that are the same one.
type identity struct {
	name   string
	source finding.Source
}

func (e entry) equals(other entry) bool {
	if e.finding.Outcome == preflight.Pass && other.finding.Outcome == preflight.Pass {
		return true
	}
	return e.content() == other.content()
}

// content is outcome, reason, message and effect.
func (e entry) content() string {
	return strings.Join([]string{string(e.finding.Outcome), e.finding.Reason, e.message, e.effect}, "\x00")
}

// couple is one finding on both sides; nil where it is missing.
type couple struct{ before, after *entry }

func (c couple) change() Change {
	var change Change
	if c.before != nil {
		change.Before = &c.before.finding
	}
	if c.after != nil {
		change.After = &c.after.finding
	}
	return change
}

// lasting are the findings, in an order that does not depend on the run.
func lasting(r report.Report) []*entry {
	names := runNames(r.Run)
	entries := make([]*entry, 0, len(r.Findings))
	for _, f := range r.Findings {
		entries = append(entries, &entry{
			finding: f, message: names.forget(f, f.Message),
			objects: names.forget(f, written(f.Objects)), effect: effects(f),
		})
	}
	slices.SortStableFunc(entries, func(a, b *entry) int {
		return strings.Compare(a.content()+"\x00"+a.objects, b.content()+"\x00"+b.objects)
	})
	return entries
}

// effects describes what a finding does to the verdict.
func effects(f finding.Finding) string {
	effect := ""
	if f.Blocks {
		effect = "blocks"
	}
	if f.Bypass != nil {
		effect += " bypassed by " + f.Bypass.By
	}
	return effect
}

func written(objects []finding.Object) string {
	text, err := json.Marshal(objects)
	if err != nil {
		return "" // strings always encode
	}
	return string(text)
}

// runTexts finds what belongs to one run in texts; names is nil for an ID of another form.
type runTexts struct {
	run   report.Run
	names *regexp.Regexp
}

// runNames matches the names of the run's Jobs and pods: they end with the first ten hex digits of its ID; the Job
// controller adds a suffix to names of pods.
func runNames(run report.Run) runTexts {
	const digits, hex = 10, "0123456789abcdef"
	suffix := strings.ReplaceAll(run.ID, "-", "")
	suffix = suffix[:min(digits, len(suffix))]
	if len(suffix) < digits || strings.Trim(suffix, hex) != "" {
		return runTexts{run: run}
	}
	return runTexts{run: run, names: regexp.MustCompile(suffix + `((-[0-9]+)?-[a-z0-9]{5}\b)?`)}
}

// forget replaces what belongs to the run in the text of a finding.
func (r runTexts) forget(f finding.Finding, text string) string {
	if r.names != nil {
		text = r.names.ReplaceAllString(strings.ReplaceAll(text, r.run.ID, "RUN"), "RUN")
	}
	times := []string{r.run.StartTime, r.run.CompletionTime}
	if f.Job != nil {
		times = append(times, f.Job.StartTime, f.Job.CompletionTime)
	}
	for _, time := range times {
		if time != "" {
			text = strings.ReplaceAll(text, time, "TIME")
		}
	}
	return text
}

// pair finds for every finding the same one on the other side. Of several with one
// identity, those that are most alike are paired.
func pair(before, after []*entry) []couple {
	likenesses := []func(*entry) string{
		func(e *entry) string { return e.content() + "\x00" + e.objects },
		func(e *entry) string { return e.finding.Reason + "\x00" + e.objects },
		func(e *entry) string { return e.objects },
		func(e *entry) string { return e.finding.Reason },
		func(*entry) string { return "" },
	}
	var couples []couple
	for _, likeness := range likenesses {
		var matched []couple
		matched, before, after = match(before, after, likeness)
		couples = append(couples, matched...)
	}
	for _, entry := range before {
		couples = append(couples, couple{before: entry})
	}
	for _, entry := range after {
		couples = append(couples, couple{after: entry})
	}
	return couples
}

// match pairs findings of one identity that are alike, in their order, and returns the rest.
func match(before, after []*entry, likeness func(*entry) string) (matched []couple, left, right []*entry) {
	type key struct {
		identity identity
		like     string
	}
	keyOf := func(e *entry) key { return key{identity{e.finding.Name, e.finding.Source}, likeness(e)} }
	waiting := map[key][]*entry{}
	for _, entry := range after {
		waiting[keyOf(entry)] = append(waiting[keyOf(entry)], entry)
	}
	taken := map[*entry]bool{}
	for _, entry := range before {
		candidates := waiting[keyOf(entry)]
		if len(candidates) == 0 {
			left = append(left, entry)
			continue
		}
		waiting[keyOf(entry)] = candidates[1:]
		taken[candidates[0]] = true
		matched = append(matched, couple{before: entry, after: candidates[0]})
	}
	return matched, left, slices.DeleteFunc(slices.Clone(after), func(e *entry) bool { return taken[e] })
}

// Document lists the two verdicts, the subjects of the reports, then new, changed and fixed findings.
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
	if side.Run.ID != "" { // the ID of an archive's run is not recorded
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
