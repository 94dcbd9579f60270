// Command oc-preflight tells, before a cluster is updated, whether it is safe
// to go to a release, and if not, what exactly must be done.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
)

// gcPercent is less than a third of Go's default: a run of a thousand checks has
// 30 MiB that it needs, and may well take a little more CPU time to have no 30
// more of garbage.
const gcPercent = 30

func main() {
	debug.SetGCPercent(gcPercent)
	// client-go logs through klog whatever it retries; the user is told of it
	// by findings and progress instead. Once and here: klog's logger is global.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the run in order; from then on the next one kills.
	context.AfterFunc(ctx, stop)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(command.Execute(ctx, os.Args, streams))
}
