// Package exitcode answers: which exit code and which hint does an error or a decision have?
//
// [Of] is the error for a report, and [Code] prints an error and returns its exit code.
package exitcode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
)

// The exit codes. They are the same for every output format and never change.
const (
	Ready       = 0
	Failed      = 1
	Usage       = 2
	Blocked     = 3
	Undecided   = 4
	Interrupted = 130
)

// The exit codes of a signed verdict that is not valid.
const (
	Expired      = 5
	OtherCluster = 6
	OtherRelease = 7
	Forged       = 8
)

// Help is the help of the commands whose exit code is a decision.
const Help = `
Exit codes: 0 Ready, 1 the tool failed, 2 wrong usage or bad input, 3 Blocked, 4 Undecided, 130 interrupted.`

// Error carries an exit code up to Execute. A nil err is not printed: the output
// of the command has the cause.
type Error struct {
	Code int
	err  error
}

func (e *Error) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.err.Error()
}

func (e *Error) Unwrap() error { return e.err }

// CommandExitCode is the exit code of the command.
func (e *Error) CommandExitCode() int { return e.Code }

// BadUsage is a wrong use of the command line.
func BadUsage(err error) error { return &Error{Code: Usage, err: err} }

// Of is the error with the exit code of a report. A stored one with a decision in favor that permits no update is Undecided.
func Of(decided report.Report) error {
	switch {
	case decided.Run.Phase == report.PhaseInterrupted, decided.Run.Phase == report.PhaseCanceled:
		return &Error{Code: Interrupted}
	case !decided.Holds():
		return &Error{Code: Undecided}
	}
	err := exitOfDecision(decided.Verdict.Decision)
	if err == nil && decided.Standing != nil && !decided.Permits() {
		return &Error{Code: Undecided}
	}
	return err
}

// OfPath is the error with the exit code of a path.
func OfPath(made report.Path) error {
	switch {
	case made.Interrupted():
		return &Error{Code: Interrupted}
	case !made.Holds():
		return &Error{Code: Undecided}
	}
	return exitOfDecision(made.Decision)
}

// OfPlan is the error with the exit code of a plan.
func OfPlan(made updateplan.Plan) error {
	switch {
	case made.Decision == updateplan.NoPath:
		return &Error{Code: Usage}
	case made.Comparison != nil && !made.Comparison.Holds, made.Decision == updateplan.OpenRisks, made.Decision == updateplan.Blocked:
		return &Error{Code: Blocked}
	case made.Decision != updateplan.Clear && made.Decision != updateplan.LaterFindings:
		return &Error{Code: Undecided}
	}
	return nil
}

// OfDrains is the error with the exit code of a rehearsal of drains.
func OfDrains(outcome drain.Outcome) error {
	switch outcome {
	case drain.Clear:
		return nil
	case drain.Sticks, drain.Blocked:
		return &Error{Code: Blocked}
	case drain.Undetermined:
	}
	return &Error{Code: Undecided}
}

// OfAfterUpdate is the error with the exit code of the judgement of an update.
func OfAfterUpdate(decision afterupdate.Decision) error {
	switch decision {
	case afterupdate.Good:
		return nil
	case afterupdate.Regressed, afterupdate.RolledBack:
		return &Error{Code: Blocked}
	case afterupdate.Settling, afterupdate.Unfinished, afterupdate.Undecided:
	}
	return &Error{Code: Undecided}
}

// OfFleet is the error with the exit code of the worst cluster of a fleet. Clusters that are
// clear without the checks of the release are so by request.
func OfFleet(decision verdict.Decision) error {
	if decision == verdict.NothingKnown {
		return nil
	}
	return exitOfDecision(decision)
}

// OfVerification is the error with the exit code of a signed verdict. One that is valid has that
// of its decision; one that was forced, or that leaves something out, permits nothing to those who verify
// it, and is Undecided.
func OfVerification(made attestation.Verification) error {
	switch made.Result {
	case attestation.Valid:
		if decision := made.Statement.Verdict.Decision; made.Permits() || decision == verdict.Blocked {
			return exitOfDecision(decision)
		}
		return &Error{Code: Undecided}
	case attestation.Expired:
		return &Error{Code: Expired}
	case attestation.OtherCluster:
		return &Error{Code: OtherCluster}
	case attestation.OtherRelease:
		return &Error{Code: OtherRelease}
	case attestation.Forged:
	}
	return &Error{Code: Forged}
}

func exitOfDecision(decision verdict.Decision) error {
	switch decision {
	case verdict.Ready:
		return nil
	case verdict.Blocked:
		return &Error{Code: Blocked}
	case verdict.Undecided, verdict.NothingKnown:
		return &Error{Code: Undecided}
	}
	return &Error{Code: Undecided}
}

// coded is an error of a library that states the exit code of the command, and remedied one
// with what to do about it: a sentence, and its commands. The name of the method is ours: *exec.ExitError, as of a plugin
// with credentials, has ExitCode, and its 3 is not Blocked.
type (
	coded interface {
		error
		CommandExitCode() int
	}
	remedied interface {
		error
		Remedy() (sentence string, commands []finding.Action)
	}
)

// Remedied is the error with what to do about it.
func Remedied(err error, sentence string, commands ...finding.Action) error {
	return &remediedError{err, sentence, commands}
}

type remediedError struct {
	error
	sentence string
	commands []finding.Action
}

func (e *remediedError) Remedy() (sentence string, commands []finding.Action) {
	return e.sentence, e.commands
}

func (e *remediedError) Unwrap() error { return e.error }

// Code prints the error, if the command has not, and returns its exit code. worded are the lines of a remedy, with its
// commands as the user types them.
func Code(err error, worded func(sentence string, commands []finding.Action) []string, stderr io.Writer) int {
	if err == nil {
		return Ready
	}
	exit, decided := errors.AsType[*Error](err)
	if decided && exit.err == nil {
		return exit.Code
	}
	printError(stderr, err, worded)
	known, ok := errors.AsType[coded](err)
	switch {
	case ok:
		return known.CommandExitCode()
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return Failed
}

// printError prints the error on one line, and its remedy on the next.
func printError(stderr io.Writer, err error, worded func(string, []finding.Action) []string) {
	fmt.Fprintf(stderr, "error: %s\n", strings.ReplaceAll(strings.TrimRight(err.Error(), "\n"), "\n", "; "))
	if failed, ok := errors.AsType[remedied](err); ok {
		for _, line := range worded(failed.Remedy()) {
			fmt.Fprintf(stderr, "hint: %s\n", line)
		}
	}
}
