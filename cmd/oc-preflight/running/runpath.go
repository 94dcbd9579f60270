package running

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
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
