package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/openshift/update-preflight/test/suite"
)

// times are what runs take on this machine.
type times struct {
	file    string
	history suite.History
	start   time.Time
	commit  string
}

func openTimes(ctx context.Context) (*times, error) {
	file, err := suite.HistoryFile()
	if err != nil {
		return nil, err
	}
	history, err := suite.ReadHistory(file)
	if err != nil {
		return nil, err
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=8", "HEAD").Output()
	if err != nil {
		return nil, fmt.Errorf("the commit of this run: %w", err)
	}
	return &times{file: file, history: history, start: time.Now(), commit: strings.TrimSpace(string(commit))}, nil
}

// announce prints how long the run will take.
func (t *times) announce(runner *suite.Runner, lanes ...suite.Lane) {
	took, from := runner.Plan(&t.history, runtime.NumCPU(), lanes...)
	if took > 0 {
		fmt.Printf("about %s if no result is cached (%s)\n", suite.Minutes(took), from)
	}
}

// report prints what the run has used, by kind, and its ratio to the baseline of this machine, and
// adds it to the history.
func (t *times) report(runner *suite.Runner, whole bool) error {
	used, err := runner.Used()
	if err != nil {
		return err
	}
	var all syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &all); err != nil {
		return fmt.Errorf("read the processor time: %w", err)
	}
	total := time.Duration(all.Utime.Nano() + all.Stime.Nano())
	used.Shared = total - used.Tests - used.GoTool
	costs, cached := runner.Costs()
	run := suite.Record{Commit: t.commit, Time: time.Now().UTC(), Took: time.Since(t.start), Used: used, Whole: whole, Cached: cached}
	fmt.Println(used.Builds())
	fmt.Printf("took %s; CPU s: tests %.0f, shared control planes %.0f, Go tool %.0f, together %.0f\n",
		run.Took.Round(time.Second), used.Tests.Seconds(), used.Shared.Seconds(), used.GoTool.Seconds(), total.Seconds())
	fmt.Println(t.history.Compare(run))
	t.history.Add(run, costs)
	return t.history.Write(t.file)
}
