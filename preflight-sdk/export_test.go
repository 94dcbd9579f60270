package preflight

import (
	"context"
	"io"
)

// RunProcess is Main with the path of the termination log as a parameter. It
// returns the exit code.
func RunProcess(terminationLog string, checks ...Check) int {
	return runProcess(terminationLog, checks)
}

// PrintJUnit is the output of -o junit for any result.
func PrintJUnit(w io.Writer, update Update, result Result) error {
	return printJUnit(w, update, result)
}

// Program is a check program that does not use the process of the test.
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
