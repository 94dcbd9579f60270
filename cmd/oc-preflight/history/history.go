// Package history answers: which runs are recorded, and how did they end?
package history

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/openshift/update-preflight/collector/format"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/standing"
)

// Kind is the kind of the JSON document, of report.APIVersion.
const Kind = "PreflightHistory"

// History is a list of runs, as a document.
type History struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Runs       []run  `json:"runs"`

	records []record.Record
	now     time.Time
}

// Of is the history of the runs, in the order given. now is the time by the clock
// of the cluster.
func Of(runs []record.Record, now time.Time) History {
	history := History{APIVersion: report.APIVersion, Kind: Kind, Runs: []run{}, records: runs, now: now}
	for _, each := range runs {
		history.Runs = append(history.Runs, run{
			ID: each.ID, Phase: string(each.Phase), Decision: decision(each), Authenticity: string(each.Authentication.State), From: each.From, To: each.Target.Version, Path: runner.PathOf(each), Image: each.Target.Image,
			StartTime: stamp(each.StartTime), CompletionTime: stamp(each.CompletionTime),
			Checks: len(each.Checks), Holder: holder(each, now), ToolVersion: each.ToolVersion,
			Requester: string(each.Requester), Outdated: outdated(each, runs, now),
		})
	}
	return history
}

// run is one run. Times are RFC 3339 in UTC.
type run struct {
	ID       string `json:"id"`
	Phase    string `json:"phase"`
	Decision string `json:"decision,omitempty"`
	// Authenticity is Authentic, Unauthentic or Unverifiable; the decision of a record
	// that is not Authentic is Unverified.
	Authenticity string `json:"authenticity"`
	From         string `json:"from"`
	To           string `json:"to"`
	// Path is set for a later update of a path: the versions up to To, From first.
	Path           []string `json:"path,omitempty"`
	Image          string   `json:"image"`
	StartTime      string   `json:"startTime"`
	CompletionTime string   `json:"completionTime,omitempty"`
	// Checks counts those of the release that were to report.
	Checks      int    `json:"checks"`
	Holder      string `json:"holder,omitempty"`
	ToolVersion string `json:"toolVersion,omitempty"`
	// Requester is user, selected or ahead; empty where the record has none.
	Requester string `json:"requester,omitempty"`
	// Outdated is why the verdict no longer holds, as far as the records show it: changes
	// of the cluster are not among them.
	Outdated string `json:"outdated,omitempty"`
}

// WriteText is WriteStyled for a file.
func (h History) WriteText(w io.Writer) error { return h.WriteStyled(w, format.Style{}) }

// mostRuns limits the tables without Style.Limit.
const mostRuns = 20

// WriteStyled writes the newest runs as a table. On a terminal each run is one line.
func (h History) WriteStyled(w io.Writer, style format.Style) error {
	digits := shortest(h.records)
	return h.write(w, style, style.Clip, func(table io.Writer, listed []record.Record) { h.summarize(table, listed, digits, style) })
}

// WriteWide writes the newest runs as a table with all columns. A row that a terminal
// cannot show in one line is wrapped.
func (h History) WriteWide(w io.Writer, style format.Style) error {
	whole := func(row string) string { return row }
	return h.write(w, style, whole, func(table io.Writer, listed []record.Record) { h.describe(table, listed, style) })
}

// WriteName writes preflight/ID for every run.
func (h History) WriteName(w io.Writer) error {
	var ids []string
	for _, each := range h.Runs {
		ids = append(ids, each.ID)
	}
	return report.WriteNames(w, report.RunName, ids)
}

// write writes a table of the newest runs, and how many are left out.
func (h History) write(w io.Writer, style format.Style, line func(row string) string, rows func(table io.Writer, listed []record.Record)) error {
	if len(h.records) == 0 {
		_, err := io.WriteString(w, "no run is recorded in this cluster\n")
		return err
	}
	var page bytes.Buffer
	table := tabwriter.NewWriter(&page, 0, 0, 2, ' ', 0)
	listed := h.records[:style.Entries(len(h.records), mostRuns)]
	rows(table, listed)
	_ = table.Flush() // to a buffer
	if more := len(h.records) - len(listed); more > 0 {
		fmt.Fprintln(&page, style.More(more))
	}
	for row := range strings.Lines(page.String()) {
		if _, err := fmt.Fprintln(w, line(strings.TrimRight(row, "\n"))); err != nil {
			return err
		}
	}
	return nil
}

// describe writes the rows with all columns.
func (h History) describe(table io.Writer, listed []record.Record, style format.Style) {
	fmt.Fprintln(table, "RUN\tFROM\tTO\tDECISION\tSTARTED\tTOOK\tBY\tCHECKS\tHOLDER\tIMAGE\tWHAT")
	for _, each := range listed {
		why := outdated(each, h.records, h.now)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", each.ID, cell(each.From), cell(each.Target.Version),
			stated(each, why, style), cell(stamp(each.StartTime)), took(each), cell(string(each.Requester)), len(each.Checks),
			cell(holder(each, h.now)), cell(each.Target.Image), what(each, why, h.now)+along(each, style))
	}
}

// summarize writes the rows for a narrow terminal, the IDs by their first digits.
func (h History) summarize(table io.Writer, listed []record.Record, digits int, style format.Style) {
	fmt.Fprintln(table, "RUN\tTO\tDECISION\tWHEN\tBY\tWHAT")
	for _, each := range listed {
		why := outdated(each, h.records, h.now)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", each.ID[:min(digits, len(each.ID))], cell(each.Target.Version),
			stated(each, why, style), since(each.StartTime, h.now), cell(string(each.Requester)), h.shortened(what(each, why, h.now), digits)+along(each, style))
	}
}

// outdated is why the verdict of a run no longer holds, as far as the records show it.
func outdated(run record.Record, runs []record.Record, now time.Time) string {
	if run.Phase != record.Complete || run.Verified() != nil || run.Decision == "" {
		return ""
	}
	ended := report.Report{Run: report.Run{CompletionTime: stamp(run.CompletionTime)}}
	return cmp.Or(standing.Superseded(run, runs), standing.Expired(ended, now))
}

// stated is the decision, or the phase of a run in progress.
func stated(run record.Record, why string, style format.Style) string {
	switch {
	case run.Phase == record.Running:
		return style.Symbol(string(run.Phase))
	case why != "":
		return style.Symbol(cell(decision(run)) + " (outdated)")
	}
	return style.Symbol(cell(decision(run)))
}

// along is the path of a run of a later update; empty for any other run.
func along(run record.Record, style format.Style) string {
	path := runner.PathOf(run)
	if len(path) == 0 {
		return ""
	}
	return "; path " + cell(strings.Join(path, " "+style.Arrow()+" "))
}

// what is the state of a run beside its decision.
func what(run record.Record, why string, now time.Time) string {
	switch {
	case run.Abandoned(now):
		return "left: attach to it or cancel it"
	case run.Phase == record.Running:
		return "held by " + cell(run.Holder)
	case run.Verified() != nil:
		return cell(string(run.Phase) + ", " + string(run.Authentication.State))
	case why != "":
		return cell(why)
	}
	return fmt.Sprintf("%s in %s", cell(string(run.Phase)), took(run))
}

// shortened has the IDs of the runs as the table has them.
func (h History) shortened(text string, digits int) string {
	for _, each := range h.records {
		if len(each.ID) > digits {
			text = strings.ReplaceAll(text, each.ID, each.ID[:digits])
		}
	}
	return text
}

// shortest is the number of characters by which the IDs differ.
func shortest(runs []record.Record) int {
	const least, most = 8, 36 // the first group of a UUID, and all of it
	for digits := least; digits < most; digits++ {
		seen := map[string]bool{}
		for _, each := range runs {
			seen[each.ID[:min(digits, len(each.ID))]] = true
		}
		if len(seen) == len(runs) {
			return digits
		}
	}
	return most
}

// unverified is the decision of a record that is not authentic.
const unverified = "Unverified"

func decision(run record.Record) string {
	if run.Verified() != nil {
		return unverified
	}
	return run.Decision
}

// holder is that of a run in progress, unless its process is gone.
func holder(run record.Record, now time.Time) string {
	if run.Abandoned(now) {
		return ""
	}
	return run.Holder
}

func took(run record.Record) string {
	if run.CompletionTime.IsZero() {
		return cell("")
	}
	return since(run.StartTime, run.CompletionTime)
}

func since(start, end time.Time) string {
	if start.IsZero() {
		return cell("")
	}
	return duration.HumanDuration(max(0, end.Sub(start)))
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// cell is the text of a column, which is never empty.
func cell(text string) string { return cmp.Or(words.Line(text, 256), "-") }
