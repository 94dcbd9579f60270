package preflight

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Main runs the checks, reports what they found and ends the process with one
// of the exit codes of this package. It is all that the main function of
// /bin/preflight does:
//
//	func main() {
//		preflight.Main(
//			preflight.Check{Name: "Quorum", Run: quorum},
//		)
//	}
//
// The checks run one after another, in the order given. Each gives exactly one
// finding, however it ends. Where the declaration of a check is wrong, none
// runs, and the process says so and ends with [ExitUsage].
func Main(checks ...Check) {
	os.Exit(runProcess("/dev/termination-log", checks))
}

// runProcess is Main with the file that the kubelet reads as termination
// message, and without the end of the process.
func runProcess(terminationLog string, checks []Check) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal kills, as the user of a terminal expects.
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
