package reportview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/document/junit"
	"github.com/openshift/update-preflight/collector/document/picture"
	"github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Path is the document of a path.
type Path struct{ report.Path }

// Document is the decision about the whole, a line for each update, then each update as the document of its report.
func (p Path) Document(view document.View) document.Document {
	decision, meaning, _ := strings.Cut(p.headline(), ": ")
	blocks := []document.Block{document.Verdict{Mark: document.Mark{Level: p.level(), Word: decision}, Meaning: meaning}}
	if view.Full {
		blocks = append(blocks, p.picture())
	} else {
		blocks = append(blocks, p.updates())
	}
	for i, each := range p.Updates {
		shown := Report{Report: each}
		blocks = append(blocks, document.Section{
			Title: fmt.Sprintf("%s: %s to %s", p.position(i), each.From(), orUnknown(each.Target.Version)),
			Mark:  document.Mark{Level: shown.level(), Word: shown.standing()}, Blocks: shown.blocks(view),
		})
	}
	return document.Document{
		Title: "Update preflight of the path " + p.route(), Source: sourceOf(p.ToolVersion, "one for each update"), Cluster: p.Cluster.ID,
		Time:   p.Time,
		Ticket: p.ticket(), Blocks: blocks,
	}
}

// ticket returns the ticket of the first update, which is the next one to make, with the decision for all.
func (p Path) ticket() document.Ticket {
	made := Report{Report: p.Updates[0]}.ticket()
	made.Verdict, made.By = "Decision for the path "+p.route()+": "+p.standing(), by(p.ToolVersion)
	return made
}

// updates has a row for each update, and what the path leaves open.
func (p Path) updates() document.Table {
	table := document.Table{Title: "Updates"}
	table.Row("Path", p.route())
	for i, each := range p.Updates {
		table.Row(p.position(i), p.summary(Report{Report: each}))
	}
	table.Row("No report", strings.Join(p.unreported(), ", "))
	for _, notice := range p.Notices {
		table.Row("Notice", notice)
	}
	return table
}

// picture has the updates with their decisions, and what they are because of.
func (p Path) picture() document.Picture {
	route := picture.Route{Title: "Path, with the decision about each update", Table: p.updates()}
	for _, version := range p.Versions {
		route.Stops = append(route.Stops, orUnknown(version))
	}
	for _, each := range p.Updates {
		shown := Report{Report: each}
		decided := picture.Mark{Mark: document.Mark{Level: shown.level(), Word: shown.standing()}}
		if each.Verdict.Provisional {
			decided.Text = "provisional"
		}
		hop := picture.Hop{Text: each.Target.UpdateKind, Marks: []picture.Mark{decided}}
		for _, f := range each.Findings {
			if f.Open() {
				hop.Marks = append(hop.Marks, picture.Mark{Mark: findingview.Mark(f), Text: f.Name})
			}
		}
		route.Hops = append(route.Hops, hop)
	}
	return route.Picture()
}

func (p Path) level() document.Level {
	if !p.Holds() {
		return document.Unclear
	}
	return levelOf(p.Decision)
}

func (p Path) standing() string {
	if !p.Holds() {
		return notHolding(p.Decision)
	}
	return string(p.Decision)
}

func (p Path) planned() int { return len(p.Versions) - 1 }

func (p Path) position(update int) string {
	return fmt.Sprintf("Hop %d of %d", update+1, max(p.planned(), len(p.Updates)))
}

func (p Path) route() string {
	names := make([]string, 0, len(p.Versions))
	for _, version := range p.Versions {
		names = append(names, orUnknown(version))
	}
	return strings.Join(names, " → ")
}

// unreported are the versions of the updates without a report.
func (p Path) unreported() []string {
	var names []string
	for _, version := range p.Versions[min(len(p.Updates)+1, len(p.Versions)):] {
		names = append(names, orUnknown(version))
	}
	return names
}

func orUnknown(version string) string { return cmp.Or(version, "(unknown version)") }

// summary is the decision about one update, and the findings that led to it.
func (Path) summary(r Report) string {
	const most = 5
	text := fmt.Sprintf("%s to %s: %s", r.From(), orUnknown(r.Target.Version), r.standing())
	if names := append(slices.Clone(r.Verdict.Blocking), r.Verdict.Undecided...); len(names) > 0 {
		text += " because of " + words.List(names, most)
	}
	if r.Verdict.Provisional {
		text += fmt.Sprintf("; provisional, to be evaluated again at %s: %s", r.From(), words.Count(len(r.AskedAgain), "check"))
	}
	return text
}

func (p Path) headline() string {
	target := orUnknown(p.Versions[len(p.Versions)-1])
	if !p.Holds() {
		return fmt.Sprintf("Outdated: the decision about the path to %s was %s, and no longer holds.", target, p.Decision)
	}
	text := map[verdict.Decision]string{
		verdict.Ready:        "Ready: this cluster can be updated to " + orUnknown(p.Updates[0].Target.Version) + ".",
		verdict.Blocked:      fmt.Sprintf("Blocked: do not start the path to %s yet.", target),
		verdict.Undecided:    fmt.Sprintf("Undecided: the path to %s could not be evaluated completely.", target),
		verdict.NothingKnown: fmt.Sprintf("NothingKnown: nothing that can be evaluated in advance blocks the path to %s.", target),
	}[p.Decision]
	first := p.Updates[0].Verdict
	if p.Decision == verdict.Ready && isNarrowed(first) {
		text = strings.Replace(text, "Ready:", "Ready for what was asked:", 1) + leftOut(first)
	}
	if p.Decision == verdict.Ready && p.planned() > 1 {
		text += fmt.Sprintf(" Nothing that can be evaluated in advance blocks the later updates to %s; run the preflight again before "+
			"each of them.", target)
	}
	text += forced(verdict.Verdict{Forced: p.Forced, ForceReason: p.ForceReason, ForcedBy: p.ForcedBy})
	if p.Interrupted() {
		text += " The preflight was interrupted."
	}
	return text
}

// JUnit has a test case for each finding, for each check that has not reported, and for the
// verdict, which fails unless it is Ready, so that a report without findings does not pass. A
// finding that an administrator bypassed passes, with the decision as its output.
func (r Report) JUnit() junit.Results {
	return junit.Results{Time: r.Run.StartTime, Cases: casesOf(r), Properties: []junit.Property{
		{Name: "run", Value: r.Run.ID},
		{Name: "cluster", Value: r.Cluster.ID},
		{Name: "from", Value: r.From()},
		{Name: "to", Value: r.Target.Version},
		{Name: "image", Value: r.Target.Image},
		{Name: "decision", Value: string(r.Verdict.Decision)},
		{Name: "validUntil", Value: r.Verdict.ValidUntil},
	}}
}

func casesOf(r Report) []junit.Case {
	var cases []junit.Case
	for _, f := range r.Findings {
		cases = append(cases, caseOf(f))
	}
	for _, name := range r.Expected.Missing {
		const text = "the check has not reported"
		cases = append(cases, junit.Case{
			Suite: string(finding.SourceJob), Class: "preflight.job", Name: name, Outcome: preflight.Unknown, Type: "NotReported", Message: text,
			Text: text,
		})
	}
	return append(cases, verdictCase(r))
}

func caseOf(f finding.Finding) junit.Case {
	c := junit.Case{
		Suite: string(f.Source), Class: "preflight." + string(f.Source), Name: f.Name, Outcome: f.Outcome,
		Type: f.Reason, Message: f.Message, Text: text.Item(findingview.Item(f)), Seconds: seconds(f.Job),
	}
	if !f.Open() && (f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown) {
		c.Outcome = preflight.Warn
	}
	return c
}

// seconds is how long a Job ran; 0 if unknown.
func seconds(job *finding.Job) float64 {
	start, end, ok := times(job)
	if !ok {
		return 0
	}
	return end.Sub(start).Seconds()
}

func verdictCase(r Report) junit.Case {
	c := junit.Case{Suite: "verdict", Class: "preflight", Name: "preflight.Verdict", Outcome: preflight.Fail, Type: string(r.Verdict.Decision)}
	switch {
	case !r.Holds() || r.Run.Phase == report.PhaseRunning:
		c.Outcome, c.Type = preflight.Unknown, "NoVerdict"
	case r.Verdict.Decision == verdict.Ready, r.Verdict.Decision == verdict.NothingKnown:
		c.Outcome = preflight.Warn
	case r.Verdict.Decision == verdict.Undecided:
		c.Outcome = preflight.Unknown
	}
	c.Message = r.headline()
	c.Text = fmt.Sprintf("%s\n%s", c.Message, countsOf(r.Findings))
	return c
}

// JUnit has the test cases of each update, with its version as the last part of the class, and
// one for the decision about the path.
func (p Path) JUnit() junit.Results {
	var cases []junit.Case
	for _, each := range p.Updates {
		for _, c := range casesOf(Report{Report: each}) {
			c.Class += "." + strings.ReplaceAll(orUnknown(each.Target.Version), ".", "_")
			cases = append(cases, c)
		}
	}
	outcome, known := map[verdict.Decision]preflight.Outcome{
		verdict.Ready: preflight.Warn, verdict.NothingKnown: preflight.Warn, verdict.Undecided: preflight.Unknown,
	}[p.Decision]
	switch {
	case !p.Holds():
		outcome = preflight.Unknown
	case !known:
		outcome = preflight.Fail
	}
	route := strings.ReplaceAll(p.route(), " → ", " -> ")
	return junit.Results{
		Time:       p.Updates[0].Run.StartTime,
		Properties: []junit.Property{{Name: "path", Value: route}, {Name: "decision", Value: string(p.Decision)}},
		Cases: append(cases, junit.Case{
			Suite: "verdict", Class: "preflight", Name: "preflight.Path", Outcome: outcome, Type: cmp.Or(string(p.Decision), "NoVerdict"),
			Message: p.headline(), Text: route,
		}),
	}
}

const everyTarget = "every target"

// scope lists the targets that a finding is about, by minor version where it is about all targets of one.
func scope(about []string, all []report.Candidate) string {
	concerned := map[string]bool{}
	for _, version := range about {
		concerned[version] = true
	}
	var streams []string
	in, out := map[string][]string{}, map[string]int{}
	for _, target := range all {
		stream := streamOf(target.Version)
		if in[stream] == nil && out[stream] == 0 {
			streams = append(streams, stream)
		}
		if concerned[target.Version] {
			in[stream] = append(in[stream], target.Version)
		} else {
			out[stream]++
		}
	}
	return wordScope(streams, in, out)
}

func wordScope(streams []string, in map[string][]string, out map[string]int) string {
	var yes, no []string
	partly := false
	for _, stream := range streams {
		switch {
		case len(in[stream]) == 0:
			no = append(no, stream)
		case out[stream] == 0 && len(in[stream]) > 1:
			yes = append(yes, stream)
		default:
			partly = partly || out[stream] > 0
			yes = append(yes, some(in[stream])...)
		}
	}
	switch {
	case len(no) == 0 && !partly:
		return everyTarget
	case len(no) == 0:
		return strings.Join(yes, ", ")
	}
	return fmt.Sprintf("%s; not %s", strings.Join(yes, ", "), strings.Join(no, ", "))
}

func some(versions []string) []string {
	const most = 6
	if len(versions) <= most {
		return versions
	}
	return append(slices.Clone(versions[:most-1]), fmt.Sprintf("and %d more of %s", len(versions)-most+1, streamOf(versions[0])))
}

// streamOf is the minor version, as in 4.19.z; text that is no version is kept.
func streamOf(version string) string {
	major, rest, ok := strings.Cut(version, ".")
	minor, _, more := strings.Cut(rest, ".")
	if !ok || !more {
		return version
	}
	return major + "." + minor + ".z"
}
