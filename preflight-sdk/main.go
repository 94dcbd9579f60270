package preflight

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Main runs the checks, reports their findings and ends the process with one of
// the exit codes of this package. It is the whole main function of
// /bin/preflight:
//
//	func main() {
//		preflight.Main(
//			preflight.Check{Name: "Quorum", Run: quorum},
//		)
//	}
//
// The checks run one after another, in the given order. Each check produces
// exactly one finding, however it ends. If the declaration of any check is
// invalid, Main runs none of them, reports every violation and ends the process
// with [ExitUsage].
func Main(checks ...Check) {
	os.Exit(runProcess("/dev/termination-log", checks))
}

// runProcess is Main with the path of the termination log as a parameter. It
// returns the exit code.
func runProcess(terminationLog string, checks []Check) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal restores the default handling: a second one kills the
	// process, as users of a terminal expect.
	defer context.AfterFunc(ctx, stop)()

	p := program{
		args:           os.Args[1:],
		getenv:         os.Getenv,
		stdout:         os.Stdout,
		stderr:         os.Stderr,
		terminationLog: terminationLog,
	}
	return p.run(ctx, checks)
}

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

// maxGrace is the maximum time that a check may take to return after its
// context is done.
const maxGrace = 500 * time.Millisecond

// Evaluate runs this one check for the update and returns its finding, as [Main]
// does, without using flags, the environment, signals, files or the exit code of
// the process. It is for tests and for programs with a main function of their
// own.
//
// It returns at most half a second after ctx is done; a check that continues is
// abandoned. A panic becomes a finding. After is ignored. A declaration that
// [Main] rejects is reported as Unknown with the reason InvalidCheck. The lines
// of [T.Logf] are written to log, which may be nil.
func (c Check) Evaluate(ctx context.Context, update Update, log io.Writer) Finding {
	c.After = nil
	if err := validate([]Check{c}); err != nil {
		return Finding{Name: c.Name, Outcome: Unknown, Reason: reasonInvalidCheck, Message: err.Error(), URL: c.URL}
	}
	if log == nil {
		log = io.Discard
	}
	return runner{update: update, log: log, grace: maxGrace}.run(ctx, c, nil)
}

type runner struct {
	update Update
	log    io.Writer
	// grace is how long a check may continue after its context is done, to report
	// what it knows.
	grace time.Duration
}

// run runs one check, unless the findings of its prerequisites prevent it. It
// returns at most grace after ctx is done; a check that continues is abandoned.
func (r runner) run(ctx context.Context, c Check, earlier []Finding) Finding {
	recorder := &recorder{name: c.Name, evidence: map[string]string{}}
	if ctx.Err() != nil {
		return recorder.finding(c, unstartedEnding(ctx, c))
	}
	if how := prerequisiteEnding(c, earlier); how.reason != "" {
		return recorder.finding(c, how)
	}

	ctx, cancel := withTimeout(ctx, c.Timeout)
	defer cancel()
	ended := make(chan ending, 1)
	recorder.root = &T{recorder: recorder, update: r.update, log: r.log, ctx: ctx}
	go call(c, recorder.root, ended)
	select {
	case how := <-ended:
		return recorder.finding(c, how)
	case <-ctx.Done():
	}

	grace := time.NewTimer(r.grace)
	defer grace.Stop()
	select {
	case how := <-ended:
		return recorder.finding(c, how)
	case <-grace.C:
		return recorder.finding(c, lateEnding(ctx, c, nil))
	}
}

// withTimeout returns a context that ends after timeout; 0 means no timeout.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, errCheckTimeout)
}

// call calls the Run function of the check. It always sends how the call ended.
func call(c Check, t *T, ended chan<- ending) {
	var how ending
	defer func() { ended <- how }()
	attempt(&how, func() ending {
		defer t.runCleanups()
		err := c.Run(t.ctx, t)
		switch {
		// After its time is up, the requests of a check are cut short, so that even
		// nil is not a pass.
		case t.ctx.Err() != nil:
			return lateEnding(t.ctx, c, err)
		case err != nil:
			return ending{reason: reasonError, text: err.Error()}
		}
		return ending{}
	})
}
