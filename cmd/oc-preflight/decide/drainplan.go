package decide

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/document/drainview"
	"github.com/openshift/update-preflight/collector/health/draining"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/rehearsal"
)

type drainPlanFlags struct {
	selected draining.Selection
	timeout  time.Duration
	hosted   flagset.Hosted
	rehearse flagset.Rehearse
	output   flagset.Output
}

// NewDrainPlan makes "drain-plan", which rehearses the drains of the next update.
func NewDrainPlan(client *cli.Client) *cobra.Command {
	var flags drainPlanFlags
	c := &cobra.Command{
		Use:   "drain-plan [--pool POOL] [--node NODE]",
		Short: "Show which drains of the update do not end, and why",
		Long: `Rehearse the drains of the next update without evicting a pod: the nodes of each pool that an update drains, in the order of the machine-config-operator, what the API server answers to each eviction, and where the pods find another node. The plan has the node at which the drains of a pool do not end, with the pods, their PodDisruptionBudgets and what to do; the pods that stay without a node; and the Services that are interrupted.

What depends on a webhook on evictions, on a choice of the scheduler, or on an operator whose PodDisruptionBudget allows no eviction now is Unknown, never Clear. Other operators are taken to create their pods again. The cluster is read, and nothing is created in it.

With --hosted-cluster, the drains are those of all its NodePools, or of those that --nodepool names, in the guest of a hosted cluster (HyperShift).

Exit codes: 0 all drains end, 1 the tool failed, 2 wrong usage or bad input, 3 a drain does not end or a pool drains no node, 4 it is unknown whether all drains end, 130 interrupted.`,
		Example: `  # Do the drains of the next update end, and which pods hold them up?
  oc preflight drain-plan

  # Why does the drain of this node not end?
  oc preflight drain-plan --node worker-1

  # The same, with the API server itself asked about the next pods
  oc preflight drain-plan --rehearse

  # The same for the cluster of a must-gather
  oc preflight drain-plan --archive must-gather.tar.gz

  # All nodes and pods of one pool
  oc preflight drain-plan --pool worker -o wide

  # The drains of a NodePool of a hosted cluster
  oc preflight drain-plan --hosted-cluster clusters/example --nodepool workers`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return planDrains(c, client, flags) },
	}
	c.Flags().StringVar(&flags.selected.Pool, "pool", "", "Show only the nodes of this MachineConfigPool or NodePool. All pools are rehearsed, since they are drained at the same time.")
	c.Flags().StringVar(&flags.selected.Node, "node", "", "Show only the drain of this node.")
	c.Flags().DurationVar(&flags.timeout, "timeout", runner.DefaultTimeout, "Time limit.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Values: option.Nodes}, "node")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Values: option.Pools}, "pool")
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnAnswer}, "timeout")
	flags.rehearse.Add(c, "Ask the API server about the pods that controllers make in place of the evicted ones, by dry runs. Its answer counts instead of the model's, and -v logs each difference.")
	flags.output.AddText(c, drainview.Plan{})
	client.ArchiveFlag(c)
	client.QuietFlag(c)
	flags.hosted.Add(c)
	client.Roles.Declare(c, role.Role{Needs: func(r role.Request) access.Needs { return draining.Needs().And(rehearsalNeeds(r)) }, Flags: []string{"hosted-cluster", "rehearse"}, Management: role.NoMore})
	return c
}

func planDrains(c *cobra.Command, client *cli.Client, flags drainPlanFlags) error {
	if err := flags.rehearse.Check(); err != nil {
		return exitcode.BadUsage(err)
	}
	out, err := flags.output.Open(client.Streams.Out, drainview.Plan{})
	if err != nil {
		return err
	}
	defer out.Close()
	out.Style.Cluster = flags.hosted.Subject(client)
	made, err := rehearseDrains(c.Context(), client, flags)
	if err != nil {
		return err
	}
	if err := out.Write(drainview.Plan{Plan: made, ToolVersion: program.Version()}); err != nil {
		return err
	}
	return exitcode.OfDrains(made.Outcome)
}

func rehearseDrains(ctx context.Context, client *cli.Client, flags drainPlanFlags) (draining.Plan, error) {
	reached, estate, err := flags.hosted.Open(ctx, client)
	if err != nil {
		return draining.Plan{}, err
	}
	if err := estate.GuestError(); err != nil {
		return draining.Plan{}, fmt.Errorf("the drains of the guest cannot be rehearsed: %w", err)
	}
	display := client.Display(terminal.About{})
	defer display.Close()
	options := runner.Options{Limits: runner.Limits{Timeout: flags.timeout}, Hooks: runner.Hooks{Logger: client.Log, Observer: terminal.ProgressOnly(display)}}
	s, err := scene.Open(ctx, reached, options.Settings(), access.Needs{})
	if err != nil {
		return draining.Plan{}, err
	}
	s.Step("rehearsing the drains")
	selected := flags.selected
	selected.Asks = rehearsal.Asks(reached, flags.rehearse.Mode(), client.Log)
	if selected.NodePools, err = estate.Drains(s.Start); err != nil {
		return draining.Plan{}, err
	}
	made, err := draining.Rehearse(ctx, s.Snapshot, s.Start, selected)
	made.Cluster = s.About.ID
	return made, err
}
