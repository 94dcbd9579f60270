package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// stopTimeout is how long "go test" may take to end after an interrupt, in which
// the tests stop their clusters.
const stopTimeout = time.Minute

// Runner runs lanes.
type Runner struct {
	// Root is a directory of the workspace.
	Root string
	// Environment are further variables of the tests, NAME=VALUE.
	Environment []string
	// Measure, if not empty, is the program that runs the tests of each package and prints
	// their processor time, and that runs compilers and linkers: that of folder measure.
	Measure string
	// Tools, if not empty, is the path of a file to which that program adds the processor time of compilers
	// and linkers.
	Tools string

	out      io.Writer
	mutex    sync.Mutex
	failed   []string
	used     Usage
	costs    map[string]Cost
	cached   int
	progress progress
}

// NewRunner returns a runner of the tests of the workspace in root that reports
// to out.
func NewRunner(root string, out io.Writer) *Runner {
	return &Runner{Root: root, out: out, costs: map[string]Cost{}}
}

// Run runs the lanes at the same time and reports each package when its tests
// have ended, with the output if they have failed. The error names all packages
// that have failed.
func (r *Runner) Run(ctx context.Context, lanes ...Lane) error {
	var all sync.WaitGroup
	errs := make([]error, len(lanes))
	for i := range lanes {
		all.Go(func() {
			for lane := &lanes[i]; lane != nil && ctx.Err() == nil; lane = lane.Next {
				errs[i] = errors.Join(errs[i], r.run(ctx, *lane))
			}
		})
	}
	all.Wait()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.failed) > 0 {
		slices.Sort(r.failed)
		errs = append(errs, fmt.Errorf("failed: %s", strings.Join(r.failed, " ")))
		r.failed = nil
	}
	return errors.Join(append(errs, context.Cause(ctx))...)
}

// run runs one lane.
func (r *Runner) run(ctx context.Context, lane Lane) error {
	if len(lane.Packages) == 0 {
		return nil
	}
	command := exec.CommandContext(ctx, "go", lane.arguments(r.Measure, r.Tools)...) //nolint:gosec // our own arguments
	command.Dir, command.Env = r.Root, slices.Concat(os.Environ(), lane.environment(), r.Environment)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = stopTimeout
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	followed := r.follow(stdout, lane)
	err = command.Wait()
	r.account(command.ProcessState, followed.tests)
	var exit *exec.ExitError
	if errors.As(err, &exit) && followed.failed && followed.err == nil {
		return nil // the packages that have failed are reported
	}
	if err = errors.Join(err, followed.err); err != nil {
		return fmt.Errorf("go test: %w\n%s", err, stderr.Bytes())
	}
	return nil
}

// event is one of "go test -json" (go doc test2json).
type event struct {
	Action      string  `json:"Action"`
	Package     string  `json:"Package"`
	Test        string  `json:"Test"`
	Output      string  `json:"Output"`
	ImportPath  string  `json:"ImportPath"` // of build output
	FailedBuild string  `json:"FailedBuild"`
	Elapsed     float64 `json:"Elapsed"` // in seconds
}

// followed is what the events of a lane come to.
type followed struct {
	failed bool          // a package has failed
	tests  time.Duration // the processor time of the tests
	err    error
}

// follow reports the packages of a lane.
func (r *Runner) follow(stdout io.Reader, lane Lane) followed {
	var result followed
	output := outputs{}
	for decoder := json.NewDecoder(stdout); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return result
		} else if err != nil {
			_, drained := io.Copy(io.Discard, stdout) // or the Go tool blocks
			result.err = errors.Join(err, drained)
			return result
		}
		switch {
		case e.Action == "build-output":
			output.write(e.ImportPath, e.Output)
		case e.Action == "output":
			output.write(e.Package, e.Output)
		case e.Test != "": // a test; its package follows
		case e.Action == "fail":
			result.failed = true
			result.tests += r.report(e, lane, output.text(e.Package), output.text(e.FailedBuild)+output.text(e.Package))
		case e.Action == "pass" && lane.Verbose:
			result.tests += r.report(e, lane, output.text(e.Package), output.text(e.Package))
		case e.Action == "pass":
			result.tests += r.report(e, lane, output.text(e.Package), "")
		}
	}
}

// outputs is what builds and tests have printed, by package.
type outputs map[string]*strings.Builder

func (o outputs) write(key, text string) {
	if o[key] == nil {
		o[key] = &strings.Builder{}
	}
	fmt.Fprint(o[key], text)
}

func (o outputs) text(key string) string {
	if o[key] == nil {
		return ""
	}
	return o[key].String()
}

// report reports the end of a package, and returns the processor time of its tests as it
// is in their output.
func (r *Runner) report(e event, lane Lane, output, shown string) time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if e.Action == "fail" {
		r.failed = append(r.failed, e.Package)
	}
	used, known := processorTime(output)
	processor := "not measured"
	if cached.MatchString(output) {
		used, processor = 0, "cached"
		r.cached++
		r.progress.skipped(e.Package, time.Now())
	} else {
		r.progress.ran(e.Package, time.Now())
	}
	if known && processor != "cached" {
		processor = fmt.Sprintf("%.1f CPU s", used.Seconds())
		r.addCost(lane, e, used)
	}
	fmt.Fprintf(r.out, "%s%-4s  %-50s %7.1f s %14s%s\n", shown, e.Action, strings.TrimPrefix(e.Package, module+"/"), e.Elapsed, processor,
		r.progress)
	return used
}

// addCost adds what the tests of a package took, if all of them ran.
func (r *Runner) addCost(lane Lane, e event, used time.Duration) {
	if !lane.partial() {
		r.costs[e.Package] = Cost{Took: time.Duration(e.Elapsed * float64(time.Second)), CPU: used}
	}
}

// account adds what a lane used.
func (r *Runner) account(ended *os.ProcessState, tests time.Duration) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.used.Tests += tests
	r.used.GoTool += ended.UserTime() + ended.SystemTime() - tests
}

// Lines of the output of a package: the last one of the Go tool, where it did not run the
// tests again, and that of the program measure.
var (
	cached   = regexp.MustCompile(`(?m)^ok  \t\S+\t\(cached\)`)
	measured = regexp.MustCompile(`(?m)^processor time: ([0-9.]+ s) `)
)

// processorTime returns the processor time that is in the output of a package, if any.
func processorTime(output string) (used time.Duration, known bool) {
	found := measured.FindAllStringSubmatch(output, -1)
	if len(found) == 0 {
		return 0, false
	}
	used, err := time.ParseDuration(strings.ReplaceAll(found[len(found)-1][1], " ", ""))
	return used, err == nil
}
