// Run runs the tests of the repository. With -only it runs some of them, with -changed only
// those that a change concerns. It runs in the root of the repository.
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
	"strings"
	"syscall"
	"time"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/suite"
)

func main() {
	var wanted selection
	flag.StringVar(&wanted.only, "only", "",
		"run only these tests: \"unit\" (those that need no cluster), \"race\" (those of clusters under the race detector), "+
			"\"release\" (oracles and what is released), \"faults\" or \"attacks\"; without it those of every promise")
	flag.BoolVar(&wanted.changed, "changed", false,
		"run only what the change since the last green run of all these tests concerns, with a smoke set; "+
			"all of them if it was more than a day ago, or if it is not known what the change concerns")
	scope := flag.Bool("scope", false, "print what -changed would run of each level, and why, and run nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if *scope {
		err = printScopes(ctx)
	} else {
		err = run(ctx, wanted)
	}
	stop()
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

// level returns the level that is selected; none for a part of one.
func (s selection) level() (level suite.Level, ok bool) {
	switch s.only {
	case "":
		return suite.LevelTest, true
	case string(suite.LevelRace), string(suite.LevelRelease):
		return suite.Level(s.only), true
	default:
		return "", false
	}
}

// printScopes prints on one line what a change has to run before it lands.
func printScopes(ctx context.Context) error {
	all, err := suite.List(ctx, ".")
	if err != nil {
		return err
	}
	var scopes []string
	for _, level := range []suite.Level{suite.LevelTest, suite.LevelRace, suite.LevelRelease} {
		scope, err := suite.ScopeOf(ctx, ".", level, all, time.Now())
		if err != nil {
			return err
		}
		scopes = append(scopes, string(level)+": "+scope.Reason)
	}
	fmt.Println(strings.Join(scopes, "; "))
	return nil
}

// run runs the selected tests, and reports and records what they took.
func run(ctx context.Context, wanted selection) error {
	runner := suite.NewRunner(".", os.Stdout)
	if err := measure(ctx, runner); err != nil {
		return err
	}
	all, err := suite.List(ctx, ".")
	if err != nil {
		return err
	}
	level, ok := wanted.level()
	scope := suite.Scope{Packages: all, Whole: ok}
	if wanted.changed && ok {
		if scope, err = suite.ScopeOf(ctx, ".", level, all, time.Now()); err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", level, scope.Reason)
	}
	first, clusters, err := wanted.lanes(all, scope)
	if err != nil {
		return err
	}
	times, err := openTimes(ctx)
	if err != nil {
		return err
	}
	times.announce(runner, slices.Concat(first, clusters)...)
	err = runner.Run(ctx, first...)
	if ctx.Err() == nil {
		err = errors.Join(err, onClusters(ctx, runner, clusters))
	}
	err = errors.Join(err, times.report(runner, err == nil && scope.Whole && level == suite.LevelTest))
	if err != nil || !scope.Whole {
		return err
	}
	return recordGreen(ctx, level)
}

// recordGreen records that a level has passed, where that is a statement about a commit.
func recordGreen(ctx context.Context, level suite.Level) error {
	recorded, err := suite.RecordGreen(ctx, ".", level, time.Now())
	if err == nil && recorded {
		fmt.Printf("all tests of %q are green at this commit: recorded in .ci/green, which the next commit may contain\n", level)
	}
	return err
}

// lanes returns the lanes that need no cluster, and the others, which run after them.
func (s selection) lanes(all []suite.Package, scope suite.Scope) (first, clusters []suite.Lane, err error) {
	switch s.only {
	case "":
		if scope.Whole {
			return suite.Unit(all), suite.Cluster(all), nil
		}
		return suite.Unit(all), append(suite.Cluster(scope.Packages), suite.Smoke(scope.Packages)...), nil
	case "unit":
		return suite.Unit(all), nil, nil
	case string(suite.LevelRace):
		return nil, suite.Race(scope.Packages), nil
	case string(suite.LevelRelease):
		return nil, suite.Release(scope.Packages), nil
	case "faults":
		return []suite.Lane{suite.Faults()}, nil, nil
	case "attacks":
		return []suite.Lane{suite.Attacks()}, nil, nil
	default:
		return nil, nil, fmt.Errorf("-only %q: want unit, race, release, faults or attacks", s.only)
	}
}

// featureSets are those of the shared control planes.
func featureSets() []string { return []string{"Default", "TechPreviewNoUpgrade"} }

// onClusters runs lanes on clusters. One of them has the packages that use the shared
// control planes, one at a time.
func onClusters(ctx context.Context, runner *suite.Runner, lanes []suite.Lane) error {
	if !slices.ContainsFunc(lanes, func(l suite.Lane) bool { return len(l.Packages) > 0 }) {
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

// measure builds the program that measures tests, compilers and linkers, always at the same path,
// since the Go tool caches the results of tests by it. It needs Linux.
func measure(ctx context.Context, runner *suite.Runner) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	path, err := filepath.Abs(filepath.Join("bin", "measure"))
	if err != nil {
		return err
	}
	//nolint:gosec // our own program
	output, err := exec.CommandContext(ctx, "go", "build", "-o", path, "./test/suite/measure").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the program that measures tests: %w\n%s", err, output)
	}
	runner.Measure, runner.Tools = path, path+".tools"
	return os.RemoveAll(runner.Tools) // what an earlier run has used
}
