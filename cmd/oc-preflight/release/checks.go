package release

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/listing"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/running"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
)

// NewChecks makes "checks", which lists the checks of a release without running them.
func NewChecks(client *cli.Client) *cobra.Command {
	var flags running.RunFlags
	c := &cobra.Command{
		Use:   "checks (--to VERSION | --to-latest | --to-image PULLSPEC)",
		Short: "List the checks of a release without running them",
		Long: `List the preflight checks that the target release ships, after verifying its signature, and with --checks those of your own that a run would have besides. Nothing is created in the cluster.
` + exitcode.Help,
		Example: `  # The checks of the newest available release
  oc preflight checks --to-latest

  # With their components and images
  oc preflight checks --to 4.19.3 -o wide`,
		Args: flags.NoArgument,
		RunE: func(c *cobra.Command, _ []string) error { return checks(c, client, flags) },
	}
	flags.Target.Add(c)
	flags.Trust.Add(c)
	flags.Pull.Add(c)
	flags.Site.Add(c)
	client.ArchiveFlag(c)
	flags.Output.Add(c, listing.Listing{})
	return c
}

func checks(c *cobra.Command, client *cli.Client, flags running.RunFlags) error {
	out, err := flags.Output.Open(client.Streams.Out, listing.Listing{})
	if err != nil {
		return err
	}
	defer out.Close()
	reached, err := client.Open(c.Context())
	if err != nil {
		return err
	}
	options, err := flags.Options(c.Context(), client, reached)
	if err != nil {
		return err
	}
	display := client.Display(terminal.About{})
	options.Hooks.Observer = terminal.ProgressOnly(display)
	found, err := runner.Checks(c.Context(), reached, flags.Release, options)
	display.Close()
	if err != nil {
		return err
	}
	worded := phrase.Of(c)
	worded.Target = cmp.Or(flags.Selected(), "--to-latest")
	if err := out.Write(listing.New(found.Checks, worded.Findings(found.Findings))); err != nil {
		return err
	}
	return exitcode.Of(report.Report{Verdict: found.Verdict})
}
