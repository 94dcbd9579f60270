// Package decide answers: which commands help to choose an update, and to accept its risks?
//
// Each file is one command, beside "run".
package decide

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/document/drainview"
	"github.com/openshift/update-preflight/collector/document/reportview"
	"github.com/openshift/update-preflight/collector/health/draining"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/targets"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/rehearsal"
)

// TargetsOptions are the flags of "targets".
type TargetsOptions struct {
	// To is the version of the only update to show; empty for all.
	To string
	// All is true to list all updates, whatever Limit.
	All bool
	// Limit is the number of updates to list; 0 for all.
	Limit int
	// Timeout is the time limit.
	Timeout time.Duration

	Judge    flagset.Judge
	Watching flagset.Watching
	Hosted   flagset.Hosted
	Rehearse flagset.Rehearse
	Output   flagset.Output
}

// NewTargets returns the command "targets", which evaluates the updates that the cluster offers.
func NewTargets(client *cli.Client) *cobra.Command {
	var flags TargetsOptions
	c := &cobra.Command{
		Use:   "targets [--to VERSION]",
		Short: "List the updates of the cluster and what blocks each of them",
		Long: `List the available and conditional updates of this cluster, clear ones first, with the findings of gates, risks and health that block them. No signature is verified, no release is read and none of its checks is run, so "run" may find more: a target without a blocking finding is Clear, not Ready. The cluster is read once for all targets, and nothing is created in it.

With --archive, the updates of the archived cluster are listed. Checks that need state which the archive lacks are Unknown, NotInArchive.

With --hosted-cluster, the updates of a hosted cluster (HyperShift) are listed, with the kubeconfig of its management cluster: HostedCluster and NodePools are evaluated there, everything else in the guest.

With --to, one update is shown with every finding and its remedy.

Exit codes: without --to 0 when the updates were listed; with --to 0 Clear, 3 Blocked, 4 Undecided. 1 the tool failed, 2 wrong usage or bad input, 130 interrupted.`,
		Example: `  # Which updates are available, and what blocks each of them?
  oc preflight targets

  # What blocks this update?
  oc preflight targets --to 4.19.3

  # The newest version that is not blocked
  oc preflight targets -o json | jq -r '[.targets[] | select(.verdict.decision == "Ready")][0].version'

  # Every update with its image, and the same again whenever it changes
  oc preflight targets -o wide --limit 0 --watch

  # The updates of a hosted cluster
  oc preflight targets --hosted-cluster clusters/example --to 4.19.3

  # With the accepted risks of a file
  oc preflight targets --accept-file accepted-risks.yaml`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return flagset.Execute(c, flags, func() error { return listTargets(c, client, flags) })
		},
	}
	c.Flags().Var(flagset.UpdateValue(&flags.To), "to", "Show only the update to this version.")
	flags.Judge.Add(c)
	c.Flags().DurationVar(&flags.Timeout, "timeout", runner.DefaultTimeout, "Time limit.")
	flags.Output.AddText(c, reportview.Targets{})
	client.QuietFlag(c)
	client.ArchiveFlag(c)
	flags.Hosted.Add(c)
	const standard, interval = 10, 30 * time.Second
	flagset.LimitFlag(c, &flags.Limit, standard)
	c.Flags().BoolVar(&flags.All, "all", false, "The same as --limit 0.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates},
		"to")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "all")
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnAnswer}, "timeout")
	flags.Watching.Add(c, interval, "Ctrl-C")
	flags.Rehearse.Add(c, "Ask the API server, by dry runs, about the pods that replace the evicted ones.")
	client.Roles.Declare(c, role.Role{Needs: targetsNeeds, Flags: []string{"hosted-cluster", "rehearse"}, Management: role.NoMore})
	return c
}

func listTargets(c *cobra.Command, client *cli.Client, flags TargetsOptions) error {
	if err := errors.Join(flags.Watching.Check(), flagset.CheckLimit(flags.Limit), flags.Rehearse.Check()); err != nil {
		return exitcode.BadUsage(err)
	}
	out, err := flags.Output.Open(client.Streams.Out, reportview.Targets{})
	if err != nil {
		return err
	}
	defer out.Close()
	out.Style.Limit, out.Style.AllHint = flagset.LimitOf(flags.Limit), "--limit 0"
	out.Style.Cluster = flags.Hosted.Subject(client)
	if flags.All {
		out.Style.Limit = -1
	}
	reached, estate, err := flags.Hosted.Open(c.Context(), client)
	if err != nil {
		return err
	}
	options, err := flags.Judge.Options(c.Context(), client, reached)
	if err != nil {
		return err
	}
	shown, now := flags.Watching.Watched(out, client), hosted.Reread(estate)
	return flags.Watching.Repeat(c.Context(), shown, flagset.Unwatched, func() (bool, error) {
		if options.Estate, err = now(c.Context()); err != nil {
			return false, err
		}
		judged, err := flags.evaluate(c.Context(), client, reached, options)
		if err != nil {
			return false, err
		}
		key := judged
		key.Time = ""
		if err := shown.Write(phrase.Of(c).WithTargetCommands(judged), key); err != nil || flags.To == "" || flags.Watching.Watch {
			return false, err
		}
		return true, exitOfAll(judged.Targets)
	})
}

// targetsNeeds are the permissions of "targets".
func targetsNeeds(r role.Request) access.Needs { return targets.Needs().And(rehearsalNeeds(r)) }

// rehearsalNeeds are the permissions of --rehearse.
func rehearsalNeeds(r role.Request) access.Needs {
	if r.Rehearsal == rehearsal.Off {
		return access.Needs{}
	}
	return rehearsal.Needs()
}

// evaluate evaluates the targets, and shows the progress.
func (f TargetsOptions) evaluate(ctx context.Context, client *cli.Client, reached *cluster.Cluster,
	options runner.Options,
) (report.Targets, error) {
	display := client.Display(terminal.About{})
	defer display.Close()
	options.Limits.Timeout, options.Hooks.Observer = f.Timeout, terminal.ProgressOnly(display)
	settings := options.Settings()
	settings.Asks = rehearsal.Asks(reached, f.Rehearse.Mode(), client.Log)
	if settings.Asks != nil && reached.Fixed() {
		fmt.Fprintln(client.Streams.ErrOut, "not rehearsed: an archive has no API server") // the report has one finding for all that it lacks
	}
	s, err := scene.OpenSettled(ctx, reached, settings)
	if err != nil {
		return report.Targets{}, err
	}
	return targets.Judge(ctx, s, f.To)
}

// exitOfAll is the exit code for one version: the worst of its images.
func exitOfAll(targets []report.Candidate) error {
	var worst error
	for _, decision := range []verdict.Decision{verdict.Undecided, verdict.Blocked} {
		for _, target := range targets {
			if target.Verdict.Decision == decision {
				worst = exitcode.Of(report.Report{Verdict: target.Verdict})
			}
		}
	}
	return worst
}

// DrainPlanOptions are the flags of "drain-plan".
type DrainPlanOptions struct {
	// Pool is the only pool to show; empty for all.
	Pool string
	// Node is the only node to show; empty for all.
	Node string
	// Timeout is the time limit.
	Timeout time.Duration

	Hosted   flagset.Hosted
	Rehearse flagset.Rehearse
	Output   flagset.Output
}

// NewDrainPlan returns the command "drain-plan", which rehearses the drains of the next update.
func NewDrainPlan(client *cli.Client) *cobra.Command {
	var flags DrainPlanOptions
	c := &cobra.Command{
		Use:   "drain-plan [--pool POOL] [--node NODE]",
		Short: "Show which node drains would hang, and why",
		Long: `Rehearse the node drains of the next update without evicting a pod: which nodes of each pool the update drains, in the order of the machine-config-operator, how the API server answers each eviction, and where the pods are scheduled next. The plan shows the node whose drain hangs, with the pods, their PodDisruptionBudgets and what to do; the pods that no other node can take; and the Services that are interrupted.

A drain that depends on an eviction webhook, on a choice of the scheduler, or on an operator whose PodDisruptionBudget allows no eviction now is Unknown, never Clear. Other operators are expected to recreate their pods. The cluster is only read.

With --hosted-cluster, the drains of all NodePools of a hosted cluster (HyperShift) are rehearsed, or only of the NodePools that --nodepool names.

Exit codes: 0 all drains complete, 1 the tool failed, 2 wrong usage or bad input, 3 a drain hangs or a pool drains no node, 4 it is unknown whether all drains complete, 130 interrupted.`,
		Example: `  # Do the drains of the next update complete, and which pods block them?
  oc preflight drain-plan

  # Why does the drain of this node hang?
  oc preflight drain-plan --node worker-1

  # The same, asking the API server about the replacement pods
  oc preflight drain-plan --rehearse

  # The same for the cluster of a must-gather
  oc preflight drain-plan --archive must-gather.tar.gz

  # All nodes and pods of one pool
  oc preflight drain-plan --pool worker -o wide

  # The drains of a NodePool of a hosted cluster
  oc preflight drain-plan --hosted-cluster clusters/example --nodepool workers`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return flagset.Execute(c, flags, func() error { return planDrains(c, client, flags) })
		},
	}
	c.Flags().StringVar(&flags.Pool, "pool", "",
		"Show only the nodes of this MachineConfigPool or NodePool. All pools are rehearsed, since they drain at the same time.")
	c.Flags().StringVar(&flags.Node, "node", "", "Show only the drain of this node.")
	c.Flags().DurationVar(&flags.Timeout, "timeout", runner.DefaultTimeout, "Time limit.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Values: option.Nodes}, "node")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Values: option.Pools}, "pool")
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnAnswer}, "timeout")
	flags.Rehearse.Add(c, "Ask the API server, by dry runs, about the pods that replace the evicted ones. Its answer "+
		"overrides the model, and -v logs each difference.")
	flags.Output.AddText(c, drainview.Plan{})
	client.ArchiveFlag(c)
	client.QuietFlag(c)
	flags.Hosted.Add(c)
	client.Roles.Declare(c, role.Role{
		Needs: func(r role.Request) access.Needs { return draining.Needs().And(rehearsalNeeds(r)) },
		Flags: []string{"hosted-cluster", "rehearse"}, Management: role.NoMore,
	})
	return c
}

func planDrains(c *cobra.Command, client *cli.Client, flags DrainPlanOptions) error {
	if err := flags.Rehearse.Check(); err != nil {
		return exitcode.BadUsage(err)
	}
	out, err := flags.Output.Open(client.Streams.Out, drainview.Plan{})
	if err != nil {
		return err
	}
	defer out.Close()
	out.Style.Cluster = flags.Hosted.Subject(client)
	made, err := rehearseDrains(c.Context(), client, flags)
	if err != nil {
		return err
	}
	if err := out.Write(drainview.Plan{Plan: made, ToolVersion: program.Version()}); err != nil {
		return err
	}
	return exitcode.OfDrains(made.Outcome)
}

func rehearseDrains(ctx context.Context, client *cli.Client, flags DrainPlanOptions) (draining.Plan, error) {
	reached, estate, err := flags.Hosted.Open(ctx, client)
	if err != nil {
		return draining.Plan{}, err
	}
	if err := estate.GuestError(); err != nil {
		return draining.Plan{}, fmt.Errorf("the drains of the guest cannot be rehearsed: %w", err)
	}
	display := client.Display(terminal.About{})
	defer display.Close()
	options := runner.Options{
		Limits: runner.Limits{Timeout: flags.Timeout},
		Hooks:  runner.Hooks{Logger: client.Log, Observer: terminal.ProgressOnly(display)},
	}
	s, err := scene.Open(ctx, reached, options.Settings(), access.Needs{})
	if err != nil {
		return draining.Plan{}, err
	}
	s.Step("rehearsing the drains")
	selected := draining.Selection{
		Pool: flags.Pool, Node: flags.Node, Asks: rehearsal.Asks(reached, flags.Rehearse.Mode(), client.Log),
	}
	if selected.NodePools, err = estate.Drains(s.Start); err != nil {
		return draining.Plan{}, err
	}
	made, err := draining.Rehearse(ctx, s.Snapshot, s.Start, selected)
	made.Cluster = s.About.ID
	return made, err
}
