package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
)

// NewCancel makes "cancel", which ends a run in progress.
func NewCancel(client *cli.Client) *cobra.Command {
	timeout := 5 * time.Minute
	var selected flagset.Hosted
	c := &cobra.Command{
		Use:   "cancel RUN",
		Short: "End a run in progress",
		Long: `Request the process that holds a run to end it, and wait until all objects of the run are deleted and its phase is Canceled. Where that process is gone, the run is taken over and ended here. RUN is the ID of the run or a prefix of it.

Exit codes: 0 the run was canceled, 1 it was not, or had already ended, 2 wrong usage, 130 interrupted; the request stands all the same.`,
		Example: `  oc preflight cancel 3b6f2c1e`,
		Args:    flagset.Arguments(1, 1, "the ID of one run"),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := context.WithTimeoutCause(c.Context(), timeout, fmt.Errorf("the run did not end within %s; the cancellation stays requested", timeout))
			defer stop()
			return cancel(ctx, client, selected, args[0])
		},
	}
	selected.AddCluster(c)
	c.Flags().DurationVar(&timeout, "timeout", timeout, "Time limit for the end of the run.")
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnAnswer}, "timeout")
	client.Roles.Declare(c, role.Role{Needs: role.Always(hold.CancelNeeds), Flags: []string{"hosted-cluster"}, Management: role.InControlPlane(cleanup.Needs)})
	return c
}

func cancel(ctx context.Context, client *cli.Client, selected flagset.Hosted, id string) error {
	store, side, err := OpenHosted(ctx, client, selected, hold.CancelNeeds())
	if err != nil {
		return err
	}
	places := place.Of(store.Cluster, side)
	if err := errors.Join(store.confirm(ctx, side, RunID(id)), place.ReviewRemoval(ctx, places)); err != nil {
		return err
	}
	display := client.Display(terminal.About{})
	ended, err := hold.Cancel(ctx, places, RunID(id), progress.New(terminal.ProgressOnly(display), client.Log))
	display.Close()
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	if ended.Phase != record.Canceled {
		return &lease.NotRunningError{ID: ended.ID, Phase: ended.Phase}
	}
	fmt.Fprintf(client.Streams.Out, "run %s was canceled; %d of %s had reported\n", ended.ID, len(ended.Results), words.Count(len(ended.Checks), "check"))
	return nil
}
