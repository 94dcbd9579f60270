package command

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/history"
	"github.com/openshift/update-preflight/collector/report"
)

func newHistory(client *client) *cobra.Command {
	output := "text"
	var text textFlags
	c := &cobra.Command{
		Use:   "history",
		Short: "List the runs that are recorded in the cluster",
		Long: `List the runs that are recorded in the cluster, newest first, with their target,
decision and requester: user, or selected or ahead for the controller. The newest 20 runs
with a verdict are kept, and the newest 10 that were canceled or interrupted. A decision is
"(outdated)" when it has expired or a newer run of the same target has ended; whether the
cluster has changed since, "status" reports. A run in progress whose process is gone is
"left": continue it with attach, or end it with cancel. The decision "Unverified" is that
of a record that was edited, or that cannot be authenticated; "status" reports the cause.
Each update of a path is a run of its own, and a later one is listed with its path.

Exit codes: 0 the runs were listed, whatever their decisions, 1 the tool failed,
2 wrong usage.`,
		Example: `  oc preflight history

  # The newest run that was Ready
  oc preflight history -o json | jq -r '[.runs[] | select(.decision == "Ready")][0].id'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return showHistory(c, client, output, text) },
	}
	outputFlag(c, &output, history.History{})
	text.addColor(c)
	return c
}

func showHistory(c *cobra.Command, client *client, format string, text textFlags) error {
	if err := errors.Join(report.CheckFormat(format, history.History{}), text.checkColor()); err != nil {
		return usageError(err)
	}
	store, err := client.runStore(c.Context(), recordNeeds())
	if err != nil {
		return err
	}
	done := waiting(client.streams.ErrOut, "reading the records")
	defer done()
	runs, err := store.records.List(c.Context())
	done()
	if err != nil {
		return err
	}
	return report.WriteStyled(client.streams.Out, format, history.Of(runs, store.Now()), text.style(client.streams.Out))
}
