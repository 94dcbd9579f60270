// Package history answers: which runs were there, and how did they end?
package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/record"
)

// Kind is the kind of the JSON document, of report.APIVersion.
const Kind = "PreflightHistory"

// Formats lists the names of the output formats.
func Formats() []string { return []string{"text", "json"} }

// CheckFormat returns an error that names the formats there are when format is
// not one of them.
func CheckFormat(format string) error {
	if slices.Contains(Formats(), format) {
		return nil
	}
	return fmt.Errorf("unknown output format %q: it must be one of %s", format, strings.Join(Formats(), ", "))
}

// document is the history as JSON.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Runs       []run  `json:"runs"`
}

// run is one run. Times are RFC 3339 in UTC.
type run struct {
	ID             string `json:"id"`
	Phase          string `json:"phase"`
	Decision       string `json:"decision,omitempty"`
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

// Write tells of the runs in the order given. now is the time by the clock of
// the cluster.
func Write(w io.Writer, format string, runs []record.Record, now time.Time) error {
	if err := CheckFormat(format); err != nil {
		return err
	}
	if format == "json" {
		return writeJSON(w, runs)
	}
	return writeText(w, runs, now)
}

func writeJSON(w io.Writer, runs []record.Record) error {
	told := document{APIVersion: report.APIVersion, Kind: Kind, Runs: []run{}}
	for _, each := range runs {
		told.Runs = append(told.Runs, run{
			ID: each.ID, Phase: string(each.Phase), Decision: each.Decision, From: each.From, To: each.Target.Version, Image: each.Target.Image,
			StartTime: stamp(each.StartTime), CompletionTime: stamp(each.CompletionTime),
			Checks: len(each.Checks), Holder: each.Holder, ToolVersion: each.ToolVersion,
		})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(told)
}

func writeText(w io.Writer, runs []record.Record, now time.Time) error {
	var page bytes.Buffer
	if len(runs) == 0 {
		page.WriteString("no run is recorded in this cluster\n")
	} else {
		digits := shortest(runs)
		table := tabwriter.NewWriter(&page, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "RUN\tTARGET\tPHASE\tDECISION\tSTARTED\tAGE\tTOOK\tCHECKS")
		for _, each := range runs {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", each.ID[:min(digits, len(each.ID))], cell(each.Target.Version), phase(each), cell(each.Decision),
				cell(stamp(each.StartTime)), since(each.StartTime, now), took(each), len(each.Checks))
		}
		_ = table.Flush() // to a buffer
	}
	_, err := w.Write(page.Bytes())
	return err
}

// shortest is how many characters of the IDs tell the runs apart.
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

// phase says of a run that should go on when nobody is at it.
func phase(run record.Record) string {
	if run.Phase == record.Running && run.Holder == "" {
		return cell(string(run.Phase) + " (left)")
	}
	return cell(string(run.Phase))
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

// cell is what a column has: something, and nothing that drives a terminal.
func cell(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
	if text == "" {
		return "-"
	}
	return text
}
