// Package fleets answers: how are many clusters evaluated, from the command line to the exit code?
//
// [New] makes "fleet" with its commands. Each lists the members (package roster), asks them side
// by side (package survey), and writes one table (package tableview).
package fleets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/help"
	"github.com/openshift/update-preflight/cmd/oc-preflight/hubs"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/running"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/results"
	"github.com/openshift/update-preflight/runner/fleet/roster"
	"github.com/openshift/update-preflight/runner/fleet/survey"
	"github.com/openshift/update-preflight/runner/fleet/tableview"
)

// New returns the command "fleet", which evaluates many clusters.
func New(client *cli.Client) *cobra.Command {
	c := &cobra.Command{
		Use:   "fleet COMMAND",
		Short: "Evaluate many clusters, and show them in one table",
		Long: `Evaluate many clusters, and show in one table which of them can be updated, and which few causes block the others. The causes come first, beginning with the one whose removal unblocks the most clusters, each with its clusters, its remedy and the command for it. Then come the clusters.

Clusters are named by contexts, kubeconfigs and archives, or listed by Hive or HyperShift. A cluster that cannot be read, or does not answer in time, is a row of the table.`,
		Example: `  # Which clusters can be updated to 4.19.12, and what blocks the others?
  oc preflight fleet targets --contexts 'prod-*' --to 4.19.12

  # The whole preflight in each
  oc preflight fleet run --contexts 'prod-*' --to 4.19.12`,
		Args: flagset.OneVerb,
		RunE: func(c *cobra.Command, _ []string) error {
			return errors.Join(c.Help(), &exitcode.Error{Code: exitcode.Usage})
		},
	}
	help.AddSections(c,
		help.Section{Title: "Ask the clusters", Verbs: []*cobra.Command{newTargets(client), newRun(client)}},
		help.Section{
			Title: "Read what the clusters of a hub report",
			Verbs: []*cobra.Command{hubs.NewRequest(client), hubs.NewHub(client), hubs.NewGate(client)},
		},
	)
	return c
}

// exitCodes ends the help of each command.
const exitCodes = `
The worst cluster determines the exit code: 0 all are Ready or Clear, 3 one is Blocked, 4 one is Undecided, Unreachable or Hibernating, or there is none. 1 the tool failed, 2 wrong usage or bad input, 130 interrupted.`

// Request are the flags of all commands that ask clusters.
type Request struct {
	// Limit is the number of rows to show; 0 for all.
	Limit int
	// Parallel is the number of clusters that are evaluated at the same time.
	Parallel int
	// Timeout is the time limit for each cluster.
	Timeout time.Duration

	Members  Members
	Output   flagset.Output
	Results  Results
	Watching flagset.Watching
}

// mostParallel bounds --max-parallel.
const mostParallel = 200

func (r *Request) add(c *cobra.Command, client *cli.Client, timeout time.Duration) {
	const parallel, limit, interval = 10, 50, time.Minute
	r.Members.add(c)
	c.Flags().IntVar(&r.Parallel, "max-parallel", parallel,
		fmt.Sprintf("Number of clusters to evaluate at the same time, 1 to %d.", mostParallel))
	c.Flags().DurationVar(&r.Timeout, "cluster-timeout", timeout, "Time limit for each cluster. A cluster that answers later is Unreachable.")
	option.Declare(c.Flags(), option.Option{Group: option.Clusters, Effect: option.OnDisplay}, "max-parallel")
	// a check that ends later has no result
	option.Declare(c.Flags(), option.Option{Group: option.Clusters, Effect: option.OnAnswer}, "cluster-timeout")
	r.Results.add(c)
	r.Output.AddText(c, tableview.Table{})
	flagset.LimitFlag(c, &r.Limit, limit)
	client.QuietFlag(c)
	r.Watching.Add(c, interval, "Ctrl-C")
}

func (r *Request) check(flags *pflag.FlagSet) error {
	switch {
	case r.Results.MaxAge <= 0:
		return fmt.Errorf("--max-age=%s: it must be positive", r.Results.MaxAge)
	case r.Parallel < 1 || r.Parallel > mostParallel:
		return fmt.Errorf("--max-parallel=%d: it must be 1 to %d", r.Parallel, mostParallel)
	case r.Timeout < time.Second:
		return fmt.Errorf("--cluster-timeout=%s: it must be at least 1s", r.Timeout)
	}
	return errors.Join(r.Watching.Check(), flagset.CheckLimit(r.Limit), r.Members.check(flags))
}

// show asks the members, and writes the table: once, or again with --watch.
func (r *Request) show(c *cobra.Command, client *cli.Client, to string, asking survey.Survey, judge survey.Evaluate) error {
	out, err := r.Output.Open(client.Streams.Out, tableview.Table{})
	if err != nil {
		return err
	}
	defer out.Close()
	out.Style.Limit, out.Style.AllHint = flagset.LimitOf(r.Limit), "--limit 0"
	shown := r.Watching.Watched(out, client)
	asking.Parallel = r.Parallel
	return r.Watching.Repeat(c.Context(), shown, flagset.Unwatched, func() (bool, error) {
		members, notices, err := r.Members.list(c.Context(), client)
		if err != nil {
			return false, err
		}
		asking.Complete = r.Members.noted(phrase.OfFleet(c, to).Row)
		rows, kept := ask(c.Context(), client, asking, measured(judge, to), members)
		table := fleet.Of(to, rows)
		table.Time, table.ToolVersion = words.Time(time.Now()), program.Version()
		table.Notices = slices.Concat(notices, table.Notices)
		if r.Watching.Watch && isInterrupted(c.Context()) {
			return true, nil // what was interrupted is not the state of a cluster
		}
		if err := shown.Write(tableview.Table{Table: table}, untimed(table)); err != nil || r.Watching.Watch {
			return false, errors.Join(err, kept)
		}
		if kept != nil {
			return true, kept
		}
		if c.Context().Err() != nil {
			return true, context.Cause(c.Context())
		}
		return true, exitcode.OfFleet(table.Decision)
	})
}

func isInterrupted(ctx context.Context) bool { return ctx.Err() != nil }

// untimed is the table without the times that differ at every survey.
func untimed(table fleet.Table) fleet.Table {
	table.Time = ""
	table.Rows = slices.Clone(table.Rows)
	for i := range table.Rows {
		table.Rows[i].Observed, table.Rows[i].Until = "", ""
	}
	return table
}

// ask makes the rows, and shows the progress. The error is about results that could not be kept.
func ask(ctx context.Context, client *cli.Client, asking survey.Survey, judge survey.Evaluate, members []roster.Member) ([]fleet.Row, error) {
	display := client.Display(terminal.About{})
	defer display.Close()
	display.Step("asking " + words.Count(len(members), "cluster"))
	interrupted := newInterruption(client.Streams.ErrOut, display, members)
	defer interrupted.remind()()
	if asking.Grace > 0 {
		defer interrupted.watch(ctx)()
	}
	asking.Progress = func(done, all, member int, row fleet.Row) {
		text := fmt.Sprintf("%d of %d: %s: %s", done, all, row.Cluster.Name, row.State)
		if row.Message != "" {
			text += ": " + row.Message
		}
		interrupted.answered(member, text)
	}
	return asking.Rows(ctx, members, judge)
}

// measured adds to each row the last update of the cluster and how far the update to a version is.
func measured(judge survey.Evaluate, to string) survey.Evaluate {
	return func(ctx context.Context, member roster.Member, reached roster.Connection) (fleet.Row, error) {
		row, err := judge(ctx, member, reached)
		if err != nil {
			return row, err
		}
		return survey.Measured(ctx, row, reached.Cluster, reached.Estate, to), nil
	}
}

// installed is the row of a cluster that runs the release already, by the error of its judgement; false for another error.
func installed(member roster.Member, reached roster.Connection, to string, failure error) (fleet.Row, bool) {
	already, is := errors.AsType[*scene.InstalledError](failure)
	if !is {
		return fleet.Row{}, false
	}
	row := fleet.Row{
		Cluster: member.Cluster, State: fleet.Updated, Version: already.Version, Target: to,
		Message: "it runs " + words.External(already.Version) + " already; nothing was evaluated", Observed: words.Time(reached.Cluster.Now()),
	}
	row.Cluster.ID = already.ClusterID
	return row, true
}

// RunOptions are the flags of "fleet run".
type RunOptions struct {
	// Run has the flags of "run" that are the same for all clusters.
	Run     running.RunOptions
	Request Request
}

func newRun(client *cli.Client) *cobra.Command {
	var flags RunOptions
	c := &cobra.Command{
		Use:   "run --to VERSION",
		Short: "Run the preflight in many clusters, and show one table of verdicts",
		Long: `Run the whole preflight of an update in many clusters, as "run" does in one: the release is verified with the keys of each cluster, its checks run there as read-only Jobs, and each run is recorded in its cluster. Nothing is updated, and the Jobs are deleted at the end.

For an archive no checks are run, so the decision is Undecided at best.

Ctrl-C ends all runs, and deletes what they have created.
` + exitCodes,
		Example: `  # May these clusters be updated?
  oc preflight fleet run --contexts 'prod-*' --to 4.19.12

  # Twenty clusters at the same time, at most half an hour each
  oc preflight fleet run --kubeconfigs ./clusters --to 4.19.12 --max-parallel 20 --cluster-timeout 30m

  # With the risks that the fleet accepts
  oc preflight fleet run --contexts 'prod-*' --to 4.19.12 --accept-file accepted-risks.yaml`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return flagset.Execute(c, flags, func() error { return run(c, client, flags) })
		},
	}
	c.Flags().Var(flagset.UpdateValue(&flags.Run.Source.Target.Release.Version), "to", "Version of the update.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates},
		"to")
	flags.Run.AddForFleet(c)
	flags.Request.add(c, client, runner.DefaultTimeout)
	client.Roles.Declare(c, membersRole("run"))
	return c
}

// removalTime is the time in which a run that has exceeded its limit may delete what it created.
const removalTime = time.Minute

func run(c *cobra.Command, client *cli.Client, flags RunOptions) error {
	if err := flags.Request.check(c.Flags()); err != nil {
		return exitcode.BadUsage(err)
	}
	if flags.Run.Source.Target.Release.Version == "" {
		return exitcode.BadUsage(errors.New("--to is required: the version to update the clusters to"))
	}
	if err := flagset.CheckVersion(flags.Run.Source.Target.Release.Version); err != nil {
		return exitcode.BadUsage(err)
	}
	asking := survey.Survey{Timeout: flags.Request.Timeout + removalTime, Grace: removalTime}
	if _, err := flags.Run.Judge.ReadAll(c.Context()); err != nil {
		return err
	}
	flags.Run.ExplainDryRun(client.Streams.ErrOut)
	kept, err := flags.Request.Results.open(c)
	if err != nil {
		return err
	}
	if kept != nil {
		asking.Store = kept
	}
	return flags.Request.show(c, client, flags.Run.Source.Target.Release.Version, asking,
		func(ctx context.Context, member roster.Member, reached roster.Connection) (fleet.Row, error) {
			return flags.judge(ctx, client, member, reached, kept)
		})
}

func (f RunOptions) judge(ctx context.Context, client *cli.Client, member roster.Member, reached roster.Connection,
	kept *results.Directory,
) (fleet.Row, error) {
	f.Run.Judge.Member = &flagset.Member{Name: member.Cluster.Name, Labels: member.Cluster.Labels}
	options, err := f.Run.Options(ctx, client, reached.Cluster)
	if err != nil {
		return fleet.Row{}, err
	}
	options.Limits.Timeout, options.Estate, options.Access.Partial = f.Request.Timeout, reached.Estate, true
	judged, err := runner.Run(ctx, reached.Cluster, f.Run.Source.Target.Release, options)
	if row, is := installed(member, reached, f.Run.Source.Target.Release.Version, err); is {
		return row, nil
	}
	if judged.Verdict.Decision == "" {
		return fleet.Row{}, err
	}
	row := fleet.OfReport(member.Cluster, judged)
	if err != nil { // something of the run is left in the cluster
		row.Message = words.External(err.Error())
	}
	if kept == nil {
		return row, nil
	}
	if err := kept.KeepReport(member, judged); err != nil {
		row.Message = words.External("the report was not stored: " + err.Error())
	}
	return row, nil
}

// interruption states what the interrupt of a survey that creates objects means, and ends the program
// at the second one.
type interruption struct {
	stderr  io.Writer
	display terminal.Display

	mutex sync.Mutex
	// asked are the members that have no row yet, by their index.
	asked map[int]fleet.Cluster
}

func newInterruption(stderr io.Writer, display terminal.Display, members []roster.Member) *interruption {
	i := &interruption{stderr: stderr, display: display, asked: map[int]fleet.Cluster{}}
	for at, member := range members {
		i.asked[at] = member.Cluster
	}
	return i
}

// answered shows the progress of a row, and removes its member.
func (i *interruption) answered(member int, progress string) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.display.Step(progress)
	delete(i.asked, member)
}

// reminderPause is the time after which the members that have no row yet are named again.
const reminderPause = 10 * time.Second

// remind names the members that have no row yet, again and again until the returned function is called.
func (i *interruption) remind() func() {
	ticker, ended := time.NewTicker(reminderPause), make(chan struct{})
	var reminding sync.WaitGroup
	reminding.Go(func() {
		for {
			select {
			case <-ticker.C:
				i.mutex.Lock()
				if len(i.asked) > 0 {
					i.display.Step("waiting for " + i.names(mostReminded))
				}
				i.mutex.Unlock()
			case <-ended:
				return
			}
		}
	})
	return func() {
		ticker.Stop()
		close(ended)
		reminding.Wait()
	}
}

// How many members a reminder and an error name.
const mostReminded, mostNamed = 5, 20

// names lists the members that have no row yet.
func (i *interruption) names(most int) string {
	const longestName = 100
	var names []string
	for _, at := range slices.Sorted(maps.Keys(i.asked)) {
		names = append(names, words.Line(i.asked[at].Name, longestName))
	}
	return words.List(names, most)
}

// watch waits for the end of ctx, which is the first interrupt, until the returned function is called.
func (i *interruption) watch(ctx context.Context) func() {
	return terminal.OnInterrupts(ctx, i.state, i.leave)
}

// state states what the first interrupt means.
func (i *interruption) state() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.display.Clear()
	fmt.Fprintln(i.stderr, "interrupted: deleting what the runs have created; Ctrl-C again stops at once")
}

// leave ends the program at once.
func (i *interruption) leave() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	fmt.Fprintf(i.stderr, "stopped without clean-up; Jobs of the runs may still be in %s. Delete them with \"cleanup\" in each, or "+
		"run the command again\n", i.names(mostNamed))
	os.Exit(exitcode.Interrupted)
}
