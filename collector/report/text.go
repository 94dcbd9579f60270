package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/finding"
	page "github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
)

// Style is the layout of text.
type Style = page.Style

// WriteText is WriteStyled for a file.
func (r Report) WriteText(w io.Writer) error { return r.WriteStyled(w, Style{}) }

// WriteStyled writes the report as text: the decision first, then the remedies, the
// most urgent first, and the decision again in one line that stands alone.
func (r Report) WriteStyled(w io.Writer, style Style) error {
	p := page.New(style)
	r.write(p)
	_, err := p.WriteTo(w)
	return err
}

func (r Report) write(p *page.Page) {
	r.writeDecision(p)
	r.writeAskedAgain(p)
	writeItems(p, r.Findings)
	writeCounted(p, r.Findings)
	r.writeNext(p)
	r.writeFacts(p)
	if !p.Style().Brief() {
		p.Line("")
	}
	p.Line("%s", words.Line(r.chatLine(p.Style()), maxCommand)) // in one line, however narrow the terminal is
}

// Findings are findings alone, as a document.
type Findings []finding.Finding

// WriteText writes every finding in full, also those that passed.
func (f Findings) WriteText(w io.Writer) error {
	var p page.Page
	for _, each := range f {
		p.Finding(each)
	}
	_, err := p.WriteTo(w)
	return err
}

// writeDecision writes the decision with the numbers of findings, and what it means.
func (r Report) writeDecision(p *page.Page) {
	word, meaning := decisionOf(r)
	if r.Verdict.Forced && r.Holds() {
		word += " (forced)"
	}
	p.Marked("", strings.ToUpper(cmp.Or(word, r.Run.Phase)), r.update(p.Style())+": "+r.counts()+r.took())
	plain := r.Verdict.Decision == verdict.Ready || r.Verdict.Decision == verdict.Blocked
	if !p.Style().Brief() || !plain || !r.Holds() || r.Run.Phase == PhaseRunning || r.remarks() != "" {
		p.Paragraphs(strings.ToUpper(meaning[:1]) + meaning[1:])
	}
	if !p.Style().Brief() {
		p.Line("")
	}
}

// update is from which version to which.
func (r Report) update(style Style) string {
	return cmp.Or(r.from(), "?") + " " + style.Arrow() + " " + cmp.Or(r.Target.Version, "the release")
}

// took is how long the run took; empty where that is unknown.
func (r Report) took() string {
	start, err := time.Parse(time.RFC3339, r.Run.StartTime)
	end, failed := time.Parse(time.RFC3339, r.Run.CompletionTime)
	const longest = 7 * 24 * time.Hour // a longer run has a wrong clock
	took := end.Sub(start).Round(time.Second)
	if err != nil || failed != nil || took < 0 || took > longest {
		return ""
	}
	return fmt.Sprintf(" (%s)", took)
}

// writeAskedAgain writes the checks of a later update that were not evaluated, by reason.
func (r Report) writeAskedAgain(p *page.Page) {
	if len(r.AskedAgain) == 0 {
		return
	}
	p.Line("Asked again when the cluster runs %s, and not evaluated now:", words.Line(r.from(), maxName))
	for _, group := range r.askedAgain() {
		p.Line("  %s (%s)", strings.Join(group.names, ", "), group.reason)
	}
	p.Line("")
}

// writeFacts writes the subject and the basis of the verdict; on a terminal
// without details only what may change what to do.
func (r Report) writeFacts(p *page.Page) {
	if !p.Style().Brief() {
		if len(r.Findings) > 0 {
			p.Line("")
		}
		p.Row("Image", r.Target.Image)
		if r.Target.UpdateKind != "" {
			p.Row("Update", r.Target.UpdateKind+", from "+r.from())
		}
	}
	if r.Run.Phase == PhaseRunning {
		r.writeProgress(p)
		r.writeSwitches(p)
		return
	}
	if p.Style().Brief() {
		r.writeExceptions(p)
	} else {
		p.Row("Signature", signature(r.Target))
		p.Row("Checks", fmt.Sprintf("%d of %d reported", r.Expected.Reported, r.Expected.Checks))
		p.Row("CVO", behavior(r.CVO))
		if len(r.Created) > 0 {
			p.Row("Created", kinds(r.Created))
		}
	}
	if r.Duration != nil && (!p.Style().Brief() || r.Verdict.Decision == verdict.Ready) {
		p.Row("Duration", r.Duration.String())
	}
	r.writeRun(p)
	r.writeValidity(p)
	r.writeSwitches(p)
}

// writeExceptions writes what a verdict does not lead one to expect: a release that is
// not verified, and a CVO that does not act on the verdict.
func (r Report) writeExceptions(p *page.Page) {
	if !r.Target.Verified {
		p.Row("Signature", signature(r.Target))
	}
	if accepts := r.CVO.Accepts; accepts != nil && *accepts != (r.Verdict.Decision == verdict.Ready) {
		text, _, _ := strings.Cut(behavior(r.CVO), ": ")
		p.Row("CVO", text)
	}
}

func (r Report) writeRun(p *page.Page) {
	if p.Style().Brief() && r.Run.Phase == PhaseComplete && r.Run.ChecksFrom == "" {
		return // the last line has the run
	}
	p.Row("Run", cmp.Or(r.Run.ID, "not recorded")+", "+r.Run.Phase+" at "+r.Run.CompletionTime)
	if r.Run.ChecksFrom != "" {
		p.Row("", "the results of the release's checks are those of run "+r.Run.ChecksFrom)
	}
}

// writeSwitches writes a line for each switch that is on.
func (r Report) writeSwitches(p *page.Page) {
	for _, each := range r.Switches {
		name := strings.TrimSuffix(each.Name+"="+each.Mode, "=")
		p.Row("Switch", fmt.Sprintf("%s: %s; without the controller, %s", name, each.Limit, each.WithoutController))
	}
}

// writeValidity writes until when the verdict holds, or why it no longer does.
func (r Report) writeValidity(p *page.Page) {
	if !r.Holds() {
		p.Row("Outdated", strings.Join(limited(r.Standing.Ended, 10), "\n"))
		return
	}
	if when := r.judged(); when != "" {
		p.Row("Judged", when)
	}
	switch {
	case r.Verdict.ValidUntil == "":
	case p.Style().Brief() && r.Verdict.Decision != verdict.Ready: // a new run follows
	case p.Style().Brief():
		p.Row("Holds", "until "+r.Verdict.ValidUntil+", unless the cluster changes")
	default:
		p.Row("Holds", "until "+r.Verdict.ValidUntil+", unless a kubelet, the version of an operator or of the cluster, or a CustomResourceDefinition changes before; "+
			"gates, risks and health are judged again whenever it is shown")
	}
}

// judged is what was judged when, for a report that is shown again.
func (r Report) judged() string {
	switch {
	case r.Standing == nil || r.Run.Phase == PhaseRunning || r.Standing.Judged == "":
		return "" // everything was judged at the end of the run, which is shown
	}
	return "gates, risks and health at " + r.Standing.Judged + "; the release and its checks at " + r.Run.CompletionTime
}

// writeProgress writes how far a run in progress is. Its signature and CVO's answer
// are known at its end.
func (r Report) writeProgress(p *page.Page) {
	p.Row("Checks", fmt.Sprintf("%d of %d reported so far", r.Expected.Reported, r.Expected.Checks))
	if len(r.Expected.Missing) > 0 {
		p.Row("Awaited", page.Wrap(limited(r.Expected.Missing, 12)))
	}
	p.Row("Run", r.Run.ID+", "+r.Run.Phase+" since "+r.Run.StartTime)
	if r.Standing != nil {
		p.Row("Held by", cmp.Or(r.Standing.Holder, "no process: the run continues when a process attaches to it"))
	}
}

// writeNext writes the commands for the findings together, or, where there are none, the
// names that may be accepted.
func (r Report) writeNext(p *page.Page) {
	for _, action := range r.Actions {
		lead := map[finding.ActionType]string{finding.ActionRetry: "Run again:", finding.ActionAccept: "Or accept:", finding.ActionAttach: "Attach:"}[action.Type]
		p.Command(fmt.Sprintf("%-10s ", lead), action.Command)
	}
	if names := r.Acceptable(); len(names) > 0 && len(r.Actions) == 0 {
		p.Row("Acceptable", strings.Join(names, ","))
	}
}

// chatLine is the verdict in one line that stands alone.
func (r Report) chatLine(style Style) string {
	const most = 2
	text := "Verdict: " + r.Verdict.Summary()
	switch {
	case r.Run.Phase == PhaseRunning:
		text = "Verdict so far: " + string(r.Verdict.Decision)
	case !r.Holds():
		text = "Verdict: " + notHolding(r.Verdict.Decision)
	}
	text += ", " + r.update(style)
	if r.Run.ID != "" {
		text += ", run " + r.Run.ID[:min(shortID, len(r.Run.ID))]
	}
	var open []string
	for _, f := range r.Findings {
		if f.Open() && !slices.Contains(open, f.Name) {
			open = append(open, f.Name)
		}
	}
	switch {
	case !r.Holds():
		text += ": run the preflight again"
	case r.Run.Detached:
		text += ": attach to the run"
	case len(open) > 0:
		text += ": fix " + words.List(open, most)
	}
	return text
}

// shortID is the length of the first group of a UUID.
const shortID = 8

// Acceptable names the open findings that an administrator may accept; none of a detached
// run, whose checks have not ended.
func (r Report) Acceptable() []string {
	if r.Run.Detached {
		return nil
	}
	var names []string
	for _, f := range r.Findings {
		if f.Open() && f.Source.Acceptable() && !slices.Contains(names, f.Name) {
			names = append(names, words.Line(f.Name, maxName))
		}
	}
	return names
}
