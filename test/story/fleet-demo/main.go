// Fleet-demo shows the preflight of a fleet: five local clusters, of which four have a cause against the
// update, each another one, and one does not answer. One table has the causes, one command is the remedy
// of each, and a regression in the first wave closes the gate to the second, and blocks its clusters.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openshift/update-preflight/test/story/script"
	"github.com/openshift/update-preflight/test/story/terminal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	directory, err := os.MkdirTemp("", "preflight-fleet-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	t, err := terminal.New(os.Stdout, directory)
	if err != nil {
		return err
	}
	fleet, stop, err := script.OpenFleet(ctx, t)
	defer func() { err = errors.Join(err, stop(ctx)) }()
	if err != nil {
		return err
	}
	return fleet.Update(ctx)
}
