package running

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/progress"
)

// runAndShow runs a preflight, and shows it while it runs and when it ends.
func runAndShow(c *cobra.Command, client *cli.Client, flags RunFlags, options runner.Options, start func(context.Context, runner.Options) (report.Report, error)) error {
	display := client.Display(flags.about(c, client))
	prompt := &interruptPrompt{streams: client.Streams, quiet: client.Quiet, how: flags.onInterrupt, display: display, again: phrase.Of(c)}
	defer prompt.watch(c.Context())()
	follower := &observer{Observer: terminal.ProgressOnly(display), prompt: prompt, write: func(decided report.Report) error {
		request := phrase.Of(c)
		request.Target = phrase.FlagsOf(flags.Source.Target.Selected()...)
		return errors.Join(flags.out.Write(request.WithCommands(decided)), flags.signed.Write(decided))
	}}
	options.Hooks.Observer, options.Hooks.OnInterrupt = follower, prompt.choose
	decided, err := start(c.Context(), options)
	display.Close()
	prompt.reportRemoval(decided)
	if err := errors.Join(flags.withTimeLimit(err), follower.failure); err != nil {
		return err
	}
	return exitcode.Of(decided)
}

func (f *RunFlags) about(c *cobra.Command, client *cli.Client) terminal.About {
	return terminal.About{
		Decides: true, Target: f.Source.Target.Release.Version, Limit: f.timeout, Interrupt: f.interruption(client.Streams.In), Program: c.Root().CommandPath(),
	}
}

// interruption is the effect of Ctrl-C, where the answers are read from in.
func (f *RunFlags) interruption(in io.Reader) string {
	switch {
	case f.onInterrupt == string(runner.Detach):
		return "detach"
	case f.onInterrupt == Ask:
		if _, ok := terminal.Of(in); ok {
			return "detach or clean up"
		}
	}
	return "clean up"
}

// withTimeLimit adds the time limit to the error of a run that exceeded it.
func (f *RunFlags) withTimeLimit(err error) error {
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
