package report

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// ChangesKind is the kind of Changes.
const ChangesKind = "PreflightChanges"

// Changes is what is different between the reports of two runs. A finding is the
// same one in both when it has the same name and source. It has not changed when
// only what belongs to the run is different: its ID, the names of its Jobs and
// pods, its times.
type Changes struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Before     Side   `json:"before"`
	After      Side   `json:"after"`
	// New needs attention now, and did not before: it passed, was skipped, or
	// was not there.
	New []Change `json:"new"`
	// Fixed needed attention before, and passes now or is gone.
	Fixed []Change `json:"fixed"`
	// Changed is in both with another outcome, reason or message, or counts
	// otherwise: it was accepted, or blocks. What passed and passes has not
	// changed, whatever it says.
	Changed []Change `json:"changed"`
	// Added and Dropped name checks that are in one report only, and pass or
	// are skipped there, sorted.
	Added   []string `json:"added"`
	Dropped []string `json:"dropped"`
	// Same counts the findings in both that have not changed.
	Same int `json:"same"`
}

// Side is one of two reports.
type Side struct {
	Run      Run                 `json:"run"`
	Cluster  Cluster             `json:"cluster"`
	Target   Target              `json:"target"`
	Verdict  verdict.Verdict     `json:"verdict"`
	Expected verdict.Expectation `json:"expected"`
}

// Change is one finding, before and after; nil where it was not there.
type Change struct {
	Before *finding.Finding `json:"before,omitempty"`
	After  *finding.Finding `json:"after,omitempty"`
}

// Compare says what is different. The order of the findings in the reports does
// not matter. Both should be of runs that have ended: what is awaited still would
// read as gone.
func Compare(before, after Report) Changes {
	changes := Changes{
		APIVersion: APIVersion, Kind: ChangesKind, Before: side(before), After: side(after),
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

func side(report Report) Side {
	return Side{Run: report.Run, Cluster: report.Cluster, Target: report.Target, Verdict: report.Verdict, Expected: report.Expected}
}

func (c *Changes) count(both couple) {
	change := both.change()
	was, is := troubles(change.Before), troubles(change.After)
	switch {
	case is && !was:
		c.New = append(c.New, change)
	case was && (change.After == nil || change.After.Outcome == preflight.Pass):
		c.Fixed = append(c.Fixed, change)
	case change.Before == nil:
		c.Added = append(c.Added, change.After.Name)
	case change.After == nil:
		c.Dropped = append(c.Dropped, change.Before.Name)
	case both.before.reads(*both.after):
		c.Same++
	default:
		c.Changed = append(c.Changed, change)
	}
}

// troubles says whether a finding needs somebody's attention. An outcome that
// nobody knows does.
func troubles(f *finding.Finding) bool {
	return f != nil && f.Outcome != preflight.Pass && f.Outcome != preflight.Skipped
}

// now is the finding as it is, or was last.
func (c Change) now() finding.Finding {
	if c.After != nil {
		return *c.After
	}
	return *c.Before
}

// entry is a finding, and its text without what belongs to one run.
type entry struct {
	finding                  finding.Finding
	message, objects, effect string
}

// identity is what makes two findings the same one.
type identity struct {
	name   string
	source finding.Source
}

// reads says whether somebody who reads both would learn nothing new.
func (e entry) reads(other entry) bool {
	if e.finding.Outcome == preflight.Pass && other.finding.Outcome == preflight.Pass {
		return true
	}
	return e.said() == other.said()
}

// said is what people are told: outcome, reason and message, and what it does.
func (e entry) said() string {
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
func lasting(report Report) []*entry {
	names := runNames(report.Run)
	entries := make([]*entry, 0, len(report.Findings))
	for _, f := range report.Findings {
		entries = append(entries, &entry{
			finding: f, message: names.forget(f, f.Message),
			objects: names.forget(f, written(f.Objects)), effect: effects(f),
		})
	}
	slices.SortStableFunc(entries, func(a, b *entry) int {
		return strings.Compare(a.said()+"\x00"+a.objects, b.said()+"\x00"+b.objects)
	})
	return entries
}

// effects is what a finding does to the verdict.
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

func written(objects []preflight.Object) string {
	text, err := json.Marshal(objects)
	if err != nil {
		return "" // strings: there is nothing that could fail
	}
	return string(text)
}

// runTexts finds what belongs to one run in texts; names is nil for an ID that
// is none of ours.
type runTexts struct {
	run   Run
	names *regexp.Regexp
}

// runNames knows the names of the run's Jobs and pods: they end with the first
// ten hex digits of its ID, and those of pods with what the Job controller adds.
func runNames(run Run) runTexts {
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

// pair finds for every finding the same one on the other side. Where several
// have one identity, those that are most alike belong together.
func pair(before, after []*entry) []couple {
	likenesses := []func(*entry) string{
		func(e *entry) string { return e.said() + "\x00" + e.objects },
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

// match couples those of one identity that are alike, in their order, and
// returns the rest.
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
