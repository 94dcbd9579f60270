package preflight

import (
	"context"
	"os"
	"os/signal"
	"syscall"
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
