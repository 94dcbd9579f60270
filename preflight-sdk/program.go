package preflight

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// program is one execution of a check program. Its fields are the parts of the
// process that it uses.
type program struct {
	args           []string
	getenv         func(string) string
	stdout, stderr io.Writer
	// terminationLog is the path of the file that the kubelet reads as the
	// termination message. The file need not exist.
	terminationLog string
}

// run executes what the arguments request and returns the exit code.
func (p program) run(ctx context.Context, checks []Check) int {
	settings, err := parseSettings(p.args, p.getenv)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(p.stdout, help)
		return ExitPass
	case err != nil:
		return p.reject(settings, reasonInvalidArguments, err)
	}
	if err := validate(checks); err != nil {
		return p.reject(settings, reasonInvalidCheck, err)
	}
	selected, err := settings.selectChecks(checks)
	if err != nil {
		return p.reject(settings, reasonInvalidArguments, err)
	}

	switch {
	case settings.printManifest:
		text, err := Manifest(settings.manifest, checks...)
		if err != nil {
			return p.reject(settings, reasonInvalidArguments, err)
		}
		return p.write(func(w io.Writer) error { _, err := w.Write(text); return err })
	case settings.list:
		return p.write(func(w io.Writer) error { return list(w, settings.output, selected) })
	}
	return p.runChecks(ctx, settings, selected)
}

// write prints output other than a result to standard output.
func (p program) write(output func(io.Writer) error) int {
	if err := output(p.stdout); err != nil {
		fmt.Fprintf(p.stderr, "preflight: %v\n", err)
		return ExitUnknown
	}
	return ExitPass
}

// reject reports why no check is run: on standard error, as a result for the
// runner and, for the machine-readable outputs, as the result that is printed.
func (p program) reject(s settings, reason string, cause error) int {
	fmt.Fprintf(p.stderr, "preflight: %v\n", cause)
	result := Result{State: StateFinal, RunID: s.update.RunID, Findings: []Finding{{
		Name:        programFinding,
		Outcome:     Unknown,
		Reason:      reason,
		Message:     "no check was run: " + cause.Error(),
		Remediation: "Fix the program or its Job manifest, then verify it: /bin/preflight --list",
	}}}
	if s.output == outputJSON || s.output == outputJUnit {
		p.print(s, result)
	}
	p.report(s, result)
	return ExitUsage
}

// runChecks runs the checks. Before each check it writes the result so far to
// the termination log, in case the process is killed.
func (p program) runChecks(ctx context.Context, s settings, checks []Check) int {
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

// print writes the final output in the requested format. In text the findings
// have been printed already, so that only the summary is left.
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

// report writes the result to the termination log. A final result that does not
// fit there, or cannot be written there, also goes to standard output in full.
func (p program) report(s settings, result Result) {
	frame, truncated, err := fit(newDocument(result), s.budget)
	if err != nil {
		fmt.Fprintf(p.stderr, "preflight: %v\n", err)
		return
	}
	err = overwrite(p.terminationLog, frame)
	outsideJob := errors.Is(err, os.ErrNotExist) && s.update.RunID == ""
	if outsideJob || result.State != StateFinal || err == nil && !truncated {
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

// overwrite replaces the content of the file at path, which must exist: outside
// of a container there is none, and none is created. The file contains a whole
// frame at every moment, even if the process is killed in between: the new frame
// is written over the old one in one write, then the rest is cut off.
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
