// Run runs the tests of the repository. With -only it runs some of them, with -changed only
// those that depend on what has changed lately. It runs in the root of the repository.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/suite"
)

func main() {
	var wanted selection
	flag.StringVar(&wanted.only, "only", "", "run only these tests: \"unit\" (those that need no cluster), \"race\" (those of clusters under the race detector), "+
		"\"release\" (oracles and what is released), \"faults\" or \"attacks\"; without it those of every promise")
	flag.BoolVar(&wanted.changed, "changed", false, "run only the tests of packages that depend on what has changed since the newest commit that is more than a day old")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	start := time.Now()
	runner := suite.NewRunner(".", os.Stdout)
	err := run(ctx, runner, wanted)
	stop()
	printUsage(runner.Used(), time.Since(start))
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// selection is which tests run.
type selection struct {
	only    string
	changed bool
}

func run(ctx context.Context, runner *suite.Runner, wanted selection) error {
	var err error
	if runner.Measure, err = buildMeasure(ctx); err != nil {
		return err
	}
	all, err := suite.List(ctx, ".")
	if err == nil && wanted.changed {
		all, err = changedOf(ctx, all)
	}
	if err != nil {
		return err
	}
	switch wanted.only {
	case "":
		err = runner.Run(ctx, suite.Unit(all)...)
		if ctx.Err() != nil {
			return err
		}
		return errors.Join(err, onClusters(ctx, runner, suite.Cluster(all)))
	case "unit":
		return runner.Run(ctx, suite.Unit(all)...)
	case "race":
		return onClusters(ctx, runner, suite.Race(all))
	case "release":
		return onClusters(ctx, runner, suite.Release(all))
	case "faults":
		return runner.Run(ctx, suite.Faults())
	case "attacks":
		return runner.Run(ctx, suite.Attacks())
	default:
		return fmt.Errorf("-only %q: want unit, race, release, faults or attacks", wanted.only)
	}
}

// changedOf are the packages that depend on what has changed.
func changedOf(ctx context.Context, all []suite.Package) ([]suite.Package, error) {
	changes, err := suite.ChangesSinceYesterday(ctx, ".")
	if err != nil {
		return nil, err
	}
	if changes.Since == "" {
		fmt.Println("no commit is more than a day old: all packages count as changed")
		return all, nil
	}
	touched := changes.Touch(all)
	fmt.Printf("%d of %d packages depend on what has changed since %s\n", len(touched), len(all), changes.Since)
	return touched, nil
}

// featureSets are those of the shared control planes.
func featureSets() []string { return []string{"Default", "TechPreviewNoUpgrade"} }

// onClusters runs lanes on clusters. One of them has the packages that use the shared
// control planes, one at a time.
func onClusters(ctx context.Context, runner *suite.Runner, lanes []suite.Lane) error {
	if !slices.ContainsFunc(lanes, func(l suite.Lane) bool { return len(l.Packages) > 0 }) {
		fmt.Println("no tests to run")
		return nil
	}
	dir, err := os.MkdirTemp("", "preflight-shared-")
	if err != nil {
		return err
	}
	shared, err := cluster.Share(ctx, dir, featureSets()...)
	if err != nil {
		return err
	}
	runner.Environment = []string{shared.Environment()}
	err = errors.Join(runner.Run(ctx, lanes...), shared.Stop(ctx))
	if err != nil {
		return fmt.Errorf("%w\nthe logs of the shared control planes are in %s", err, dir)
	}
	return os.RemoveAll(dir)
}

// measure is the program that measures the tests.
const measure = "./test/suite/measure"

// buildMeasure builds the program that measures the tests, always at the same path, since
// the Go tool caches the results of tests by it. It needs Linux.
func buildMeasure(ctx context.Context) (string, error) {
	if runtime.GOOS != "linux" {
		return "", nil
	}
	path, err := filepath.Abs(filepath.Join("bin", "measure"))
	if err != nil {
		return "", err
	}
	output, err := exec.CommandContext(ctx, "go", "build", "-o", path, measure).CombinedOutput() //nolint:gosec // our own program
	if err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", measure, err, output)
	}
	return path, nil
}

// printUsage prints the processor time by kind and its sum. What is neither a test's nor
// the Go tool's is that of the shared control plane and of this program's own calls.
func printUsage(used suite.Usage, took time.Duration) {
	var all syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &all); err != nil {
		fmt.Fprintln(os.Stderr, "read the processor time:", err)
	}
	total := time.Duration(all.Utime.Nano() + all.Stime.Nano())
	fmt.Printf("took %s; CPU s: tests %.0f, builds %.0f, shared control plane and listing %.0f, together %.0f\n",
		took.Round(time.Second), used.Tests.Seconds(), used.Build.Seconds(), (total - used.Tests - used.Build).Seconds(), total.Seconds())
}
