// Package history answers: which runs are recorded, and how did they end?
package history

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
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
			ID: each.ID, Phase: string(each.Phase), Decision: decision(each), Authenticity: string(each.Authentication.State), From: each.From, To: each.Target.Version, Image: each.Target.Image,
			StartTime: stamp(each.StartTime), CompletionTime: stamp(each.CompletionTime),
			Checks: len(each.Checks), Holder: holder(each, now), ToolVersion: each.ToolVersion,
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
	Authenticity   string `json:"authenticity"`
	From           string `json:"from"`
	To             string `json:"to"`
	Image          string `json:"image"`
	StartTime      string `json:"startTime"`
	CompletionTime string `json:"completionTime,omitempty"`
	// Checks counts those of the release that were to report.
	Checks      int    `json:"checks"`
	Holder      string `json:"holder,omitempty"`
	ToolVersion string `json:"toolVersion,omitempty"`
}

// WriteText writes the history as a table.
func (h History) WriteText(w io.Writer) error {
	runs, now := h.records, h.now
	var page bytes.Buffer
	if len(runs) == 0 {
		page.WriteString("no run is recorded in this cluster\n")
	} else {
		digits := shortest(runs)
		table := tabwriter.NewWriter(&page, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "RUN\tTARGET\tPHASE\tDECISION\tSTARTED\tAGE\tTOOK\tCHECKS")
		for _, each := range runs {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", each.ID[:min(digits, len(each.ID))], cell(each.Target.Version), phase(each, now), cell(decision(each)),
				cell(stamp(each.StartTime)), since(each.StartTime, now), took(each), len(each.Checks))
		}
		_ = table.Flush() // to a buffer
	}
	_, err := w.Write(page.Bytes())
	return err
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

// phase is that of the run, with a remark for a run in progress without a holder.
func phase(run record.Record, now time.Time) string {
	if run.Abandoned(now) {
		return cell(string(run.Phase) + " (left)")
	}
	return cell(string(run.Phase))
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
