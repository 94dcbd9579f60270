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

	out    io.Writer
	mutex  sync.Mutex
	failed []string
}

// NewRunner returns a runner of the tests of the workspace in root that reports
// to out.
func NewRunner(root string, out io.Writer) *Runner { return &Runner{Root: root, out: out} }

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
	command := exec.CommandContext(ctx, "go", lane.arguments()...) //nolint:gosec // our own arguments
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
	known, malformed := r.follow(stdout, lane.Verbose)
	err = command.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && known && malformed == nil {
		return nil // the packages that have failed are reported
	}
	if err = errors.Join(err, malformed); err != nil {
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

// follow reports the packages of a lane, and returns whether one has failed.
func (r *Runner) follow(stdout io.Reader, verbose bool) (failed bool, err error) {
	output := map[string]*strings.Builder{}
	write := func(key, text string) {
		if output[key] == nil {
			output[key] = &strings.Builder{}
		}
		fmt.Fprint(output[key], text)
	}
	text := func(key string) string {
		if output[key] == nil {
			return ""
		}
		return output[key].String()
	}
	for decoder := json.NewDecoder(stdout); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return failed, nil
		} else if err != nil {
			_, drained := io.Copy(io.Discard, stdout) // or the Go tool blocks
			return failed, errors.Join(err, drained)
		}
		switch {
		case e.Action == "build-output":
			write(e.ImportPath, e.Output)
		case e.Action == "output":
			write(e.Package, e.Output)
		case e.Test != "": // a test; its package follows
		case e.Action == "fail":
			failed = true
			r.report(e, text(e.FailedBuild)+text(e.Package))
		case e.Action == "pass" && verbose:
			r.report(e, text(e.Package))
		case e.Action == "pass":
			r.report(e, "")
		}
	}
}

// report reports the end of a package.
func (r *Runner) report(e event, output string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if e.Action == "fail" {
		r.failed = append(r.failed, e.Package)
	}
	fmt.Fprintf(r.out, "%s%-4s  %-70s %6.1fs\n", output, e.Action, strings.TrimPrefix(e.Package, module+"/"), e.Elapsed)
}
