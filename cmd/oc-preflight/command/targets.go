package command

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/format"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/reportview"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner"
)

// targetsFlags are the flags of "targets".
type targetsFlags struct {
	judgeFlags

	watchFlags

	all     bool
	limit   int
	to      string
	timeout time.Duration
	output  outputFlags
}

func newTargets(client *client) *cobra.Command {
	var flags targetsFlags
	c := &cobra.Command{
		Use:   "targets [--to VERSION]",
		Short: "List the updates of the cluster with the findings that block each of them",
		Long: `List the available and conditional updates of this cluster, those that are clear first,
with the findings of gates, risks and health that block them. No signature is verified, no release
is read and none of its checks is run, so "run" may still find more: a target without
such a finding is Clear, not Ready. The cluster is read once for all targets, and
nothing is created in it.

With --to, one update is shown with every finding and its remedy.

Exit codes: without --to 0 when the updates were listed; with --to 0 Clear, 3 Blocked,
4 Undecided. 1 the tool failed, 2 wrong usage or bad input, 130 interrupted.`,
		Example: `  # Which updates are there, and what blocks each of them?
  oc preflight targets

  # What blocks this update?
  oc preflight targets --to 4.19.3

  # The newest version that is not blocked
  oc preflight targets -o json | jq -r '[.targets[] | select(.verdict.decision == "Ready")][0].version'

  # Every update with its image, and the same again whenever it changes
  oc preflight targets -o wide --limit 0 --watch

  # With the accepted risks of a file
  oc preflight targets --accept-file accepted-risks.yaml`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return targets(c, client, flags) },
	}
	c.Flags().Var(nameValue{&flags.to, format.UpdateName}, "to", "Show only the update to this version.")
	flags.judgeFlags.add(c)
	c.Flags().DurationVar(&flags.timeout, "timeout", runner.DefaultTimeout, "Time limit.")
	flags.output.addText(c, reportview.Targets{})
	client.quietFlag(c)
	const standard, interval = 10, 30 * time.Second
	limitFlag(c, &flags.limit, standard)
	c.Flags().BoolVar(&flags.all, "all", false, "The same as --limit 0.")
	flags.watchFlags.add(c, interval, "Ctrl-C")
	return c
}

func targets(c *cobra.Command, client *client, flags targetsFlags) error {
	if err := errors.Join(flags.check(), checkLimit(flags.limit)); err != nil {
		return usageError(err)
	}
	out, err := flags.output.open(client.streams.Out, reportview.Targets{})
	if err != nil {
		return err
	}
	defer out.close()
	out.style.Limit, out.style.AllHint = limitOf(flags.limit), "--limit 0"
	if flags.all {
		out.style.Limit = -1
	}
	reached, err := client.connect()
	if err != nil {
		return err
	}
	options, err := flags.options(c.Context(), client, reached)
	if err != nil {
		return err
	}
	shown := flags.watched(out, client)
	return flags.repeat(c.Context(), shown, unwatched, func() (bool, error) {
		judged, err := flags.judge(c.Context(), client, reached, options)
		if err != nil {
			return false, err
		}
		key := judged
		key.Time = ""
		if err := shown.write(phraseOf(c).withTargetCommands(judged), key); err != nil || flags.to == "" || flags.watch {
			return false, err
		}
		return true, exitOfAll(judged.Targets)
	})
}

// judge evaluates the targets, and shows the progress.
func (f targetsFlags) judge(ctx context.Context, client *client, reached *cluster.Cluster, options runner.Options) (report.Targets, error) {
	display := client.display(about{})
	defer display.close()
	options.Timeout, options.Observer = f.timeout, progressOnly(display)
	return runner.Targets(ctx, reached, f.to, options)
}

// exitOfAll is the exit code for one version: the worst of its images.
func exitOfAll(targets []report.Candidate) error {
	var worst error
	for _, decision := range []verdict.Decision{verdict.Undecided, verdict.Blocked} {
		for _, target := range targets {
			if target.Verdict.Decision == decision {
				worst = exitOf(report.Report{Verdict: target.Verdict})
			}
		}
	}
	return worst
}
