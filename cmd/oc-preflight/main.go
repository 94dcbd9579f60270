// Command oc-preflight decides, before a cluster is updated, whether it is safe
// to update to a release, and lists what must be done if it is not.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
)

// gcPercent is less than a third of Go's default: a run of a thousand checks has
// 30 MiB of live memory, and would hold as much garbage.
const gcPercent = 30

func main() {
	program.CollectGarbage(gcPercent)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal cancels the run; the next one stops the process.
	context.AfterFunc(ctx, stop)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(command.Execute(ctx, os.Args, streams))
}
