package command

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/listing"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
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
	flags.output.add(c, listing.Listing{})
	return c
}

func checks(c *cobra.Command, client *client, flags runFlags) error {
	out, err := flags.output.open(client.streams.Out, listing.Listing{})
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
	options.Hooks.Observer = progressOnly(display)
	found, err := runner.Checks(c.Context(), reached, flags.target, options)
	display.close()
	if err != nil {
		return err
	}
	worded := phraseOf(c)
	worded.target = cmp.Or(flags.selected(), "--to-latest")
	if err := out.write(listing.New(found.Checks, worded.findings(found.Findings))); err != nil {
		return err
	}
	return exitOf(report.Report{Verdict: found.Verdict})
}
