package reportview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/document/picture"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
)

// The bounds of lists of names: in a text, and on a page.
const mostNames, mostNamesOnPage = 12, 200

// notCovered names what no check reads; collector/MODEL.md has why, and how it is checked.
const notCovered = "CPUs, boot loaders and files of nodes; storage, load balancers and networks outside the cluster; see MODEL.md"

// facts are the subject and the basis of the verdict; in a brief view only what may change what to do.
func (r Report) facts(view document.View) document.Table {
	table := document.Table{Title: "About this report"}
	if len(r.Actions) == 0 {
		table.Row("Acceptable", strings.Join(r.Acceptable(), ","))
	}
	if !view.Brief {
		table.Row("Image", r.Target.Image)
		if r.Target.UpdateKind != "" {
			table.Row("Update", r.Target.UpdateKind+", from "+r.From())
		}
	}
	if r.Run.Phase == report.PhaseRunning {
		addProgress(r, &table, view)
	} else {
		addBasis(r, &table, view)
		r.run(&table, view)
		addValidity(r, &table, view)
		if !view.Brief || r.Verdict.Decision == verdict.Ready {
			table.Row("Not covered", notCovered)
		}
	}
	if after := r.AfterUpdate; after != nil {
		table.Row("After", strings.TrimSuffix(fmt.Sprintf("%s: %s (%s)", after.Decision, after.Message, r.After), " ()"))
	}
	for _, notice := range r.Notices {
		table.Row("Notice", notice)
	}
	for _, each := range r.Switches {
		table.Row("Switch", fmt.Sprintf("%s: %s; without the controller, %s", strings.TrimSuffix(each.Name+"="+each.Mode, "="), each.Limit,
			each.WithoutController))
	}
	return table
}

// addBasis adds the facts that the verdict rests on; a brief view only shows the unexpected ones: a release that
// is not verified, and a CVO that does not act on the verdict.
func addBasis(r Report, table *document.Table, view document.View) {
	if !view.Brief || !r.Target.Verified {
		table.Row("Signature", signature(r.Target))
	}
	table.Row("Rehearsal", rehearsed(r.Findings))
	switch accepts := r.CVO.Accepts; {
	case !view.Brief:
		table.Row("Checks", fmt.Sprintf("%d of %d reported", r.Expected.Reported, r.Expected.Checks))
		if view.Full {
			table.Row("Missing", limited(r.Expected.Missing, mostNamesOnPage))
		}
		table.Row(decider(r.CVO), behavior(r.CVO))
		table.Row("Created", kinds(r.Created))
	case accepts != nil && *accepts != (r.Verdict.Decision == verdict.Ready):
		text, _, _ := strings.Cut(behavior(r.CVO), ": ")
		table.Row(decider(r.CVO), text)
	}
	if view.Full && r.Removal != nil {
		table.Row("Not deleted", limited(objectNames(r.Removal.Left), mostNamesOnPage))
	}
	if r.Duration != nil && (!view.Brief || r.Verdict.Decision == verdict.Ready) {
		table.Row("Duration", r.Duration.String())
	}
}

func (r Report) run(table *document.Table, view document.View) {
	if view.Brief && r.Run.Phase == report.PhaseComplete && r.Run.ChecksFrom == "" {
		return // the conclusion has the run
	}
	text := cmp.Or(r.Run.ID, "not recorded") + ", " + r.Run.Phase + " at " + r.Run.CompletionTime
	if r.Run.ChecksFrom != "" {
		text += "\nthe results of the release's checks come from run " + r.Run.ChecksFrom
	}
	table.Row("Run", text)
}

// addValidity is until when the verdict holds, or why it no longer does.
func addValidity(r Report, table *document.Table, view document.View) {
	if !r.Holds() {
		table.Row("Outdated", strings.Join(first(r.Standing.Ended, 10), "\n"))
		return
	}
	if r.Standing != nil && r.Standing.Judged != "" {
		table.Row("Evaluated", "gates, risks and health at "+r.Standing.Judged+"; the release and its checks at "+r.Run.CompletionTime)
	}
	switch {
	case r.Verdict.ValidUntil == "":
	case view.Brief && r.Verdict.Decision != verdict.Ready: // a new run follows
	case view.Brief:
		table.Row("Holds", "until "+r.Verdict.ValidUntil+", unless the cluster changes")
	default:
		table.Row("Holds", "until "+r.Verdict.ValidUntil+
			", unless the version of a kubelet, an operator or the cluster, or a CustomResourceDefinition changes before; \"status\" "+
			"evaluates gates, risks and health at its own time")
	}
}

// addProgress is how far a run in progress is. Its signature and CVO's answer are known at its end.
func addProgress(r Report, table *document.Table, view document.View) {
	table.Row("Checks", fmt.Sprintf("%d of %d reported so far", r.Expected.Reported, r.Expected.Checks))
	most := mostNames
	if view.Full {
		most = mostNamesOnPage
	}
	table.Row("Awaited", limited(r.Expected.Missing, most))
	table.Row("Run", r.Run.ID+", "+r.Run.Phase+" since "+r.Run.StartTime)
	if r.Standing != nil {
		table.Row("Held by", cmp.Or(r.Standing.Holder, "no process: the run continues when a process attaches to it"))
	}
}

// rehearsed has the counts of the rehearsal of the writes, also where all were accepted; empty where none was rehearsed.
func rehearsed(findings []finding.Finding) string {
	for _, f := range findings {
		if f.Source == finding.SourceRehearsal && f.Name == rehearsalName {
			return f.Message
		}
	}
	return ""
}

// rehearsalName is the finding with the counts of a rehearsal.
const rehearsalName = "Rehearsal"

func signature(target report.Target) string {
	if !target.Verified {
		return "NOT VERIFIED"
	}
	return "verified, signed by " + strings.Join(target.Signers, "; ")
}

// decider names who decides on the request: CVO, or HyperShift for a hosted cluster.
func decider(cvo report.CVO) string {
	if cvo.Reason == report.ReasonHyperShift {
		return report.ReasonHyperShift
	}
	return "CVO"
}

func behavior(cvo report.CVO) string {
	text := "unknown whether it would accept this update"
	if cvo.Accepts != nil && *cvo.Accepts {
		text = "would accept this update"
	} else if cvo.Accepts != nil {
		text = "would refuse this update"
	}
	if cvo.Reason != "" && cvo.Reason != report.ReasonHyperShift {
		text += " (" + cvo.Reason + ")"
	}
	if cvo.Message != "" {
		text += ": " + cvo.Message
	}
	return text
}

// kinds counts objects by kind, in the order of their names.
func kinds(objects []report.Object) string {
	counts := map[string]int{}
	for _, object := range objects {
		kind := object.Kind
		if object.Cluster != "" {
			kind += " in the " + object.Cluster + " cluster"
		}
		counts[kind]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}

func objectNames(objects []report.Object) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.String())
	}
	return names
}

// limited are the first most names on one line, and how many more there are.
func limited(names []string, most int) string { return strings.Join(first(names, most), ", ") }

// first are the first most names, and how many more there are.
func first(names []string, most int) []string {
	if len(names) <= most {
		return names
	}
	return append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", len(names)-most))
}

// timeline has the checks of which it is known when they waited or ran; nothing for none.
func timeline(findings []finding.Finding) []document.Block {
	made := picture.Timeline{Title: "Timeline of the checks"}
	drawn := map[finding.Object]bool{}
	for _, f := range findings {
		if f.Job == nil || drawn[finding.Object{Namespace: f.Job.Namespace, Name: f.Job.Name}] {
			continue
		}
		bar := picture.Bar{Name: f.Name, Result: findingview.Label(f), Level: findingview.Mark(f).Level, Waits: waits(f.Job.Waits)}
		start, end, ran := times(f.Job)
		if ran {
			bar.Start, bar.End = start, end
		}
		if !ran && len(bar.Waits) == 0 {
			continue
		}
		drawn[finding.Object{Namespace: f.Job.Namespace, Name: f.Job.Name}] = true // a Job may report several findings
		made.Bars = append(made.Bars, bar)
	}
	if len(made.Bars) == 0 {
		return nil
	}
	return []document.Block{document.Section{Title: made.Title, Blocks: []document.Block{made.Picture()}}}
}

// maxWaits bounds the waits of one check.
const maxWaits = 20

func waits(all []finding.Wait) []picture.Wait {
	var known []picture.Wait
	for _, each := range all[:min(len(all), maxWaits)] {
		if start, end, ok := period(each.StartTime, each.EndTime); ok {
			known = append(known, picture.Wait{Reason: each.Reason, Message: each.Message, Start: start, End: end})
		}
	}
	return known
}

// period parses the start and the end of a period; false if it has none.
func period(from, to string) (start, end time.Time, ok bool) {
	start, err := time.Parse(time.RFC3339, from)
	if err != nil || start.IsZero() {
		return time.Time{}, time.Time{}, false
	}
	end, err = time.Parse(time.RFC3339, to)
	return start, end, err == nil && !end.Before(start)
}

// times are when a Job started and ended; false if unknown.
func times(job *finding.Job) (start, end time.Time, ok bool) {
	if job == nil {
		return time.Time{}, time.Time{}, false
	}
	return period(job.StartTime, job.CompletionTime)
}
