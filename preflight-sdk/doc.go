// Package preflight is how an operator asks, before its cluster is updated:
// is it safe to update to the version that I come with?
//
// The answer comes from a program, /bin/preflight in the operator's image,
// that the release being updated to runs as a Job in the cluster as it is
// today. This package is all that such a program needs besides its questions;
// it depends on the standard library only.
//
//	func main() {
//		preflight.Main(preflight.Check{
//			Name:        "StorageDriver",
//			Description: "No volume uses a driver that the target drops",
//			Run:         storageDriver,
//		})
//	}
//
// A [Check] looks at the cluster and speaks through [T], as a test does:
// [T.Failf] when the update would do harm, [T.Warnf] when somebody should
// know, [T.Skipf] when the question does not arise here, and [T.Remedyf] to
// say what to do. Saying nothing and returning nil is a pass. Returning an
// error means that the check could not tell; that is never a pass, and never a
// fail either. So pass on the errors of API requests, and keep Failf for what
// was seen.
//
// # What is taken care of
//
// Each check gives one [Finding]. Of all that it said, the worst counts: Fail,
// then Unknown, Warn, Skipped, Pass. The checks run one after another. These
// ends are Unknown, whatever the check said before, except for a Fail, which
// stands:
//
//   - an error is returned (reason CheckError);
//   - a panic in Run, or runtime.Goexit (Panic; the stack is in the evidence);
//   - the check's timeout or the deadline of the run (Timeout; with the last
//     line of [T.Logf] as the step it was at). The program ends up to five
//     seconds before the deadline that the runner gave, to be heard before it
//     is killed. A check that ignores its context is left behind;
//   - SIGTERM or SIGINT (Interrupted, for what has not finished).
//
// Where the process is killed at once, a last written account remains, in
// which the checks that had not finished are Unknown (NotFinished).
//
// # On a laptop and in a Job
//
// The program is the same in both. With --help it shows its flags; --list
// shows its checks, --run and --skip choose among them, -o json prints the
// result as a document. Findings go to standard output, logs to standard error.
// The exit code is [ExitPass], [ExitUsage], [ExitFail] or [ExitUnknown]. How it
// reaches the cluster is left to the author; client-go's default loading rules
// serve both places.
//
// In a Job the result goes into the termination message, as a frame of at most
// 4096 bytes; what does not fit is left out there and written to the log in
// full. WIRE.md specifies this for other languages; [ParseFrame] reads it.
//
// # Limitations
//
// A panic in a goroutine that the check started, os.Exit and log.Fatal end the
// process before it can report; the runner then takes the account described
// above, and the outcome is Unknown. What a check does is not restricted here:
// that it only reads is the business of its RBAC rules.
package preflight
