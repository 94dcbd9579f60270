package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/standing"
)

func newStatus(client *client) *cobra.Command {
	output := "text"
	c := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Show what a run has found, and whether its verdict still holds",
		Long: `Show a run: the one in progress, the newest where there is none, or RUN, the ID of
one or the beginning of it.

Of a run that has ended this is its report. Its verdict is about the cluster as it
was: where it is too old, or a node, an operator, the cluster's version or a
CustomResourceDefinition has changed since, the report says that it does not hold
any more, and the exit code is 4.

Of a run in progress this is what has been found so far, what is awaited, and who
has it. It is never Ready: the exit code is 3 when something blocks already, else 4.
` + exitHelp,
		Example: `  # What is going on, or what was found last?
  oc preflight status

  # May the update begin now? 0 only for a verdict that is Ready and still holds
  oc preflight status 3b6f2c1e > /dev/null && echo yes`,
		Args: atMostOneRun,
		RunE: func(c *cobra.Command, args []string) error { return status(c, client, args, output) },
	}
	outputFlag(c, &output, report.Report{})
	return c
}

func atMostOneRun(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError(fmt.Errorf("%q takes the ID of one run at most, but got %d arguments; see %q", c.CommandPath(), len(args), c.CommandPath()+" --help"))
	}
	return nil
}

func status(c *cobra.Command, client *client, args []string, format string) error {
	if err := report.CheckFormat(format, report.Report{}); err != nil {
		return usageError(err)
	}
	done := waiting(client.streams.ErrOut, "reading the record and the cluster")
	defer done()
	store, err := client.runStore(c.Context(), statusNeeds())
	if err != nil {
		return err
	}
	run, rest, err := store.find(c.Context(), args)
	if err != nil {
		return err
	}
	told, err := standing.Of(c.Context(), store.Cluster, run)
	done()
	if err != nil {
		return err
	}
	for _, other := range rest {
		fmt.Fprintf(client.streams.ErrOut, "another run is in progress: %s\n", short(other))
	}
	if err := report.Write(client.streams.Out, format, told); err != nil {
		return err
	}
	return exitOf(told)
}

// find is the run that is named, or the current one.
func (s runStore) find(ctx context.Context, args []string) (run record.Record, rest []record.Record, err error) {
	if len(args) == 0 {
		return s.current(ctx)
	}
	run, err = s.records.Get(ctx, args[0])
	return run, nil, err
}

// statusNeeds is what "status" asks of the API server. Where it may not see what
// a verdict rests on, the verdict does not hold.
func statusNeeds() access.Needs { return recordNeeds().And(standing.Needs()) }
