package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Builder runs steps.
type Builder struct {
	// Root is the root of the repository, Bin the directory of the programs.
	Root, Bin string
	// Out receives the progress. Terminal reports whether its lines can be
	// overwritten.
	Out      io.Writer
	Terminal bool
	// Interval is the time between two reports of a step's progress.
	Interval time.Duration
}

// Run runs the steps that are out of date, in order, and reports each with its number,
// its time with an empty cache and the actual time.
func (b Builder) Run(ctx context.Context, steps ...Step) error {
	bin, err := filepath.Abs(b.Bin)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(bin, 0o755); err != nil { //nolint:gosec // programs, for all users
		return err
	}
	var outdated []Step
	for _, step := range steps {
		current, err := step.upToDate(b.Root, bin)
		if err != nil {
			return err
		}
		if !current {
			outdated = append(outdated, step)
		}
	}
	for i, step := range outdated {
		fmt.Fprintf(b.Out, "[%d/%d] building %s (about %s with an empty cache)\n", i+1, len(outdated), step.Name, step.expected())
		if err := b.build(ctx, step, bin); err != nil {
			return fmt.Errorf("building %s: %w", step.Name, err)
		}
	}
	return nil
}

// build runs one step and, if it is pinned, writes its stamp.
func (b Builder) build(ctx context.Context, step Step, bin string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the count of packages may take longer than the build
	overlay, remove, err := writeOverlay(ctx, step.Changes)
	if err != nil {
		return err
	}
	defer remove()
	reader, writer := io.Pipe()
	command := b.goTool(ctx, step, step.arguments(bin, overlay)...)
	command.Stderr = writer
	state, shown := &progress{}, display{out: b.Out, terminal: b.Terminal, began: time.Now()}
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(command.Run(), writer.Close()) }()
	go func() { _ = state.follow(reader) }() // the pipe has no error except its end
	go func() { state.expect(b.count(ctx, step)) }()
	if err := b.wait(ended, state, shown); err != nil {
		return fmt.Errorf("%w\n%s", err, state.errors())
	}
	shown.end()
	if !step.Pinned {
		return nil
	}
	stamp, err := step.stamp(b.Root)
	if err != nil {
		return err
	}
	return os.WriteFile(step.stampFile(bin), []byte(stamp), 0o600)
}

// wait shows the progress until the build has ended.
func (b Builder) wait(ended <-chan error, state *progress, shown display) error {
	ticker := time.NewTicker(b.Interval)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-ticker.C:
			shown.update(state)
		}
	}
}

// count returns the number of packages that the programs of a step consist of;
// 0 if the Go tool cannot list them, in which case the build reports why.
func (b Builder) count(ctx context.Context, step Step) int {
	arguments := []string{"list", "-deps", "-tags", strings.Join(step.Tags, ",")}
	listed, err := b.goTool(ctx, step, append(arguments, step.Packages...)...).Output()
	if err != nil {
		return 0
	}
	return strings.Count(string(listed), "\n")
}

// goTool is the Go tool in the module of the step. Compilers that collect garbage
// only when they reach the limit need a sixth less time.
func (b Builder) goTool(ctx context.Context, step Step, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...) //nolint:gosec // our own arguments
	command.Dir = filepath.Join(b.Root, step.Dir)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOGC=off", "GOMEMLIMIT=1536MiB")
	if step.Pinned {
		command.Env = append(command.Env, "GOWORK=off") // its module is not in the workspace
	}
	return command
}
