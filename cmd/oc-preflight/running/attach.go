package running

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/runs"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/document/reportview"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/updateplan/planner"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
)

// NewAttach returns the command "attach", which waits for a run in progress or continues it.
func NewAttach(client *cli.Client) *cobra.Command {
	var flags RunOptions
	c := &cobra.Command{
		Use:   "attach [RUN]",
		Short: "Wait for a run in progress, or continue it if its process ended",
		Long: `Attach to a run in progress. Results reported so far are shown at once. If another process holds the run, this command waits for its end; otherwise it continues the run, without launching a check twice. For a run that has ended, it shows the status.

RUN is the ID of the run or a prefix of it; without it, it is the run in progress. The values of --accept, --keyring and similar flags are not recorded: pass them again. The values of --keyring, --signature-store, --repository, --prometheus and --dependency must be the same as when the run started. For a later update of a path, also pass the flags about the update graph: without a graph that has the update, its risks are Unknown.
` + exitcode.Help,
		Example: `  # The run in progress
  oc preflight attach

  # After Ctrl-C and "detach", or from another machine
  oc preflight attach 3b6f2c1e

  # The run of a later update of a path, with the graph of the path
  oc preflight attach 3b6f2c1e --channel eus-4.18`,
		Args: flagset.Arguments(0, 1, "the ID of one run at most"),
		RunE: func(c *cobra.Command, args []string) error {
			flags.Run = flagset.First(args)
			return flagset.Execute(c, flags, func() error { return attach(c, client, flags) })
		},
	}
	flags.addCommon(c)
	client.QuietFlag(c)
	flags.Route.Graph.Add(c)
	return c
}

func attach(c *cobra.Command, client *cli.Client, flags RunOptions) error {
	if err := errors.Join(flags.checkCommon(), flags.Route.Graph.Validate()); err != nil {
		return exitcode.BadUsage(err)
	}
	out, err := flags.Output.Open(client.Streams.Out, reportview.Report{})
	if err != nil {
		return err
	}
	defer out.Close()
	flags.out, out.Style.Cluster = out, flags.Hosted.Subject(client)
	store, estate, err := runs.OpenHosted(c.Context(), client, flags.Hosted, runs.RecordNeeds())
	if err != nil {
		return err
	}
	found, err := store.InProgress(c.Context(), flags.Run)
	if err != nil {
		return err
	}
	if found.Phase != record.Running {
		return runs.Status(c, client, runs.StatusOptions{Run: found.ID, Hosted: flags.Hosted, Prometheus: flags.Judge.Prometheus}, out)
	}
	options, err := flags.Options(c.Context(), client, store.Cluster)
	if err != nil {
		return err
	}
	options.Estate = estate
	flags.Source.Target.Release.Version = found.Target.Version
	source, err := flags.Route.Graph.Request(c.Context(), client, flags.Source.Pull)
	if err != nil {
		return err
	}
	return runAndShow(c, client, flags, options, func(ctx context.Context, options runner.Options) (report.Report, error) {
		return runner.Attach(ctx, store.Cluster, found.ID, source, options)
	})
}

// Ask is the value of --on-interrupt that prompts the user.
const Ask = "ask"

func checkInterrupt(how string) error {
	ways := []string{Ask, string(runner.CleanUp), string(runner.Detach)}
	if slices.Contains(ways, how) {
		return nil
	}
	return fmt.Errorf("--on-interrupt=%s: it must be one of %s", how, strings.Join(ways, ", "))
}

// interruptPrompt decides what becomes of a run that the user interrupts.
type interruptPrompt struct {
	streams genericiooptions.IOStreams
	// how is the value of --on-interrupt.
	how string
	// again words the commands with which the user continues.
	again   phrase.Phrase
	display terminal.Display
	// quiet leaves out what needs no attention.
	quiet bool

	detached bool

	mutex sync.Mutex
	run   string
}

func (p *interruptPrompt) started(run string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.run = run
}

// watch ends the program on the second signal, until the returned function is
// called. The first one ends ctx.
func (p *interruptPrompt) watch(ctx context.Context) func() {
	return terminal.OnInterrupts(ctx, func() {}, p.leave)
}

// leave ends the program at once.
func (p *interruptPrompt) leave() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.run == "" {
		fmt.Fprintln(p.streams.ErrOut, "stopped without clean-up")
	} else {
		fmt.Fprintf(p.streams.ErrOut, "stopped without clean-up; the Jobs of run %s are still in the cluster. Continue with: %s\n", p.run,
			p.again.About("attach", p.run).Command)
	}
	os.Exit(exitcode.Interrupted)
}

// choose decides what becomes of the run.
func (p *interruptPrompt) choose(string) runner.Interruption {
	chosen := runner.Interruption(p.how)
	if p.how == Ask {
		chosen = p.ask()
	}
	p.detached = chosen == runner.Detach
	return chosen
}

// ask asks the user on a terminal, and repeats the question until the answer is
// one of the two. Without a terminal, or at the end of the input, the run is
// cleaned up.
func (p *interruptPrompt) ask() runner.Interruption {
	in, ok := terminal.Of(p.streams.In)
	if !ok {
		return runner.CleanUp
	}
	p.display.Clear()
	lines := bufio.NewReader(in)
	for {
		fmt.Fprint(p.streams.ErrOut, "interrupted: [c]lean up the run, or [d]etach and let its checks run? [c/d] ")
		line, err := lines.ReadString('\n')
		switch answer := strings.ToLower(strings.TrimSpace(line)); {
		case answer == "d" || answer == "detach":
			return runner.Detach
		case answer == "c" || answer == "clean" || err != nil:
			return runner.CleanUp
		}
	}
}

// reportRemoval writes what became of the objects of a run, after the report,
// which lists them. On a terminal, success is not written: the report would scroll.
func (p *interruptPrompt) reportRemoval(removed report.Report) {
	w := p.streams.ErrOut
	_, scrolls := terminal.Of(p.streams.Out)
	if removed.Removal != nil {
		runs.ReportForeign(w, removed.Removal.Foreign, removed.Run.ID)
	}
	switch {
	case p.detached:
		fmt.Fprintf(w, "the checks of run %s continue in the cluster; come back with: %s\n", removed.Run.ID,
			p.again.About("attach", removed.Run.ID).Command)
	case removed.Removal == nil && len(removed.Created) > 0:
		fmt.Fprintf(w, "%s of the run left in the cluster for inspection; to delete: %s\n", words.Count(len(removed.Created), "object"),
			p.again.About("cleanup", removed.Run.ID).Command)
	case removed.Removal == nil:
	case len(removed.Removal.Left) == 0 && (p.quiet || scrolls || len(removed.Removal.Deleted) == 0):
	case len(removed.Removal.Left) == 0:
		fmt.Fprintf(w, "deleted %s of the run; a final list found none left\n", words.Count(len(removed.Removal.Deleted), "object"))
	default:
		for _, object := range removed.Removal.Left {
			fmt.Fprintf(w, "not deleted: %s\n", object)
		}
	}
}

// reportRemovals is reportRemoval for each update of a path, of which the last may have
// been detached from.
func (p *interruptPrompt) reportRemovals(updates []report.Report) {
	detached := p.detached
	for i, each := range updates {
		p.detached = detached && i == len(updates)-1
		p.reportRemoval(each)
	}
}

// request selects the path that the flags name. It reads their files.
func (f RunOptions) request(ctx context.Context, client *cli.Client) (runner.PathRequest, error) {
	source, err := f.Route.Graph.Request(ctx, client, f.Source.Pull)
	request := runner.PathRequest{Plan: planner.Request{
		Target: updateplan.Target{Version: f.Source.Target.Release.Version, Minor: f.Route.Minor}, Graph: source, Logger: client.Log,
	}}
	for _, hop := range f.Route.Hops {
		if flagset.LooksLikeImage(hop) {
			request.Hops = append(request.Hops, runner.Target{Image: hop})
			continue
		}
		request.Hops = append(request.Hops, runner.Target{Version: hop})
	}
	return request, err
}

// runPath runs the preflights of a path, shows them while they run, and writes the
// document of the path at the end.
func runPath(c *cobra.Command, client *cli.Client, flags RunOptions, reached *cluster.Cluster, options runner.Options) error {
	request, err := flags.request(c.Context(), client)
	if err != nil {
		return err
	}
	display := client.Display(flags.about(c, client))
	prompt := &interruptPrompt{streams: client.Streams, quiet: client.Quiet, how: flags.OnInterrupt, display: display, again: phrase.Of(c)}
	defer prompt.watch(c.Context())()
	options.Hooks.Observer = &observer{
		Observer: terminal.ProgressOnly(display), prompt: prompt,
		write: func(report.Report) error { return nil },
	}
	options.Hooks.OnInterrupt = prompt.choose
	made, err := runner.RunPath(c.Context(), reached, request, options)
	display.Close()
	if made.Kind == "" {
		return flags.withTimeLimit(err)
	}
	again := phrase.Of(c)
	again.Target = flags.Route.flag(flags.Source.Target)
	written := flags.out.Write(again.WithPathCommands(made))
	prompt.reportRemovals(made.Updates)
	if err := errors.Join(flags.withTimeLimit(err), written); err != nil {
		return err
	}
	return exitcode.OfPath(made)
}

// Route are the flags that select a path of updates instead of one release.
type Route struct {
	// Path is true for the best path to the target.
	Path bool
	// Hops are the releases of the path, by version or pull spec, in order.
	Hops []string
	// Minor is the minor version of the target of the best path.
	Minor string

	Graph flagset.Graph
}

func (f *Route) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.Path, "path", false, "Check each update of the best path to the target: see \"plan\". --to can name any "+
		"release of the update graph; the default is --to-latest.")
	c.Flags().StringArrayVar(&f.Hops, "hop", nil,
		"Next release of a path to check: its version or pull spec. Repeat in order; the last is the target.")
	c.Flags().StringVar(&f.Minor, "to-minor", "",
		"With --path: minor version of the target, such as 4.18; its newest reachable release is the target.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting}, "path", "to-minor")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates},
		"hop")
	f.Graph.Add(c)
}

// requested reports whether a path is.
func (f Route) requested() bool { return f.Path || len(f.Hops) > 0 }

// check rejects values that are none.
func (f Route) check() error {
	return errors.Join(f.Graph.Validate(), flagset.CheckMinor(f.Minor))
}

// flag selects the same path again, in the graph that other flags select.
func (f Route) flag(target flagset.Target) phrase.Flags {
	path := phrase.FlagsOf("--path")
	switch {
	case len(f.Hops) > 0:
		return phrase.FlagsOf(append([]string{"--hop"}, f.Hops...)...)
	case f.Minor != "":
		return append(path, phrase.FlagsOf("--to-minor", f.Minor)...)
	case target.Release.Version != "":
		return append(path, phrase.FlagsOf("--to", target.Release.Version)...)
	}
	return path
}
