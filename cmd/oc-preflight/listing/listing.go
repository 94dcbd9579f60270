// Package listing answers: which checks does a release ship?
package listing

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/format"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
)

// maxLine bounds one cell of a table, in bytes.
const maxLine = 1 << 10

// Check is one check of a Listing.
type Check struct {
	Name      string `json:"name"`
	Component string `json:"component"`
	// Manifest is the file that has the Job, in the release or in the directory of a site.
	Manifest  string   `json:"manifest"`
	Namespace string   `json:"namespace"`
	Images    []string `json:"images"`
}

func checkOf(check launch.Check) Check {
	entry := Check{
		Name: check.Name, Component: check.Component, Manifest: check.File,
		Namespace: check.Job.Namespace, Images: []string{},
	}
	for _, container := range check.Job.Spec.Template.Spec.Containers {
		entry.Images = append(entry.Images, container.Image)
	}
	return entry
}

// Kind is that of the document.
const Kind = "PreflightChecks"

// Listing is the document of "checks": no check of it was run.
type Listing struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Checks []Check `json:"checks"`
	// Findings are about the release and its manifests.
	Findings []finding.Finding `json:"findings"`
}

// New is the document about the checks of a release.
func New(checks []launch.Check, findings []finding.Finding) Listing {
	document := Listing{APIVersion: report.APIVersion, Kind: Kind, Checks: []Check{}, Findings: findings}
	for _, check := range checks {
		document.Checks = append(document.Checks, checkOf(check))
	}
	return document
}

// WriteWide writes the checks as a table with all columns, and every finding that is not a
// pass.
func (l Listing) WriteWide(w io.Writer, _ format.Style) error {
	return l.write(w, "CHECK\tNAMESPACE\tCOMPONENT\tMANIFEST\tIMAGES", func(check Check) []string {
		return []string{check.Name, check.Namespace, check.Component, check.Manifest, strings.Join(check.Images, ",")}
	})
}

// WriteName writes check/NAME for every check.
func (l Listing) WriteName(w io.Writer) error {
	var names []string
	for _, check := range l.Checks {
		names = append(names, check.Name)
	}
	for _, each := range names {
		if _, err := fmt.Fprintln(w, report.CheckName+"/"+words.Line(each, 256)); err != nil {
			return err
		}
	}
	return nil
}

// WriteText writes the checks as a table, and every finding that is not a pass.
func (l Listing) WriteText(w io.Writer) error {
	return l.write(w, "CHECK\tNAMESPACE\tMANIFEST", func(check Check) []string {
		return []string{check.Name, check.Namespace, check.Manifest}
	})
}

func (l Listing) write(w io.Writer, header string, row func(Check) []string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, header)
	for _, check := range l.Checks {
		columns := row(check)
		for i, each := range columns {
			columns[i] = words.Line(each, maxLine)
		}
		fmt.Fprintln(table, strings.Join(columns, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, f := range l.Findings {
		if f.Outcome != preflight.Pass {
			fmt.Fprintf(w, "\n%s %s (%s): %s\n", f.Outcome, f.Name, f.Reason, strings.ReplaceAll(words.Printable(f.Message), "\n", "\n  "))
		}
	}
	return nil
}
