// Run runs the tests of the repository: with -unit those that need no cluster,
// with -faults those of faults, otherwise all. It runs in the root of the
// repository.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/openshift/update-preflight/test/suite"
)

func main() {
	unit := flag.Bool("unit", false, "run only the tests that need no cluster")
	faults := flag.Bool("faults", false, "run only the tests of faults")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	start := time.Now()
	err := run(ctx, *unit, *faults)
	stop()
	fmt.Printf("took %s\n", time.Since(start).Round(time.Second))
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, unit, faults bool) error {
	runner := suite.NewRunner(".", os.Stdout)
	if faults {
		return runner.Run(ctx, suite.Faults())
	}
	all, err := suite.List(ctx, ".")
	if err != nil {
		return err
	}
	err = runner.Run(ctx, suite.Unit(all)...)
	if unit || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, runner.Run(ctx, suite.Cluster(all)...))
}
