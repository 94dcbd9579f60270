// Programs builds the programs that a demo or the tests run. It runs in the root of the
// repository.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/openshift/update-preflight/test/build"
)

func main() {
	purpose := flag.String("for", string(build.Tests), "what the programs are for")
	bin := flag.String("o", "bin", "the directory for the programs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	steps, err := build.For(".", build.Purpose(*purpose))
	if err == nil {
		err = run(ctx, *bin, steps)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run builds the steps, and reports the progress more often on a terminal.
func run(ctx context.Context, bin string, steps []build.Step) error {
	builder := build.Builder{Root: ".", Bin: bin, Out: os.Stdout, Interval: 30 * time.Second}
	if term.IsTerminal(int(os.Stdout.Fd())) {
		builder.Terminal, builder.Interval = true, time.Second
	}
	return builder.Run(ctx, steps...)
}
