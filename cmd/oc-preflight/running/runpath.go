package running

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/updateplan/planner"
	"github.com/openshift/update-preflight/runner"
)

// request selects the path that the flags name. It reads their files.
func (f RunFlags) request(ctx context.Context, client *cli.Client) (runner.PathRequest, error) {
	source, err := f.route.graph.Request(ctx, client, f.Source.Pull)
	request := runner.PathRequest{Plan: planner.Request{
		Target: updateplan.Target{Version: f.Source.Target.Release.Version, Minor: f.route.minor}, Graph: source, Logger: client.Log,
	}}
	for _, hop := range f.route.hops {
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
func runPath(c *cobra.Command, client *cli.Client, flags RunFlags, reached *cluster.Cluster, options runner.Options) error {
	request, err := flags.request(c.Context(), client)
	if err != nil {
		return err
	}
	display := client.Display(flags.about(c, client))
	prompt := &interruptPrompt{streams: client.Streams, quiet: client.Quiet, how: flags.onInterrupt, display: display, again: phrase.Of(c)}
	defer prompt.watch(c.Context())()
	options.Hooks.Observer = &observer{Observer: terminal.ProgressOnly(display), prompt: prompt, write: func(report.Report) error { return nil }}
	options.Hooks.OnInterrupt = prompt.choose
	made, err := runner.RunPath(c.Context(), reached, request, options)
	display.Close()
	if made.Kind == "" {
		return flags.withTimeLimit(err)
	}
	again := phrase.Of(c)
	again.Target = flags.route.flag(flags.Source.Target)
	written := flags.out.Write(again.WithPathCommands(made))
	prompt.reportRemovals(made.Updates)
	if err := errors.Join(flags.withTimeLimit(err), written); err != nil {
		return err
	}
	return exitcode.OfPath(made)
}

// pathFlags select a path of updates instead of one release.
type pathFlags struct {
	path  bool
	hops  []string
	minor string
	graph flagset.Graph
}

func (f *pathFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.path, "path", false, "Check each update of the best path to the target: \"plan\" finds it. --to names any release of the update graph, and --to-latest is the default.")
	c.Flags().StringArrayVar(&f.hops, "hop", nil, "Next release of a path to check: version or pull spec; repeated in order, the last is the target.")
	c.Flags().StringVar(&f.minor, "to-minor", "", "With --path: minor version of the target, such as 4.18: its newest release that can be reached.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting}, "path", "to-minor")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates}, "hop")
	f.graph.Add(c)
}

// requested reports whether a path is.
func (f pathFlags) requested() bool { return f.path || len(f.hops) > 0 }

// check rejects values that are none.
func (f pathFlags) check() error {
	return errors.Join(f.graph.Validate(), flagset.CheckMinor(f.minor))
}

// flag selects the same path again, in the graph that other flags select.
func (f pathFlags) flag(target flagset.Target) phrase.Flags {
	path := phrase.FlagsOf("--path")
	switch {
	case len(f.hops) > 0:
		return phrase.FlagsOf(append([]string{"--hop"}, f.hops...)...)
	case f.minor != "":
		return append(path, phrase.FlagsOf("--to-minor", f.minor)...)
	case target.Release.Version != "":
		return append(path, phrase.FlagsOf("--to", target.Release.Version)...)
	}
	return path
}
