package command

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/internal/program"
)

// startLog sends the log of this program and of client-go, which uses klog, to
// standard error. Without verbosity there is none: what client-go retries is shown
// as progress and findings instead.
func (c *client) startLog() {
	c.log = slog.New(slog.DiscardHandler)
	if c.verbosity > 0 {
		c.log = slog.New(slog.NewTextHandler(c.streams.ErrOut, &slog.HandlerOptions{Level: slog.Level(-c.verbosity)}))
	}
	program.LogTo(c.log, c.verbosity)
}

// quietFlag is --quiet of a command that shows progress.
func (c *client) quietFlag(verb *cobra.Command) {
	verb.Flags().BoolVar(&c.quiet, "quiet", false, "Show no progress on standard error; errors and what requires action are shown.")
}

// display shows progress, unless it is unwanted: live lines on a terminal, unless a log is written there
// too.
func (c *client) display(about about) display {
	switch {
	case c.quiet:
		return silent{}
	case c.verbosity > 0:
		return newPlain(c.streams.ErrOut)
	}
	return newDisplay(c.streams.ErrOut, about)
}
