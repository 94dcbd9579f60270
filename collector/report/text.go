package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// writeText renders the report for people: the verdict first and last, what
// needs doing in between, and what passed in one line.
func writeText(w io.Writer, report Report) error {
	var page bytes.Buffer
	writeHead(&page, report)
	writeBody(&page, report)
	_, err := w.Write(page.Bytes())
	return err
}

// writeBody tells every finding, and what to do.
func writeBody(w io.Writer, report Report) {
	for _, f := range report.Findings {
		if !quiet(f) {
			writeFinding(w, f)
		}
	}
	writeQuiet(w, report.Findings)
	writeNext(w, report)
}

func writeHead(w io.Writer, report Report) {
	fmt.Fprintf(w, "%s\n\n", headline(report))
	row(w, "Target", report.Target.Version)
	row(w, "Image", report.Target.Image)
	if report.Target.UpdateKind != "" {
		row(w, "Update", report.Target.UpdateKind+", from "+report.Cluster.Version)
	}
	if report.Run.Phase == PhaseRunning {
		writeProgress(w, report)
		return
	}
	row(w, "Signature", signature(report.Target))
	row(w, "Checks", fmt.Sprintf("%d of %d reported", report.Expected.Reported, report.Expected.Checks))
	row(w, "CVO", behavior(report.CVO))
	row(w, "Findings", tally(report.Findings))
	if len(report.Created) > 0 {
		row(w, "Created", kinds(report.Created))
	}
	row(w, "Run", report.Run.ID+", "+report.Run.Phase+" at "+report.Run.CompletionTime)
	if report.Run.ChecksFrom != "" {
		row(w, "", "the results of the release's checks are those of run "+report.Run.ChecksFrom)
	}
	writeValidity(w, report)
	fmt.Fprintln(w)
}

// endedBy is what ends a verdict before its time (package basis).
const endedBy = "a node, the version of its kubelet, of an operator or of the cluster, or a CustomResourceDefinition changes"

// writeValidity says until when the verdict holds, or what has ended that.
func writeValidity(w io.Writer, report Report) {
	if !report.Holds() {
		writeEnded(w, report)
		return
	}
	if report.Verdict.ValidUntil != "" && report.Holds() {
		row(w, "Holds", "until "+report.Verdict.ValidUntil+", or until "+endedBy)
	}
}

// writeProgress says how far a run has come that is not at its end. The signature
// and CVO are told of at the end.
func writeProgress(w io.Writer, report Report) {
	row(w, "Checks", fmt.Sprintf("%d of %d reported so far", report.Expected.Reported, report.Expected.Checks))
	if len(report.Expected.Missing) > 0 {
		row(w, "Awaited", awaited(report.Expected.Missing))
	}
	row(w, "Findings", cmp.Or(tally(report.Findings), "none so far"))
	row(w, "Run", report.Run.ID+", "+report.Run.Phase+" since "+report.Run.StartTime)
	if by := holder(report); by != "" {
		row(w, "Held by", by)
	}
	fmt.Fprintln(w)
}

// awaited names the checks that have not reported, as many as people read.
func awaited(missing []string) string {
	const most = 12
	if len(missing) <= most {
		return wrap(missing)
	}
	return wrap(append(slices.Clone(missing[:most]), fmt.Sprintf("and %d more", len(missing)-most)))
}

func headline(report Report) string {
	target := report.Target.Version
	if target == "" {
		target = "that release"
	}
	switch {
	case report.Run.Phase == PhaseRunning:
		return words.Printable(headlineSoFar(report.Verdict.Decision, target))
	case !report.Holds():
		return words.Printable(headlineOutdated(report, target))
	}
	said := map[verdict.Decision]string{
		verdict.Ready:     fmt.Sprintf("Ready: this cluster can be updated to %s.", target),
		verdict.Blocked:   fmt.Sprintf("Blocked: do not update this cluster to %s yet.", target),
		verdict.Undecided: fmt.Sprintf("Undecided: not everything about the update to %s could be found out.", target),
	}[report.Verdict.Decision]
	if report.Verdict.Forced {
		said += " FORCED: what blocks was bypassed by --force."
	}
	switch report.Run.Phase {
	case PhaseInterrupted:
		said += " The run was interrupted."
	case PhaseCanceled:
		said += " The run was canceled."
	}
	return words.Printable(said)
}

// headlineSoFar promises nothing: what is still awaited may block.
func headlineSoFar(decision verdict.Decision, target string) string {
	if decision == verdict.Blocked {
		return fmt.Sprintf("Blocked so far: do not update this cluster to %s yet. The run has not ended.", target)
	}
	return fmt.Sprintf("No verdict yet on the update to %s: the run has not ended.", target)
}

func signature(target Target) string {
	if !target.Verified {
		return "NOT VERIFIED"
	}
	return "verified, signed by " + strings.Join(target.Signers, "; ")
}

// behavior is what CVO would do with the same request.
func behavior(cvo CVO) string {
	said := "nobody can tell whether it would take this update"
	if cvo.Accepts != nil && *cvo.Accepts {
		said = "would take this update"
	} else if cvo.Accepts != nil {
		said = "would refuse this update"
	}
	if cvo.Reason != "" {
		said += " (" + cvo.Reason + ")"
	}
	if cvo.Message != "" {
		said += ": " + cvo.Message
	}
	return said
}

// tally counts the findings as the first column calls them, worst first.
func tally(findings []finding.Finding) string {
	counts := map[string]int{}
	for _, f := range findings {
		counts[label(f)]++
	}
	var parts []string
	for _, name := range []string{"FAIL", "UNKNOWN", bypassed, "WARN", "SKIPPED", "PASS"} {
		if counts[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
		}
	}
	return strings.Join(parts, ", ")
}

// kinds counts objects by kind, in the order of their names.
func kinds(objects []preflight.Object) string {
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

// quiet findings need nobody's attention: what passed, and built-in checks that
// do not apply to this cluster or update. A Job that skips says why.
func quiet(f finding.Finding) bool {
	return f.Outcome == preflight.Pass || f.Outcome == preflight.Skipped && f.Source != finding.SourceJob
}

// WriteFindings tells of findings as the text format does, also of those that
// passed.
func WriteFindings(w io.Writer, findings []finding.Finding) error {
	var page bytes.Buffer
	for _, f := range findings {
		writeFinding(&page, f)
	}
	_, err := w.Write(page.Bytes())
	return err
}

func writeFinding(w io.Writer, f finding.Finding) {
	fmt.Fprintf(w, "%-8s %s (%s)%s\n", label(f), words.Printable(f.Name), words.Printable(f.Reason), note(f))
	if len(f.BlockedTargets) > 0 && f.Open() {
		paragraph(w, effect(f), strings.Join(f.BlockedTargets, ", "))
	}
	writeDetails(w, f)
	if f.Job != nil && f.Job.Name != "" {
		paragraph(w, "Job:  ", f.Job.Namespace+"/"+f.Job.Name+onNode(f.Job.Node))
	}
	fmt.Fprintln(w)
}

// effect is what a finding does to the targets that it is about.
func effect(f finding.Finding) string {
	switch {
	case !f.Open():
		return "Concerns: "
	case f.Outcome == preflight.Fail:
		return "Blocks: "
	}
	return "Leaves undecided: "
}

// writeDetails says why, what to do, and about what.
func writeDetails(w io.Writer, f finding.Finding) {
	paragraph(w, "", f.Message)
	paragraph(w, "Fix:  ", f.Remediation)
	paragraph(w, "See:  ", f.URL)
	for _, object := range f.Objects {
		paragraph(w, "About: ", describe(object))
	}
}

// bypassed is what the first column has for findings that do not count.
const bypassed = "bypassed"

// label is the outcome as the first column has it.
func label(f finding.Finding) string {
	if f.Bypass != nil {
		return bypassed
	}
	return strings.ToUpper(words.Printable(string(f.Outcome)))
}

func note(f finding.Finding) string {
	switch {
	case f.Bypass != nil:
		return fmt.Sprintf(": %s by %s (%s)", f.Outcome, words.Printable(f.Bypass.By), words.Printable(f.Bypass.Detail))
	case f.Outcome == preflight.Fail && !f.Blocks:
		return ": does not block this update"
	}
	return ""
}

func describe(object preflight.Object) string {
	name := object.Name
	if object.Namespace != "" {
		name = object.Namespace + "/" + name
	}
	return strings.TrimSpace(object.APIVersion + " " + object.Kind + " " + name)
}

func onNode(node string) string {
	if node == "" {
		return ""
	}
	return " on node " + node
}

// writeQuiet lists the quiet findings, what was skipped with the reason.
func writeQuiet(w io.Writer, findings []finding.Finding) {
	var passed, skipped []string
	for _, f := range findings {
		switch {
		case !quiet(f):
		case f.Outcome == preflight.Pass:
			passed = append(passed, words.Printable(f.Name))
		default:
			skipped = append(skipped, words.Printable(fmt.Sprintf("%s (%s)", f.Name, f.Reason)))
		}
	}
	if len(skipped) > 0 {
		writeNames(w, "SKIPPED", skipped)
	}
	if len(passed) > 0 {
		writeNames(w, "PASS", passed)
	}
}

// writeNames lists names behind what they have in common.
func writeNames(w io.Writer, label string, names []string) {
	fmt.Fprintf(w, "%-8s %s\n\n", label, strings.ReplaceAll(wrap(names), "\n", "\n"+indent))
}

// wrap lists names in lines that fit a terminal.
func wrap(names []string) string {
	const width = 90
	var text strings.Builder
	column := 0
	for i, name := range names {
		if i > 0 {
			text.WriteString(",")
			column++
		}
		switch {
		case i > 0 && column+1+len(name) > width:
			text.WriteString("\n")
			column = 0
		case i > 0:
			text.WriteString(" ")
			column++
		}
		text.WriteString(name)
		column += len(name)
	}
	return text.String()
}

// writeNext says what to do, and what to type.
func writeNext(w io.Writer, report Report) {
	if open := append(slices.Clone(report.Verdict.Blocking), report.Verdict.Undecided...); len(open) > 0 {
		fmt.Fprintf(w, "Put these right, then run the preflight again: %s\n", words.Printable(strings.Join(open, ",")))
	}
	if names := acceptable(report.Findings); len(names) > 0 {
		fmt.Fprintf(w, "Or accept what may be accepted: --accept %s\n", strings.Join(names, ","))
	}
	decision := words.Printable(string(report.Verdict.Decision))
	switch {
	case report.Run.Phase == PhaseRunning:
		fmt.Fprintf(w, "Verdict so far: %s\n", decision)
	case !report.Holds():
		fmt.Fprintf(w, "Verdict: none that holds (it was %s); run the preflight again\n", decision)
	default:
		fmt.Fprintf(w, "Verdict: %s\n", decision)
	}
}

// acceptable names the open findings that an administrator may accept.
func acceptable(findings []finding.Finding) []string {
	var names []string
	seen := map[string]bool{}
	for _, f := range findings {
		if f.Open() && f.Source.Acceptable() && !seen[f.Name] {
			seen[f.Name] = true
			names = append(names, words.Printable(f.Name))
		}
	}
	return names
}

func row(w io.Writer, name, value string) {
	value = strings.ReplaceAll(strings.TrimSpace(words.Printable(value)), "\n", "\n           ")
	fmt.Fprintf(w, "%-10s %s\n", name, value)
}

// indent sets everything about a finding under its name.
const indent = "         "

// paragraph writes text indented under its finding, lines after the first too.
func paragraph(w io.Writer, lead, text string) {
	text = strings.TrimSpace(words.Printable(text))
	if text == "" {
		return
	}
	fmt.Fprintf(w, "%s%s%s\n", indent, lead, strings.ReplaceAll(text, "\n", "\n"+indent))
}
