package preflight

import (
	"context"
	"io"
)

// RunProcess is Main with another termination log, and without the end of the
// process.
func RunProcess(terminationLog string, checks ...Check) int {
	return runProcess(terminationLog, checks)
}

// Program is a check program without a process.
type Program struct {
	Args           []string
	Env            map[string]string
	Stdout, Stderr io.Writer
	TerminationLog string
}

// Run runs the program and returns its exit code.
func (p Program) Run(ctx context.Context, checks ...Check) int {
	return program{
		args:           p.Args,
		getenv:         func(name string) string { return p.Env[name] },
		stdout:         p.Stdout,
		stderr:         p.Stderr,
		terminationLog: p.TerminationLog,
	}.run(ctx, checks)
}
