package preflight

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// programFinding is the name of a finding about the program as a whole.
const programFinding = "Preflight"

const (
	// How long before the deadline of the run the program ends on its own, so
	// that it is heard before the kubelet kills it.
	maxMargin = 5 * time.Second
	// How long a check may go on after its time was up.
	maxGrace = 500 * time.Millisecond
)

// program is one run of a check program, with all that it touches of the
// process around it.
type program struct {
	args           []string
	getenv         func(string) string
	stdout, stderr io.Writer
	// terminationLog is the file that the kubelet reads as the termination
	// message; it need not exist.
	terminationLog string
}

// run does what the arguments say and returns the exit code.
func (p program) run(ctx context.Context, checks []Check) int {
	settings, err := parseSettings(p.args, p.getenv)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(p.stdout, help)
		return ExitPass
	case err != nil:
		return p.refuse(settings, "InvalidArguments", err)
	}
	if err := validate(checks); err != nil {
		return p.refuse(settings, reasonInvalid, err)
	}
	chosen, err := settings.choose(checks)
	if err != nil {
		return p.refuse(settings, "InvalidArguments", err)
	}

	switch {
	case settings.printManifest:
		text, err := Manifest(settings.manifest, checks...)
		if err != nil {
			return p.refuse(settings, "InvalidArguments", err)
		}
		return p.show(func(w io.Writer) error { _, err := w.Write(text); return err })
	case settings.list:
		return p.show(func(w io.Writer) error { return list(w, settings.output, chosen) })
	}
	return p.judge(ctx, settings, chosen)
}

// show prints what is no result.
func (p program) show(write func(io.Writer) error) int {
	if err := write(p.stdout); err != nil {
		fmt.Fprintf(p.stderr, "preflight: %v\n", err)
		return ExitUnknown
	}
	return ExitPass
}

// refuse says why no check runs, to the person at the terminal and to the
// runner.
func (p program) refuse(s settings, reason string, why error) int {
	fmt.Fprintf(p.stderr, "preflight: %v\n", why)
	p.report(s, Result{State: StateFinal, RunID: s.update.RunID, Findings: []Finding{{
		Name:        programFinding,
		Outcome:     Unknown,
		Reason:      reason,
		Message:     "no check was run: " + why.Error(),
		Remediation: "Correct the program or its Job manifest; try it with --list.",
	}}})
	return ExitUsage
}

// judge runs the checks. At each moment the termination log holds what is
// known by then, in case the process is killed.
func (p program) judge(ctx context.Context, s settings, checks []Check) int {
	ctx, cancel, grace := s.bounded(ctx)
	defer cancel()

	result := Result{State: StateRunning, RunID: s.update.RunID, Findings: make([]Finding, len(checks))}
	for i, c := range checks {
		result.Findings[i] = Finding{
			Name: c.Name, Outcome: Unknown, Reason: reasonNotFinished,
			Message: c.Name + " had not started when the process ended", URL: c.URL,
		}
	}
	r := runner{update: s.update, log: p.stderr, grace: grace}
	for i, c := range checks {
		result.Findings[i].Message = c.Name + " was running when the process ended"
		p.report(s, result)
		result.Findings[i] = r.run(ctx, c, result.Findings[:i])
		if s.output == outputText {
			printFinding(p.stdout, result.Findings[i])
		}
	}
	result.State = StateFinal
	p.print(s, result)
	p.report(s, result)
	return result.exitCode()
}

// print writes what is for people, or for their scripts, at the end.
func (p program) print(s settings, result Result) {
	var err error
	switch s.output {
	case outputJSON:
		err = printJSON(p.stdout, newDocument(result))
	case outputJUnit:
		err = printJUnit(p.stdout, s.update, result)
	default:
		printSummary(p.stdout, result)
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "preflight: cannot print the result: %v\n", err)
	}
}

// report hands the result to the runner: in the termination log, and when it
// is final and something of it had to be left out there, in the log too.
func (p program) report(s settings, result Result) {
	frame, truncated, err := fit(newDocument(result), s.budget)
	if err != nil {
		fmt.Fprintf(p.stderr, "preflight: %v\n", err)
		return
	}
	err = overwrite(p.terminationLog, frame)
	laptop := errors.Is(err, os.ErrNotExist) && s.update.RunID == ""
	if laptop || result.State != StateFinal || err == nil && !truncated {
		return
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "preflight: cannot write the termination message: %v\n", err)
	}
	lines, err := logLines(result)
	if err != nil {
		fmt.Fprintf(p.stderr, "preflight: %v\n", err)
		return
	}
	fmt.Fprintf(p.stdout, "\n%s", lines)
}

// overwrite replaces what is in the file, which must exist: outside of a
// container there is none, and none is wanted. The file always holds a whole
// frame, whenever the process is killed: the frame goes over the old one, then
// what is left of that is cut off.
func overwrite(path string, frame []byte) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY, 0) //nolint:gosec // The path is a constant of Main.
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(frame); err != nil {
		return err
	}
	return file.Truncate(int64(len(frame)))
}
