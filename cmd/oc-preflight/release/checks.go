package release

import (
	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/running"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
)

type checksFlags struct {
	source running.Source
	output flagset.Output
}

// NewChecks makes "checks", which lists the checks of a release without running them.
func NewChecks(client *cli.Client) *cobra.Command {
	var flags checksFlags
	c := &cobra.Command{
		Use:   "checks (--to VERSION | --to-latest | --to-image PULLSPEC)",
		Short: "List the checks of a release without running them",
		Long: `List the preflight checks that the target release ships, after verifying its signature, and with --checks those of your own that a run would have besides. Nothing is created in the cluster.
` + exitcode.Help,
		Example: `  # The checks of the newest available release
  oc preflight checks --to-latest

  # With their components and images
  oc preflight checks --to 4.19.3 -o wide`,
		Args: flags.source.Target.NoArgument,
		RunE: func(c *cobra.Command, _ []string) error { return checks(c, client, flags) },
	}
	flags.source.Add(c)
	client.ArchiveFlag(c)
	flags.output.Add(c, Listing{})
	client.Roles.Declare(c, role.Role{Needs: role.Always(runner.ChecksNeeds)})
	return c
}

func checks(c *cobra.Command, client *cli.Client, flags checksFlags) error {
	out, err := flags.output.Open(client.Streams.Out, Listing{})
	if err != nil {
		return err
	}
	defer out.Close()
	reached, err := client.Open(c.Context())
	if err != nil {
		return err
	}
	options, err := flags.source.Options(c.Context(), client, reached, flagset.Judge{})
	if err != nil {
		return err
	}
	display := client.Display(terminal.About{})
	options.Hooks.Observer = terminal.ProgressOnly(display)
	found, err := runner.Checks(c.Context(), reached, flags.source.Target.Release, options)
	display.Close()
	if err != nil {
		return err
	}
	worded := phrase.Of(c)
	worded.Target = phrase.FlagsOf("--to-latest")
	if selected := flags.source.Target.Selected(); selected != nil {
		worded.Target = phrase.FlagsOf(selected...)
	}
	if err := out.Write(NewListing(found.Checks, worded.Findings(found.Findings))); err != nil {
		return err
	}
	return exitcode.Of(report.Report{Verdict: found.Verdict})
}
