package command

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner"
)

// targetsFlags is everything that "targets" can be told.
type targetsFlags struct {
	judgeFlags

	to      string
	timeout time.Duration
	output  string
}

func newTargets(client *client) *cobra.Command {
	var flags targetsFlags
	c := &cobra.Command{
		Use:   "targets [--to VERSION]",
		Short: "List the updates that the cluster knows, each with what stands in its way",
		Long: `List every available and every conditional update that this cluster knows, newest
first, each with the decision from gates, risks and health, and with all causes
of it. No release is read and none of its checks is run, so "run" may still find
more. The cluster is read once for all targets, and nothing is created in it.

With --to, one update is explained: every finding, and what to do about it.

Exit codes: without --to 0 when the updates were listed, whatever their
decisions; with --to that of the decision: 0 Ready, 3 Blocked, 4 Undecided.
1 the tool failed, 2 wrong usage or bad input, 130 interrupted.`,
		Example: `  # Where can this cluster go, and what keeps it from going elsewhere?
  oc preflight targets

  # Why not there?
  oc preflight targets --to 4.19.3

  # The newest version that is Ready
  oc preflight targets -o json | jq -r '[.targets[] | select(.verdict.decision == "Ready")][0].version'

  # As judged by the risks that the fleet accepts
  oc preflight targets --accept-file accepted-risks.yaml`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return targets(c, client, flags) },
	}
	c.Flags().StringVar(&flags.to, "to", "", "Explain the update to this version only.")
	flags.add(c)
	c.Flags().DurationVar(&flags.timeout, "timeout", runner.DefaultTimeout, "How long it may take.")
	flags.output = "text"
	outputFlag(c, &flags.output, report.Targets{})
	return c
}

func targets(c *cobra.Command, client *client, flags targetsFlags) error {
	if err := report.CheckFormat(flags.output, report.Targets{}); err != nil {
		return usageError(err)
	}
	reached, err := client.connect()
	if err != nil {
		return err
	}
	options, err := flags.options(client, reached)
	if err != nil {
		return err
	}
	display := client.display()
	options.Timeout, options.Observer = flags.timeout, progressOnly(display)
	told, err := runner.Targets(c.Context(), reached, flags.to, options)
	display.close()
	if err != nil {
		return err
	}
	if err := report.Write(client.streams.Out, flags.output, told); err != nil {
		return err
	}
	if flags.to == "" {
		return nil
	}
	return decidedAll(told.Targets)
}

// decidedAll is the exit code for one version, of which there may be more than
// one image: then none of them may be worse.
func decidedAll(targets []report.Candidate) error {
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
