package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/reportview"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
)

func newAttach(client *client) *cobra.Command {
	var flags runFlags
	c := &cobra.Command{
		Use:   "attach [RUN]",
		Short: "Wait for a run in progress, and continue it if its process is gone",
		Long: `Attach to a run in progress. Results that have been reported are shown at once. Where
another process holds the run, this command waits for its end; otherwise it continues
the run, and launches no check twice. For a run that has ended, it shows its status.

RUN is the ID of the run or a prefix of it; without it, it is the run in progress. The values of --accept, --keyring and similar
flags are not recorded: pass them again. So are those about the update graph, for a run of
a later update of a path: without a graph that has the update, its risks are Unknown.
` + exitHelp,
		Example: `  # The run in progress
  oc preflight attach

  # After Ctrl-C and "detach", or from another machine
  oc preflight attach 3b6f2c1e

  # The run of a later update of a path, with the graph of the path
  oc preflight attach 3b6f2c1e --channel eus-4.18`,
		Args: atMostOneRun,
		RunE: func(c *cobra.Command, args []string) error { return attach(c, client, flags, args) },
	}
	flags.conductFlags(c)
	client.quietFlag(c)
	flags.route.graph.add(c)
	return c
}

func attach(c *cobra.Command, client *client, flags runFlags, args []string) error {
	if err := errors.Join(flags.checkConduct(), flags.route.graph.validate(flags.pullFlags)); err != nil {
		return usageError(err)
	}
	out, err := flags.output.open(client.streams.Out, reportview.Report{})
	if err != nil {
		return err
	}
	defer out.close()
	flags.out = out
	store, err := client.runStore(c.Context(), recordNeeds())
	if err != nil {
		return err
	}
	found, err := store.inProgress(c.Context(), args)
	if err != nil {
		return err
	}
	if found.Phase != record.Running {
		return status(c, client, []string{found.ID}, statusFlags{prometheus: flags.prometheus}, out)
	}
	options, err := flags.options(c.Context(), client, store.Cluster)
	if err != nil {
		return err
	}
	flags.target.Version = found.Target.Version
	source, err := flags.route.graph.request(c.Context(), client, flags.pullFlags)
	if err != nil {
		return err
	}
	return conduct(c, client, flags, options, func(ctx context.Context, options runner.Options) (report.Report, error) {
		return runner.Attach(ctx, store.Cluster, found.ID, source, options)
	})
}
