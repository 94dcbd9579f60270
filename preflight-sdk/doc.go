// Package preflight answers: is it safe to update this cluster to the version
// that ships this check?
//
// The answer comes from a program, /bin/preflight in the image of an operator.
// The release to update to ships a Job that runs the program in the cluster
// before the update. This package contains everything that such a program needs
// besides its checks, and depends on the standard library only.
//
//	func main() {
//		preflight.Main(preflight.Check{
//			Name:        "StorageDriver",
//			Description: "No volume uses a driver that the target drops",
//			Run:         storageDriver,
//		})
//	}
//
// A [Check] inspects the cluster and reports through [T], as a test does:
// [T.Failf] if the update would do harm, [T.Warnf] if an administrator should
// know something, [T.Skipf] if the check does not apply to the cluster, and
// [T.Remedyf] to state the remediation. Reporting nothing and returning nil is a
// pass. Returning an error means that the check was inconclusive, which never
// counts as a pass and never as a fail. Return the errors of API requests, and
// use Failf only for what the check observed. [T.Inconclusivef] is for a valid
// response that contains no answer.
//
// Use [T.Run] to apply a check to several objects, [T.Cleanup] to close what the
// check opened, and [Check.After] to declare prerequisites. [T.Update] returns
// the update that is checked.
//
// # Findings
//
// Each check produces one [Finding]. The most severe outcome that it reported
// counts: Fail, then Unknown, Warn, Skipped, Pass. The checks run one after
// another. The following endings result in Unknown, whatever the check reported
// before, except that a Fail remains a Fail:
//
//   - an error is returned (reason CheckError);
//   - a panic in Run, or runtime.Goexit (Panic; the stack is in the evidence);
//   - the timeout of the check or the deadline of the run (Timeout; with the last
//     line of [T.Logf] as the last step). The program ends up to five seconds
//     before the deadline that the runner sets, so that its result is written
//     before it is killed. A check that ignores its context is abandoned;
//   - SIGTERM or SIGINT (Interrupted, for checks that have not finished);
//   - a prerequisite failed or was inconclusive (PrerequisiteFailed; the check is
//     not started).
//
// If the process is killed, the last result that it wrote remains. In this result
// the checks that had not finished are Unknown (NotFinished).
//
// # Running
//
// The program is the same on a workstation and in a Job. --help prints its flags,
// --list prints its checks, --run and --skip select checks. -o json prints the
// result as the document that WIRE.md specifies. -o junit prints JUnit XML for CI
// systems, in which Fail and Unknown are failures; the test case
// preflight.Verdict fails unless every check was conclusive and none failed.
// Findings are printed to standard output, logs to standard error. The exit code
// is [ExitPass], [ExitUsage], [ExitFail] or [ExitUnknown]. The author chooses how
// the program connects to the cluster; the default loading rules of client-go
// work in both environments.
//
// In a Job the result is written to the termination message, as a frame of at
// most 4096 bytes. What does not fit is removed there, and the full result is
// written to the log. WIRE.md specifies the format for other languages;
// [ParseFrame] reads it.
//
// # Manifests
//
// A check declares its permissions as [Rule]. The program prints the manifest
// that a release ships, with the Job, its ServiceAccount and the roles and
// bindings for these rules:
//
//	/bin/preflight --print-manifest --name=etcd-preflight \
//		--namespace=openshift-etcd-operator \
//		--image=quay.io/openshift/origin-cluster-etcd-operator:latest
//
// The function Manifest of the package preflighttest tests that a file is the
// manifest that the program prints. Main is the only place that lists the checks.
//
// For tools, --list -o json prints an array with one object per check. It has the
// fields name, description, url, timeout (such as 1m30s), advisory, after (names)
// and rules: objects with namespace, apiGroups, resources, resourceNames and
// verbs, as in [Rule]. Empty fields other than name are omitted. Later versions
// may add fields.
//
// # Testing
//
// [Check.Evaluate] runs one check without a process and returns its finding. The
// package preflighttest uses it.
//
// # Limitations
//
// A panic in a goroutine that the check started, os.Exit and log.Fatal end the
// process before it can report. The runner then reads the last result that was
// written, in which the outcome is Unknown. This package does not restrict what a
// check does: its RBAC rules ensure that it is read-only.
package preflight
