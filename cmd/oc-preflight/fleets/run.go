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

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/running"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/results"
	"github.com/openshift/update-preflight/runner/fleet/roster"
	"github.com/openshift/update-preflight/runner/fleet/survey"
)

// runFlags are the flags of "fleet run".
type runFlags struct {
	run     running.RunFlags
	request request
}

func newRun(client *cli.Client) *cobra.Command {
	var flags runFlags
	c := &cobra.Command{
		Use:   "run --to VERSION",
		Short: "Run the preflight of many clusters, and give one table of verdicts",
		Long: `Run the whole preflight of an update in many clusters, as "run" does in one: the release is verified as each cluster would, its checks run as read-only Jobs there, and each run is recorded in its cluster. Nothing is updated, and the Jobs are deleted at the end.

In the cluster of an archive no checks are run, so it is Undecided at best.

Ctrl-C ends all runs, and deletes what they have created.
` + exitCodes,
		Example: `  # May these clusters be updated?
  oc preflight fleet run --contexts 'prod-*' --to 4.19.12

  # Twenty clusters at one time, at most half an hour for each
  oc preflight fleet run --kubeconfigs ./clusters --to 4.19.12 --max-parallel 20 --cluster-timeout 30m

  # With the risks that the fleet accepts
  oc preflight fleet run --contexts 'prod-*' --to 4.19.12 --accept-file accepted-risks.yaml`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return run(c, client, flags) },
	}
	c.Flags().Var(flagset.UpdateValue(&flags.run.Source.Target.Release.Version), "to", "Version of the update.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates}, "to")
	flags.run.AddForFleet(c)
	flags.request.add(c, client, runner.DefaultTimeout)
	client.Roles.Declare(c, membersRole("run"))
	return c
}

// removalTime is the time in which a run that has exceeded its limit may delete what it created.
const removalTime = time.Minute

func run(c *cobra.Command, client *cli.Client, flags runFlags) error {
	if err := flags.request.check(c.Flags()); err != nil {
		return exitcode.BadUsage(err)
	}
	if flags.run.Source.Target.Release.Version == "" {
		return exitcode.BadUsage(errors.New("--to is required: the version to which the clusters are to be updated"))
	}
	if err := flagset.CheckVersion(flags.run.Source.Target.Release.Version); err != nil {
		return exitcode.BadUsage(err)
	}
	asking := survey.Survey{Timeout: flags.request.timeout + removalTime, Grace: removalTime}
	if _, err := flags.run.Judge.ReadAll(c.Context()); err != nil {
		return err
	}
	flags.run.ExplainDryRun(client.Streams.ErrOut)
	kept, err := flags.request.results.open(c)
	if err != nil {
		return err
	}
	if kept != nil {
		asking.Store = kept
	}
	return flags.request.show(c, client, flags.run.Source.Target.Release.Version, asking, func(ctx context.Context, member roster.Member, reached roster.Connection) (fleet.Row, error) {
		return flags.judge(ctx, client, member, reached, kept)
	})
}

func (f runFlags) judge(ctx context.Context, client *cli.Client, member roster.Member, reached roster.Connection, kept *results.Directory) (fleet.Row, error) {
	f.run.Judge.Member = &flagset.Member{Name: member.Cluster.Name, Labels: member.Cluster.Labels}
	options, err := f.run.Options(ctx, client, reached.Cluster)
	if err != nil {
		return fleet.Row{}, err
	}
	options.Limits.Timeout, options.Estate, options.Access.Partial = f.request.timeout, reached.Estate, true
	judged, err := runner.Run(ctx, reached.Cluster, f.run.Source.Target.Release, options)
	if row, is := installed(member, reached, f.run.Source.Target.Release.Version, err); is {
		return row, nil
	}
	if judged.Verdict.Decision == "" {
		return fleet.Row{}, err
	}
	row := fleet.Judged(member.Cluster, judged)
	if err != nil { // something of the run is left in the cluster
		row.Message = words.External(err.Error())
	}
	if kept == nil {
		return row, nil
	}
	if err := kept.KeepReport(member, judged); err != nil {
		row.Message = words.External("the report was not kept: " + err.Error())
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
	fmt.Fprintf(i.stderr, "stopped without clean-up; Jobs of the runs may still be in %s. Delete them with \"cleanup\" in each, or run the command again\n", i.names(mostNamed))
	os.Exit(exitcode.Interrupted)
}
