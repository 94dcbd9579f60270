package command

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/runner"
)

// pathFlags select a path of updates instead of one release.
type pathFlags struct {
	path  bool
	hops  []string
	minor string
	graph graphFlags
}

func (f *pathFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.path, "path", false, "Check each update of the best path to the target, as \"plan\" finds it. --to names any release of the update graph, and --to-latest is the default.")
	c.Flags().StringArrayVar(&f.hops, "hop", nil, "Version or pull spec of the next release of a path to check; repeated in order, the last is the target.")
	c.Flags().StringVar(&f.minor, "to-minor", "", "With --path: minor version of the target, such as 4.18: its newest release that can be reached.")
	f.graph.add(c)
}

// requested reports whether a path is.
func (f pathFlags) requested() bool { return f.path || len(f.hops) > 0 }

// check rejects flags that exclude each other or have no effect.
func (f pathFlags) check(target targetFlags, stored pullFlags) error {
	named := 0
	for _, set := range []bool{target.target.Version != "", target.target.Latest, f.minor != ""} {
		if set {
			named++
		}
	}
	switch {
	case f.path && len(f.hops) > 0:
		return errors.New("--path and --hop exclude each other")
	case len(f.hops) > 0 && named > 0, f.requested() && target.target.Image != "":
		return errors.New("--hop takes no other target, and --path no --to-image")
	case f.path && named > 1:
		return errors.New("--to, --to-minor and --to-latest exclude each other")
	case !f.requested() && (f.minor != "" || f.graph.given()):
		return errors.New("--to-minor, --channel, --graph, --arch and --offline require --path or --hop")
	}
	return errors.Join(f.graph.validate(stored), checkMinor(f.minor))
}

// flag selects the same path again.
func (f pathFlags) flag(target targetFlags) string {
	text := "--path"
	switch {
	case len(f.hops) > 0:
		text = "--hop " + strings.Join(f.hops, " --hop ")
	case f.minor != "":
		text += " --to-minor " + f.minor
	case target.target.Version != "":
		text += " --to " + target.target.Version
	}
	return text + f.graph.flag()
}

// request is that of the flags, with the files read.
func (f runFlags) request(ctx context.Context, client *client) (runner.PathRequest, error) {
	plan, err := f.route.graph.request(ctx, client, f.pullFlags)
	plan.Target = updateplan.Target{Version: f.target.Version, Minor: f.route.minor}
	request := runner.PathRequest{Plan: plan}
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
	options.Observer = &observer{display: display, prompt: prompt, write: func(report.Report) error { return nil }}
	options.OnInterrupt = prompt.choose
	made, err := runner.RunPath(c.Context(), reached, request, options)
	display.close()
	if made.Kind == "" {
		return flags.late(err)
	}
	written := flags.out.write(withPathCommands(made, c.Root().CommandPath(), flags.route.flag(flags.targetFlags)))
	prompt.reportRemovals(made.Updates)
	if err := errors.Join(flags.late(err), written); err != nil {
		return err
	}
	return exitOfPath(made)
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
