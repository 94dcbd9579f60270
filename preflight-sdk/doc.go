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
// was seen. [T.Inconclusivef] is for an answer that does not tell either.
//
// What is asked of many objects is asked in parts, with [T.Run]. What is
// opened is closed by [T.Cleanup]. [Check.After] names the checks without which
// an answer would mean nothing. [T.Update] is the update that is judged.
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
//   - SIGTERM or SIGINT (Interrupted, for what has not finished);
//   - a fail or an end without an answer of a check that it comes after
//     (PrerequisiteFailed; it is not started).
//
// Where the process is killed at once, a last written account remains, in
// which the checks that had not finished are Unknown (NotFinished).
//
// # On a laptop and in a Job
//
// The program is the same in both. With --help it shows its flags; --list
// shows its checks, --run and --skip choose among them, -o json prints the
// result as the document that WIRE.md specifies, and -o junit as JUnit, with an
// error for what is Unknown. Findings go to standard output, logs to standard error.
// The exit code is [ExitPass], [ExitUsage], [ExitFail] or [ExitUnknown]. How it
// reaches the cluster is left to the author; client-go's default loading rules
// serve both places.
//
// In a Job the result goes into the termination message, as a frame of at most
// 4096 bytes; what does not fit is left out there and written to the log in
// full. WIRE.md specifies this for other languages; [ParseFrame] reads it.
//
// # Manifests
//
// A check declares what it reads as [Rule], and [Manifest] makes of it what the
// release ships: Job, ServiceAccount, roles and bindings, so that no manifest
// says something else than the code. The program prints it itself:
//
//	/bin/preflight --print-manifest --name=etcd-preflight \
//		--namespace=openshift-etcd-operator \
//		--image=quay.io/openshift/origin-cluster-etcd-operator:latest
//
// For tools, --list -o json prints an array with an object for each check, with
// the fields name, description, url, timeout (as 1m30s), advisory, after (names)
// and rules: objects with namespace, apiGroups, resources, resourceNames and
// verbs, as in [Rule]. All but name are left out where they are empty, and more
// may be added.
//
// # Testing
//
// [Check.Evaluate] asks one check, without a process, and gives its finding.
//
// # Limitations
//
// A panic in a goroutine that the check started, os.Exit and log.Fatal end the
// process before it can report; the runner then takes the account described
// above, and the outcome is Unknown. What a check does is not restricted here:
// that it only reads is the business of its RBAC rules.
package preflight
