// Run runs the tests of the repository: with -only unit those that need no
// cluster, with -only faults those of faults, with -only attacks the attacks, otherwise
// all. It runs in the root of the repository.
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

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/suite"
)

func main() {
	only := flag.String("only", "", "run only these tests: \"unit\" (those that need no cluster), \"faults\" or \"attacks\"")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	start := time.Now()
	err := run(ctx, *only)
	stop()
	fmt.Printf("took %s\n", time.Since(start).Round(time.Second))
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string) error {
	runner := suite.NewRunner(".", os.Stdout)
	switch only {
	case "", "unit":
	case "faults":
		return runner.Run(ctx, suite.Faults())
	case "attacks":
		return runner.Run(ctx, suite.Attacks())
	default:
		return fmt.Errorf("-only %q: want unit, faults or attacks", only)
	}
	all, err := suite.List(ctx, ".")
	if err != nil {
		return err
	}
	err = runner.Run(ctx, suite.Unit(all)...)
	if only == "unit" || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, onClusters(ctx, runner, all))
}

// onClusters runs the tests that need clusters. One lane has the packages that use the
// shared control plane, one at a time.
func onClusters(ctx context.Context, runner *suite.Runner, all []suite.Package) error {
	dir, err := os.MkdirTemp("", "preflight-shared-")
	if err != nil {
		return err
	}
	shared, err := cluster.StartShared(ctx, dir)
	if err != nil {
		return err
	}
	runner.Environment = []string{shared.Environment()}
	err = errors.Join(runner.Run(ctx, suite.Cluster(all)...), shared.Stop(ctx))
	if err != nil {
		return fmt.Errorf("%w\nthe logs of the shared control plane are in %s", err, dir)
	}
	return os.RemoveAll(dir)
}
