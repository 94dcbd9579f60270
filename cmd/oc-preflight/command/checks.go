package command

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/launch"
)

func newChecks(client *client) *cobra.Command {
	var flags runFlags
	c := &cobra.Command{
		Use:   "checks (--to VERSION | --to-latest | --to-image PULLSPEC)",
		Short: "List the checks that a release would run; launch nothing",
		Long: `List the preflight checks that the target release ships, after verifying its
signature. Nothing is created in the cluster.
` + exitHelp,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return checks(c, client, flags) },
	}
	flags.targetFlags.add(c)
	flags.trustFlags.add(c)
	flags.pullFlags.add(c)
	c.Flags().StringVarP(&flags.output, "output", "o", "text", "Output format: text, json or yaml.")
	return c
}

func checks(c *cobra.Command, client *client, flags runFlags) error {
	if err := report.CheckFormat(flags.output); err != nil {
		return usageError(err)
	}
	reached, err := client.connect()
	if err != nil {
		return err
	}
	options, err := flags.options(client, reached)
	if err != nil {
		return err
	}
	display := newDisplay(client.streams.ErrOut)
	options.Observer = progressOnly(display)
	listing, err := runner.Checks(c.Context(), reached, flags.target, options)
	display.close()
	if err != nil {
		return err
	}
	return writeListing(client.streams.Out, flags.output, listing)
}

// listedCheck is one check as "checks -o json" has it.
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

func writeListing(w io.Writer, format string, listing runner.Listing) error {
	checks := []listedCheck{}
	for _, check := range listing.Checks {
		checks = append(checks, listed(check))
	}
	if format != "text" {
		if err := report.WriteDocument(w, format, map[string]any{"checks": checks, "findings": listing.Findings}); err != nil {
			return err
		}
		return exitOf(report.Report{Verdict: listing.Verdict})
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CHECK\tNAMESPACE\tMANIFEST")
	for _, check := range checks {
		fmt.Fprintf(table, "%s\t%s\t%s\n", check.Name, check.Namespace, check.Manifest)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, f := range listing.Findings {
		if f.Outcome != preflight.Pass {
			fmt.Fprintf(w, "\n%s %s (%s): %s\n", f.Outcome, f.Name, f.Reason, f.Message)
		}
	}
	return exitOf(report.Report{Verdict: listing.Verdict})
}
