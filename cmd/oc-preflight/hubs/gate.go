package hubs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/fleet/hub"
	"github.com/openshift/update-preflight/runner/fleet/wave"
)

// GateOptions are the flags of "fleet gate".
type GateOptions struct {
	// Soak is how long each cluster must have been good.
	Soak time.Duration
	// ProgressDeadline is how long an update may take before it counts as failed; 0 for no limit.
	ProgressDeadline time.Duration
	// MaxFailed is how many clusters may fail: a number or a percentage.
	MaxFailed string
	// Table is the path of a table with the clusters; empty for a hub.
	Table string
	// MaxAge is the age of the oldest row of the table that counts.
	MaxAge time.Duration
	// Limit is the number of rows to show; 0 for all.
	Limit int

	Selection Selection
	Watching  flagset.Watching
	Output    flagset.Output
}

// NewGate returns the command "fleet gate", which decides whether the next wave may start.
func NewGate(client *cli.Client) *cobra.Command {
	var flags GateOptions
	c := &cobra.Command{
		Use:   "gate --to VERSION {--placement NAMESPACE/NAME [--wave GROUP] | --table FILE}",
		Short: "Decide whether the next wave of an update may start",
		Long: `Decide whether the next wave of an update may start: when the clusters of this wave run the release, their pools and operators have settled, and each was evaluated as good for the soak time. It reads the reports of the clusters from a hub of Open Cluster Management, as "fleet hub" does, and changes nothing. Without a hub, --table reads them from the output of "fleet run -o json" or "fleet targets -o json": the wave consists of its rows, and no cluster is used. A row that is older than --max-age is Unknown. The decision about the update in a row is the one that "after" or the controller has stored in the cluster. If the cluster has neither a decision nor a baseline, the soak begins with the last change of its pools and operators.

A wave is a decision group of a Placement. The flags correspond to OCM's rollout strategy: --soak to minSuccessTime, --max-failed to maxFailures, and --progress-deadline to progressDeadline. A group of mandatoryDecisionGroups tolerates no failures: leave out --max-failed. A cluster whose update is Regressed or RolledBack has failed, also without --soak. A cluster is Unknown if it does not answer or, with --soak, does not report to the hub whether its update was good: it counts neither as success nor as failure, and keeps the gate closed. So does a decision that is missing although a baseline was stored, that cannot be read, is not authentic, or is an older one that was restored.

With --watch, the command ends when the gate opens, or when more clusters have failed than may fail.

Exit codes: 0 the next wave may start, 3 more clusters have failed than may fail, 4 too early, or too little is known. 1 the tool failed, 2 wrong usage or bad input, 130 interrupted.`,
		Example: `  # Can the clusters after the canaries be updated?
  oc preflight fleet gate --to 4.19.12 --placement fleets/production --wave canary --soak 24h

  # Wait for it, with one of twenty clusters that may fail
  oc preflight fleet gate --to 4.19.12 --placement fleets/production --wave region-1 \
      --soak 24h --max-failed 5% --watch

  # The same without a hub
  oc preflight fleet targets --contexts 'canary-*' --to 4.19.12 -o json > canary.json
  oc preflight fleet gate --to 4.19.12 --table canary.json --soak 24h`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return flagset.Execute(c, flags, func() error { return gate(c, client, flags) })
		},
	}
	flags.Selection.add(c)
	c.Flags().DurationVar(&flags.Soak, "soak", 0,
		"How long each cluster must have been updated and healthy and, on a hub or where it was evaluated, good after the update.")
	c.Flags().DurationVar(&flags.ProgressDeadline, "progress-deadline", 0,
		"How long the update of a cluster may take before it counts as failed. Default: no limit.")
	c.Flags().StringVar(&flags.MaxFailed, "max-failed", "0",
		"How many clusters of the wave may fail: a number, or a percentage, which is rounded up. A number of more clusters than the "+
			"wave has counts as 0, as in OCM.")
	const maxAge = time.Hour
	c.Flags().StringVar(&flags.Table, "table", "",
		"File with the JSON of \"fleet run\" or \"fleet targets\" for the clusters of the wave. No cluster is used.")
	c.Flags().DurationVar(&flags.MaxAge, "max-age", maxAge, "With --table: ignore rows that are older than this.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnDisplay}, "table", "max-age")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer}, "soak", "max-failed", "progress-deadline")
	flags.Output.AddText(c, wave.Gate{})
	const limit, interval = 20, time.Minute
	flagset.LimitFlag(c, &flags.Limit, limit)
	flags.Watching.Add(c, interval, "the gate opens, too many clusters have failed, or Ctrl-C")
	client.Roles.Declare(c, readRole())
	return c
}

func (f *GateOptions) check() error {
	switch {
	case f.Selection.To == "":
		return errors.New("--to is required: the version to which the wave is updated")
	case f.Selection.Placement == "" && f.Table == "":
		return errors.New("--placement or --table is required: the Placement that selects the clusters, or the file with their table")
	case f.MaxAge <= 0:
		return fmt.Errorf("--max-age=%s: it must be positive", f.MaxAge)
	case f.Soak < 0 || f.ProgressDeadline < 0:
		return errors.New("--soak and --progress-deadline must not be negative")
	}
	return errors.Join(flagset.CheckVersion(f.Selection.To), f.Watching.Check(), flagset.CheckLimit(f.Limit))
}

func gate(c *cobra.Command, client *cli.Client, flags GateOptions) error {
	if err := flags.check(); err != nil {
		return exitcode.BadUsage(err)
	}
	limit, err := wave.ParseLimit(flags.MaxFailed)
	if err != nil {
		return exitcode.BadUsage(fmt.Errorf("--max-failed: %w", err))
	}
	out, err := flags.Output.Open(client.Streams.Out, wave.Gate{})
	if err != nil {
		return err
	}
	defer out.Close()
	out.Style.Limit, out.Style.AllHint = flagset.LimitOf(flags.Limit), "--limit 0"
	read, err := flags.reader(c.Context(), client)
	if err != nil {
		return err
	}
	strategy := wave.Strategy{
		To: flags.Selection.To, Wave: flags.Selection.Wave, MaxFailures: limit, MinSuccessTime: flags.Soak,
		ProgressDeadline: flags.ProgressDeadline,
	}
	shown := flags.Watching.Watched(out, client)
	return flags.Watching.Repeat(c.Context(), shown, flagset.Unwatched, func() (bool, error) {
		known, err := read()
		if err != nil {
			return false, err
		}
		strategy.Incomplete = known.incomplete
		made := wave.Decide(strategy, known.clusters, known.now)
		made.Notices = known.notices
		if err := shown.Write(made, statuses(made)); err != nil {
			return false, err
		}
		ended := made.Decision != verdict.Undecided
		if flags.Watching.Watch && !ended {
			return false, nil
		}
		return ended, exitcode.OfFleet(made.Decision)
	})
}

// known has the state of the clusters of a wave at one time.
type known struct {
	clusters []wave.Progress
	// incomplete is why clusters may be missing; empty where none is.
	incomplete string
	notices    []string
	now        time.Time
}

// reader is the function that reads the clusters of the wave: from the table, or from the hub.
func (f *GateOptions) reader(ctx context.Context, client *cli.Client) (func() (known, error), error) {
	if f.Table != "" {
		return func() (known, error) {
			now := time.Now()
			clusters, err := readTable(f.Table, f.Selection.To, f.MaxAge, now)
			if err != nil {
				return known{}, err
			}
			return known{clusters: clusters, notices: []string{notSigned}, now: now}, nil
		}, nil
	}
	reached, err := f.Selection.open(ctx, client)
	if err != nil {
		return nil, err
	}
	return func() (known, error) {
		found, err := hub.Read(ctx, reached, f.Selection.query)
		if err != nil {
			return known{}, err
		}
		return known{found.Wave(), found.Incomplete, found.Notices, reached.Now()}, nil
	}, nil
}

// statuses decide whether a gate is shown again: another minute of a soak is not news.
func statuses(made wave.Gate) any {
	named := map[string]wave.Status{}
	for _, each := range made.Clusters {
		named[each.Name] = each.Status
	}
	return named
}
