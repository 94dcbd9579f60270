package command

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/launch"
)

func newChecks(client *client) *cobra.Command {
	var flags runFlags
	c := &cobra.Command{
		Use:   "checks (--to VERSION | --to-latest | --to-image PULLSPEC)",
		Short: "List the checks of a release without running them",
		Long: `List the preflight checks that the target release ships, after verifying its
signature, and with --checks those of your own that a run would have besides. Nothing is
created in the cluster.
` + exitHelp,
		Example: `  # The checks of the newest available release
  oc preflight checks --to-latest

  # With their components and images
  oc preflight checks --to 4.19.3 -o wide`,
		Args: flags.noArgument,
		RunE: func(c *cobra.Command, _ []string) error { return checks(c, client, flags) },
	}
	flags.targetFlags.add(c)
	flags.trustFlags.add(c)
	flags.pullFlags.add(c)
	flags.siteFlags.add(c)
	flags.output.add(c, listing{})
	return c
}

func checks(c *cobra.Command, client *client, flags runFlags) error {
	out, err := flags.output.open(client.streams.Out, listing{})
	if err != nil {
		return err
	}
	defer out.close()
	reached, err := client.connect()
	if err != nil {
		return err
	}
	options, err := flags.options(c.Context(), client, reached)
	if err != nil {
		return err
	}
	display := client.display(about{})
	options.Observer = progressOnly(display)
	found, err := runner.Checks(c.Context(), reached, flags.target, options)
	display.close()
	if err != nil {
		return err
	}
	if err := out.write(newListing(found, phrase{program: c.Root().CommandPath(), target: flags.flag() + checksFlags(found.Findings)})); err != nil {
		return err
	}
	return exitOf(report.Report{Verdict: found.Verdict})
}

// listedCheck is one check in the JSON document of "checks".
type listedCheck struct {
	Name      string   `json:"name"`
	Component string   `json:"component"`
	Manifest  string   `json:"manifest"`
	Namespace string   `json:"namespace"`
	Images    []string `json:"images"`
}

func listed(check launch.Check) listedCheck {
	entry := listedCheck{
		Name: check.Name, Component: check.Component, Manifest: check.File,
		Namespace: check.Job.Namespace, Images: []string{},
	}
	for _, container := range check.Job.Spec.Template.Spec.Containers {
		entry.Images = append(entry.Images, container.Image)
	}
	return entry
}

// listing is the document of "checks".
type listing struct {
	Checks   []listedCheck     `json:"checks"`
	Findings []finding.Finding `json:"findings"`
}

func newListing(found runner.Listing, p phrase) listing {
	document := listing{Checks: []listedCheck{}, Findings: p.findings(found.Findings)}
	for _, check := range found.Checks {
		document.Checks = append(document.Checks, listed(check))
	}
	return document
}

// WriteWide writes the checks as a table with all columns, and every finding that is not a
// pass.
func (l listing) WriteWide(w io.Writer, _ report.Style) error {
	return l.write(w, "CHECK\tNAMESPACE\tCOMPONENT\tMANIFEST\tIMAGES", func(check listedCheck) []string {
		return []string{check.Name, check.Namespace, check.Component, check.Manifest, strings.Join(check.Images, ",")}
	})
}

// WriteName writes check/NAME for every check.
func (l listing) WriteName(w io.Writer) error {
	var names []string
	for _, check := range l.Checks {
		names = append(names, check.Name)
	}
	return report.WriteNames(w, report.CheckName, names)
}

// WriteText writes the checks as a table, and every finding that is not a pass.
func (l listing) WriteText(w io.Writer) error {
	return l.write(w, "CHECK\tNAMESPACE\tMANIFEST", func(check listedCheck) []string {
		return []string{check.Name, check.Namespace, check.Manifest}
	})
}

func (l listing) write(w io.Writer, header string, row func(listedCheck) []string) error {
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
