package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/imagefiles"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/lease"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/updateservice"
)

// The exit codes. They are the same for every output format and never change.
const (
	exitReady       = 0
	exitFailed      = 1
	exitUsage       = 2
	exitBlocked     = 3
	exitUndecided   = 4
	exitInterrupted = 130
)

// exitHelp is the help of the commands whose exit code is a decision.
const exitHelp = `
Exit codes: 0 Ready, 1 the tool failed, 2 wrong usage or bad input, 3 Blocked,
4 Undecided, 130 interrupted.`

// exitError carries an exit code up to Execute. A nil err is not printed: the output
// of the command has the cause.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usageError(err error) error { return &exitError{code: exitUsage, err: err} }

// exitOf is the error with the exit code of a report.
func exitOf(decided report.Report) error {
	switch {
	case decided.Run.Phase == report.PhaseInterrupted, decided.Run.Phase == report.PhaseCanceled:
		return &exitError{code: exitInterrupted}
	case !decided.Holds():
		return &exitError{code: exitUndecided}
	}
	return exitOfDecision(decided.Verdict.Decision)
}

// exitOfPath is the error with the exit code of a path.
func exitOfPath(made report.Path) error {
	switch {
	case made.Interrupted():
		return &exitError{code: exitInterrupted}
	case !made.Holds():
		return &exitError{code: exitUndecided}
	}
	return exitOfDecision(made.Decision)
}

// exitOfPlan is the error with the exit code of a plan.
func exitOfPlan(made updateplan.Plan) error {
	switch {
	case made.Decision == updateplan.NoPath:
		return &exitError{code: exitUsage}
	case made.Comparison != nil && !made.Comparison.Holds, made.Decision == updateplan.OpenRisks:
		return &exitError{code: exitBlocked}
	case made.Decision != updateplan.Clear:
		return &exitError{code: exitUndecided}
	}
	return nil
}

func exitOfDecision(decision verdict.Decision) error {
	switch decision {
	case verdict.Ready:
		return nil
	case verdict.Blocked:
		return &exitError{code: exitBlocked}
	case verdict.Undecided, verdict.NothingKnown:
		return &exitError{code: exitUndecided}
	}
	return &exitError{code: exitUndecided}
}

// exitCode prints the error, if the command has not, and returns its exit code. name is how
// the user calls the program.
func exitCode(err error, name string, stderr io.Writer) int {
	if err == nil {
		return exitReady
	}
	if exit, ok := errors.AsType[*exitError](err); ok {
		if exit.err != nil {
			printError(stderr, exit.err, name)
		}
		return exit.code
	}
	printError(stderr, err, name)
	_, badInput := errors.AsType[*runner.BadInputError](err)
	_, unknownGate := errors.AsType[*gate.UnknownGateError](err)
	_, unknownRun := errors.AsType[*record.NotFoundError](err)
	switch {
	case badInput, unknownGate, unknownRun:
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case isUnknownCommand(err):
		return exitUsage
	}
	return exitFailed
}

// isUnknownCommand recognizes the usage error of cobra that has no type.
func isUnknownCommand(err error) bool {
	return strings.HasPrefix(err.Error(), "unknown command ")
}

// printError prints the error on one line, and its remedy on the next. The suggestions
// for an unknown command have lines of their own.
func printError(stderr io.Writer, err error, name string) {
	text := withName(strings.TrimRight(err.Error(), "\n"), name)
	if !isUnknownCommand(err) {
		text = strings.ReplaceAll(text, "\n", "; ")
	}
	fmt.Fprintf(stderr, "error: %s\n", text)
	if unreadable, ok := errors.AsType[*imagefiles.Error](err); ok && unreadable.Remediation != "" {
		fmt.Fprintf(stderr, "hint: %s\n", unreadable.Remediation)
		for _, action := range unreadable.Actions {
			if action.Command != "" {
				fmt.Fprintf(stderr, "hint:   %s\n", action.Command)
			}
		}
	}
	if hint := hintFor(err); hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", withName(hint, name))
	}
}

// hintFor is the command that helps with an error of a library; empty if there is
// none.
func hintFor(err error) string {
	if _, ok := errors.AsType[*launch.EscalationError](err); ok {
		return "Print a role with these permissions: oc preflight auth run"
	}
	if busy, ok := errors.AsType[*lease.BusyError](err); ok {
		return "Follow the run: oc preflight attach " + busy.ID
	}
	if other, ok := errors.AsType[*record.SelectionError](err); ok {
		return fmt.Sprintf("Follow the run: oc preflight attach %s; or end it: oc preflight cancel %[1]s", other.ID)
	}
	if ended, ok := errors.AsType[*lease.NotRunningError](err); ok {
		return "Read its report: oc preflight status " + ended.ID
	}
	if unauthentic, ok := errors.AsType[*record.UnauthenticError](err); ok {
		if unauthentic.State == record.Unverifiable {
			return "Print a role with the permission: oc preflight auth status"
		}
		return "Run the preflight again: oc preflight run; end a run in progress: oc preflight cancel " + unauthentic.ID
	}
	if missing, ok := errors.AsType[*runner.NotStoredError](err); ok {
		return "With access to the update service, store the graph: " + storing(missing)
	}
	if _, ok := errors.AsType[*runner.NoChannelError](err); ok {
		return "Name a channel, such as --channel eus-4.18"
	}
	if unreachable, ok := errors.AsType[*updateplan.Unreachable](err); ok {
		return unreachable.Remedy
	}
	if _, ok := errors.AsType[*record.NotFoundError](err); ok {
		return "List the runs: oc preflight history"
	}
	return ""
}

// storing is the command that stores a graph.
func storing(missing *runner.NotStoredError) string {
	command := fmt.Sprintf("oc preflight plan --from %s --channel %s --arch %s", words.Line(missing.From, 64), words.Line(missing.Key.Channel, 64), missing.Key.Architecture)
	if missing.Key.URL != updateservice.Default {
		command += " --graph URL"
	}
	return command
}
