package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/planner"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/runner"
)

// request is that of the flags, with the files read.
func (f runFlags) request(ctx context.Context, client *client) (runner.PathRequest, error) {
	source, err := f.route.graph.request(ctx, client, f.pullFlags)
	request := runner.PathRequest{Plan: planner.Request{
		Target: updateplan.Target{Version: f.target.Version, Minor: f.route.minor}, Graph: source, Logger: client.log,
	}}
	for _, hop := range f.route.hops {
		if looksLikeImage(hop) {
			request.Hops = append(request.Hops, runner.Target{Image: hop})
			continue
		}
		request.Hops = append(request.Hops, runner.Target{Version: hop})
	}
	return request, err
}

// runPath runs the preflights of a path, shows them while they run, and writes the
// document of the path at the end.
func runPath(c *cobra.Command, client *client, flags runFlags, reached *cluster.Cluster, options runner.Options) error {
	request, err := flags.request(c.Context(), client)
	if err != nil {
		return err
	}
	display := client.display(flags.about(c, client))
	prompt := &interruptPrompt{streams: client.streams, quiet: client.quiet, how: flags.onInterrupt, display: display, program: c.Root().CommandPath()}
	defer prompt.watch(c.Context())()
	options.Hooks.Observer = &observer{Observer: progressOnly(display), prompt: prompt, write: func(report.Report) error { return nil }}
	options.Hooks.OnInterrupt = prompt.choose
	made, err := runner.RunPath(c.Context(), reached, request, options)
	display.close()
	if made.Kind == "" {
		return flags.late(err)
	}
	again := phraseOf(c)
	again.target = flags.route.flag(flags.targetFlags)
	written := flags.out.write(again.withPathCommands(made))
	prompt.reportRemovals(made.Updates)
	if err := errors.Join(flags.late(err), written); err != nil {
		return err
	}
	return exitOfPath(made)
}
