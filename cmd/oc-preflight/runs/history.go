package runs

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/history"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record/judgement"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/trigger/published"
)

// NewHistory makes "history", which lists the recorded runs.
func NewHistory(client *cli.Client) *cobra.Command {
	var flags historyFlags
	c := &cobra.Command{
		Use:   "history",
		Short: "List the runs that are recorded in the cluster",
		Long: `List the runs that are recorded in the cluster, newest first, with their target, decision and requester: user, or selected or ahead for the controller. The newest 20 runs with a verdict are kept, and the newest 10 that were canceled or interrupted. A decision is "(outdated)" when it has expired, the cluster has changed, or a newer run of the same target has ended, and "(permits nothing)" for a Ready that was forced or does not cover everything that is asked; the last column has the cause. "status" also judges gates, risks and health again. A run in progress whose process is gone is "left": continue it with attach, or end it with cancel. The decision "Unverified" is that of a record that was edited, or that cannot be authenticated; "status" reports the cause. Each update of a path is a run of its own, and a later one is listed with its path. Where the update after a run was judged, its decision is listed as well: Good, Regressed or RolledBack, or Unverified for a judgement that is not authentic; "after RUN" has the details.

With --watch, changes are shown at once where the user may watch ConfigMaps in the namespace openshift-cluster-version, and otherwise after --interval. "-o name" writes preflight/ID, which every command that takes a RUN accepts as well.

With --archive, these are the runs that were recorded in the cluster of an archive. The key by which records are authenticated is a Secret, which an archive does not have.

Exit codes: 0 the runs were listed, whatever their decisions, 1 the tool failed, 2 wrong usage.`,
		Example: `  oc preflight history

  # Every run with its image, times and full ID
  oc preflight history -o wide --limit 0

  # The same again whenever a run starts, reports or ends
  oc preflight history --watch

  # The newest run that was Ready
  oc preflight history -o json | jq -r '[.runs[] | select(.decision == "Ready")][0].id'`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return showHistory(c, client, flags) },
	}
	flags.output.Add(c, history.History{})
	flags.output.AddColor(c)
	client.ArchiveFlag(c)
	const standard, interval = 20, 10 * time.Second
	flagset.LimitFlag(c, &flags.limit, standard)
	flags.watching.Add(c, interval, "Ctrl-C")
	client.Roles.Declare(c, role.Role{Needs: role.Always(historyNeeds)})
	return c
}

type historyFlags struct {
	watching flagset.Watching
	limit    int
	output   flagset.Output
}

func showHistory(c *cobra.Command, client *cli.Client, flags historyFlags) error {
	if err := errors.Join(flags.watching.Check(), flagset.CheckLimit(flags.limit)); err != nil {
		return exitcode.BadUsage(err)
	}
	out, err := flags.output.Open(client.Streams.Out, history.History{})
	if err != nil {
		return err
	}
	defer out.Close()
	out.Style.Cluster = cli.Subject(client)
	out.Style.Limit, out.Style.AllHint = flagset.LimitOf(flags.limit), "--limit 0"
	store, err := OpenRunStore(c.Context(), client, historyNeeds())
	if err != nil {
		return err
	}
	shown := flags.watching.Watched(out, client)
	return flags.watching.Repeat(c.Context(), shown, store.records.Watch, func() (bool, error) {
		done := client.Waiting("reading the records")
		defer done()
		ctx, gaps := gap.Track(c.Context())
		runs, err := store.records.List(ctx)
		var judged judgement.Runs
		if err == nil {
			version, _ := snapshot.Of(store.Cluster).ClusterVersion(ctx) // without it, no run is NotJudged
			judged, err = judgement.OfRuns(ctx, store.Kubernetes, version)
		}
		done()
		if err != nil {
			return false, err
		}
		warnOfGaps(client.Streams.ErrOut, gaps)
		verdicts, err := store.question(ctx, runs, "").Read(ctx, store.records.Get, func(string, error) {}) // the header is listed
		if err != nil {
			return false, err
		}
		made := history.Of(verdicts, judged)
		return false, shown.Write(made, made)
	})
}

// historyNeeds are the permissions to list records with the judgements of their updates, and to watch them with --watch.
func historyNeeds() access.Needs {
	needs := RecordNeeds() // of no lease by its name: that is of a run in progress
	needs.Required = slices.DeleteFunc(needs.Required, func(request access.Request) bool {
		return request.Resource == "leases" && request.Verb == "get"
	})
	return needs.And(recordstore.WatchNeeds()).And(standing.Needs()).And(published.AskedNeeds())
}

// warnOfGaps reports which records may be missing. What else an archive does not have, such as the
// key of the records, changes what is reported of a record.
func warnOfGaps(w io.Writer, gaps *gap.Log) {
	for _, each := range gaps.All() {
		if each.Resource == "configmaps" {
			fmt.Fprintf(w, "warning: the archive has %s, so runs may be missing\n", words.Printable(each.String()))
		}
	}
}
