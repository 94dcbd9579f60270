package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/progress"
)

// conduct runs a preflight, and shows it while it runs and when it ends.
func conduct(c *cobra.Command, client *client, flags runFlags, options runner.Options, start func(context.Context, runner.Options) (report.Report, error)) error {
	display := client.display(flags.about(c, client))
	prompt := &interruptPrompt{streams: client.streams, quiet: client.quiet, how: flags.onInterrupt, display: display, program: c.Root().CommandPath()}
	defer prompt.watch(c.Context())()
	follower := &observer{Observer: progressOnly(display), prompt: prompt, write: func(decided report.Report) error {
		request := phraseOf(c)
		request.target = flags.selected()
		return flags.out.write(request.withCommands(decided))
	}}
	options.Hooks.Observer, options.Hooks.OnInterrupt = follower, prompt.choose
	decided, err := start(c.Context(), options)
	display.close()
	prompt.reportRemoval(decided)
	if err := errors.Join(flags.late(err), follower.failure); err != nil {
		return err
	}
	return exitOf(decided)
}

// about is the run for its display.
func (f *runFlags) about(c *cobra.Command, client *client) about {
	return about{
		decides: true, target: f.target.Version, limit: f.timeout, interrupt: f.interruption(client.streams.In), program: c.Root().CommandPath(),
	}
}

// interruption is the effect of Ctrl-C, where the answers are read from in.
func (f *runFlags) interruption(in io.Reader) string {
	switch {
	case f.onInterrupt == string(runner.Detach):
		return "detach"
	case f.onInterrupt == ask:
		if _, ok := terminal(in); ok {
			return "detach or clean up"
		}
	}
	return "clean up"
}

// late adds the time limit to the error of a run that exceeded it.
func (f *runFlags) late(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the run did not reach a verdict within --timeout %s: %w", f.timeout, err)
	}
	return err
}

// observer shows a run, and writes its report.
type observer struct {
	progress.Observer

	prompt *interruptPrompt
	write  func(report.Report) error
	// failure is the error of writing the report.
	failure error
}

func (o *observer) Started(run string) {
	o.prompt.started(run)
	o.Observer.Started(run)
}

func (o *observer) Decided(decided report.Report) {
	o.Observer.Decided(decided)
	o.failure = o.write(decided)
}
