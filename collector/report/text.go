package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/internal/page"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// WriteText writes the report for people: the verdict first and last, what to do in
// between, and what passed in one line.
func (r Report) WriteText(w io.Writer) error {
	var p page.Page
	r.writeHead(&p)
	r.writeAskedAgain(&p)
	writeBody(&p, r)
	_, err := p.WriteTo(w)
	return err
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

// writeBody writes every finding, and what to do.
func writeBody(p *page.Page, r Report) {
	for _, f := range r.Findings {
		if !quiet(f) {
			p.Finding(f)
		}
	}
	writeQuiet(p, r.Findings)
	writeNext(p, r)
}

func (r Report) writeHead(p *page.Page) {
	p.Line("%s\n", headline(r))
	p.Row("Target", r.Target.Version)
	p.Row("Image", r.Target.Image)
	if r.Target.UpdateKind != "" {
		p.Row("Update", r.Target.UpdateKind+", from "+r.from())
	}
	if r.Run.Phase == PhaseRunning {
		r.writeProgress(p)
		r.writeSwitches(p)
		p.Line("")
		return
	}
	p.Row("Signature", signature(r.Target))
	p.Row("Checks", fmt.Sprintf("%d of %d reported", r.Expected.Reported, r.Expected.Checks))
	p.Row("CVO", behavior(r.CVO))
	if r.Duration != nil {
		p.Row("Duration", r.Duration.String())
	}
	p.Row("Findings", tally(r.Findings))
	if len(r.Created) > 0 {
		p.Row("Created", kinds(r.Created))
	}
	p.Row("Run", cmp.Or(r.Run.ID, "not recorded")+", "+r.Run.Phase+" at "+r.Run.CompletionTime)
	if r.Run.ChecksFrom != "" {
		p.Row("", "the results of the release's checks are those of run "+r.Run.ChecksFrom)
	}
	r.writeValidity(p)
	r.writeSwitches(p)
	p.Line("")
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
	if r.Verdict.ValidUntil != "" {
		p.Row("Holds", "until "+r.Verdict.ValidUntil+", unless a node, a kubelet, an operator, the cluster's version or a CustomResourceDefinition changes before")
	}
}

// writeProgress writes how far a run in progress is. Its signature and CVO's answer
// are known at its end.
func (r Report) writeProgress(p *page.Page) {
	p.Row("Checks", fmt.Sprintf("%d of %d reported so far", r.Expected.Reported, r.Expected.Checks))
	if len(r.Expected.Missing) > 0 {
		p.Row("Awaited", page.Wrap(limited(r.Expected.Missing, 12)))
	}
	p.Row("Findings", cmp.Or(tally(r.Findings), "none so far"))
	p.Row("Run", r.Run.ID+", "+r.Run.Phase+" since "+r.Run.StartTime)
	if r.Standing != nil {
		p.Row("Held by", cmp.Or(r.Standing.Holder, "no process: the run continues when a process attaches to it"))
	}
}

// limited are the first most names, and how many more there are.
func limited(names []string, most int) []string {
	if len(names) <= most {
		return names
	}
	return append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", len(names)-most))
}

func headline(r Report) string {
	target := cmp.Or(words.Line(r.Target.Version, maxName), "the release")
	switch {
	case r.Run.Phase == PhaseRunning && r.Verdict.Decision == verdict.Blocked:
		return fmt.Sprintf("Blocked so far: do not update this cluster to %s yet. The run has not ended.", target)
	case r.Run.Phase == PhaseRunning:
		return fmt.Sprintf("No verdict yet on the update to %s: the run has not ended.", target)
	case !r.Holds():
		return fmt.Sprintf("Outdated: the verdict on the update to %s was %s, and no longer holds.", target, r.Verdict.Summary())
	}
	text := map[verdict.Decision]string{
		verdict.Ready:        fmt.Sprintf("Ready: this cluster can be updated to %s.", target),
		verdict.NothingKnown: fmt.Sprintf("NothingKnown: nothing that can be evaluated in advance blocks the update to %s.", target),
		verdict.Blocked:      fmt.Sprintf("Blocked: do not update this cluster to %s yet.", target),
		verdict.Undecided:    fmt.Sprintf("Undecided: the update to %s could not be evaluated completely.", target),
	}[r.Verdict.Decision]
	if r.Verdict.Provisional {
		text += fmt.Sprintf(" Provisional: judged from %s.", words.Line(r.Cluster.Version, maxName))
	}
	if r.Verdict.Forced {
		text += " FORCED: findings that block were bypassed by force."
	}
	switch r.Run.Phase {
	case PhaseInterrupted:
		text += " The run was interrupted."
	case PhaseCanceled:
		text += " The run was canceled."
	}
	return text
}

func signature(target Target) string {
	if !target.Verified {
		return "NOT VERIFIED"
	}
	return "verified, signed by " + strings.Join(target.Signers, "; ")
}

// behavior is what CVO would do with the same request.
func behavior(cvo CVO) string {
	text := "unknown whether CVO would accept this update"
	if cvo.Accepts != nil && *cvo.Accepts {
		text = "would accept this update"
	} else if cvo.Accepts != nil {
		text = "would refuse this update"
	}
	if cvo.Reason != "" {
		text += " (" + cvo.Reason + ")"
	}
	if cvo.Message != "" {
		text += ": " + cvo.Message
	}
	return text
}

// tally counts the findings by label, the worst first.
func tally(findings []finding.Finding) string {
	counts := map[string]int{}
	for _, f := range findings {
		counts[page.Label(f)]++
	}
	var parts []string
	for _, label := range page.Labels() {
		if counts[label] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[label], label))
		}
	}
	return strings.Join(parts, ", ")
}

// kinds counts objects by kind, in the order of their names.
func kinds(objects []finding.Object) string {
	counts := map[string]int{}
	for _, object := range objects {
		counts[object.Kind]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// quiet findings need no attention: what passed, and built-in checks that do not
// apply to this cluster or update. A Job that skips gives its reason.
func quiet(f finding.Finding) bool {
	return f.Outcome == preflight.Pass || f.Outcome == preflight.Skipped && f.Source != finding.SourceJob
}

// writeQuiet lists the quiet findings, what was skipped with the reason.
func writeQuiet(p *page.Page, findings []finding.Finding) {
	var passed, skipped []string
	for _, f := range findings {
		switch {
		case !quiet(f):
		case f.Outcome == preflight.Pass:
			passed = append(passed, f.Name)
		default:
			skipped = append(skipped, fmt.Sprintf("%s (%s)", f.Name, f.Reason))
		}
	}
	if len(skipped) > 0 {
		p.Names("SKIPPED", skipped)
	}
	if len(passed) > 0 {
		p.Names("PASS", passed)
	}
}

// writeNext writes what to do next, and the verdict once more.
func writeNext(p *page.Page, r Report) {
	if open := append(slices.Clone(r.Verdict.Blocking), r.Verdict.Undecided...); len(open) > 0 {
		p.Line("Fix these, then run the preflight again: %s", words.Line(strings.Join(open, ","), maxCommand))
	}
	if names := r.Acceptable(); len(names) > 0 {
		p.Line("Or accept those that may be accepted: %s", strings.Join(names, ","))
	}
	for _, action := range r.Actions {
		p.Line("  $ %s", words.Line(action.Command, maxCommand))
	}
	switch {
	case r.Run.Phase == PhaseRunning:
		p.Line("Verdict so far: %s", r.Verdict.Decision)
	case !r.Holds():
		p.Line("Verdict: none that holds (it was %s); run the preflight again", r.Verdict.Decision)
	default:
		p.Line("Verdict: %s", r.Verdict.Decision)
	}
}

const (
	// maxCommand bounds a command on one line, in bytes.
	maxCommand = 4 << 10
	// maxName bounds a name or a version on one line, in bytes.
	maxName = 256
)

// Acceptable names the open findings that an administrator may accept.
func (r Report) Acceptable() []string {
	var names []string
	for _, f := range r.Findings {
		if f.Open() && f.Source.Acceptable() && !slices.Contains(names, f.Name) {
			names = append(names, words.Line(f.Name, maxName))
		}
	}
	return names
}
