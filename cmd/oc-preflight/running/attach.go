package running

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/runs"
	"github.com/openshift/update-preflight/collector/document/reportview"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
)

// NewAttach makes "attach", which waits for a run in progress or continues it.
func NewAttach(client *cli.Client) *cobra.Command {
	var flags RunFlags
	c := &cobra.Command{
		Use:   "attach [RUN]",
		Short: "Wait for a run in progress, or continue it if its process ended",
		Long: `Attach to a run in progress. Results that have been reported are shown at once. Where another process holds the run, this command waits for its end; otherwise it continues the run, and launches no check twice. For a run that has ended, it shows its status.

RUN is the ID of the run or a prefix of it; without it, it is the run in progress. The values of --accept, --keyring and similar flags are not recorded: pass them again. Those of --keyring, --signature-store, --repository, --prometheus and --dependency must be those with which the run was begun. Pass the flags about the update graph, too, for a run of a later update of a path: without a graph that has the update, its risks are Unknown.
` + exitcode.Help,
		Example: `  # The run in progress
  oc preflight attach

  # After Ctrl-C and "detach", or from another machine
  oc preflight attach 3b6f2c1e

  # The run of a later update of a path, with the graph of the path
  oc preflight attach 3b6f2c1e --channel eus-4.18`,
		Args: flagset.Arguments(0, 1, "the ID of one run at most"),
		RunE: func(c *cobra.Command, args []string) error { return attach(c, client, flags, args) },
	}
	flags.addCommon(c)
	client.QuietFlag(c)
	flags.route.graph.Add(c)
	return c
}

func attach(c *cobra.Command, client *cli.Client, flags RunFlags, args []string) error {
	if err := errors.Join(flags.checkCommon(), flags.route.graph.Validate()); err != nil {
		return exitcode.BadUsage(err)
	}
	out, err := flags.output.Open(client.Streams.Out, reportview.Report{})
	if err != nil {
		return err
	}
	defer out.Close()
	flags.out, out.Style.Cluster = out, flags.hosted.Subject(client)
	store, estate, err := runs.OpenHosted(c.Context(), client, flags.hosted, runs.RecordNeeds())
	if err != nil {
		return err
	}
	found, err := store.InProgress(c.Context(), args)
	if err != nil {
		return err
	}
	if found.Phase != record.Running {
		return runs.Status(c, client, []string{found.ID}, runs.StatusFlags{Hosted: flags.hosted, Prometheus: flags.Judge.Prometheus}, out)
	}
	options, err := flags.Options(c.Context(), client, store.Cluster)
	if err != nil {
		return err
	}
	options.Estate = estate
	flags.Source.Target.Release.Version = found.Target.Version
	source, err := flags.route.graph.Request(c.Context(), client, flags.Source.Pull)
	if err != nil {
		return err
	}
	return runAndShow(c, client, flags, options, func(ctx context.Context, options runner.Options) (report.Report, error) {
		return runner.Attach(ctx, store.Cluster, found.ID, source, options)
	})
}
