package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
)

// The requirements that are judged before anything is run.
const (
	requirementManifest = "Manifest"
	requirementImage    = "Image"
)

// maxTime is how long a check may take before it is called slow.
const maxTime = time.Minute

// evidence is all that is known about one check.
type evidence struct {
	check  launch.Check
	images string
	tried  map[string]attempt
	rights access.Rights
	// reads is true when a binding of the manifest gives its account rights.
	reads bool
}

func (s *session) evidence(check launch.Check) evidence {
	return evidence{
		check: check, images: s.subject.describeImages(check), tried: s.tried[check.Name], rights: s.accounts[check.Name], reads: s.reading[check.Name],
	}
}

// judge holds the evidence against every requirement.
func (e evidence) judge() []Result {
	requirements := []struct {
		name string
		is   func() Result
	}{
		{requirementManifest, e.manifest},
		{requirementImage, e.image},
		{"ReadOnlyAccess", e.access},
		{"Result", e.result},
		{"Time", e.time},
		{"Output", e.output},
		{"Killed", e.killed},
		{"Terminated", e.terminated},
		{"Idempotent", e.idempotent},
		{"NonRoot", e.nonRoot},
		{"ReadOnlyFilesystem", e.readOnlyFilesystem},
		{"Memory", e.memory},
		{"ResultBudget", e.budget},
		{"FailsClosed", e.failsClosed},
	}
	results := make([]Result, 0, len(requirements))
	for _, requirement := range requirements {
		result := requirement.is()
		result.Check, result.Requirement = e.check.Name, requirement.name
		results = append(results, result)
	}
	return results
}

func pass(format string, args ...any) Result {
	return Result{Outcome: preflight.Pass, Reason: "Conforms", Message: fmt.Sprintf(format, args...)}
}

func skip(reason, format string, args ...any) Result {
	return Result{Outcome: preflight.Skipped, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func fail(reason, remedy, format string, args ...any) Result {
	return Result{Outcome: preflight.Fail, Reason: reason, Message: fmt.Sprintf(format, args...), Remediation: remedy}
}

func (r Result) asWarning() Result {
	r.Outcome = preflight.Warn
	return r
}

func (e evidence) manifest() Result {
	return pass("a preflight takes %s, and so does the API server", e.check.File)
}

func (e evidence) image() Result { return pass("%s", e.images) }

func (e evidence) access() Result {
	user := access.User(e.rights.Account)
	switch {
	case len(e.rights.Writes) > 0:
		return fail("MayWrite", "Give the check a ServiceAccount of its own, annotated like its Job, with roles that get, list and watch.",
			"%s may %s: a preflight changes nothing", user, access.Summarize(e.rights.Writes, 5))
	case len(e.rights.Unserved) > 0:
		return Result{
			Outcome: preflight.Unknown, Reason: "APIUnavailable",
			Message:     fmt.Sprintf("nobody could ask what %s may change in %s, which the API server does not serve now", user, strings.Join(e.rights.Unserved, ", ")),
			Remediation: "See what is the matter with them: oc get apiservices",
		}
	}
	return pass("%s may change nothing, says the API server to %d questions", user, e.rights.Asked)
}

func (e evidence) result() Result {
	a := e.tried[asIs]
	if !a.answered {
		return a.failure()
	}
	if !e.check.Framed {
		return fail("NotFramed", "Link the SDK, or write the result as WIRE.md says, and annotate the Job with preflight.openshift.io/result: framed",
			"the Job promises no result, so that all that is known of it is its exit code, %d", a.end.ExitCode).asWarning()
	}
	return pass("said %s, and ended with exit code %d", a.outcomes(), a.end.ExitCode)
}

func (e evidence) time() Result {
	a := e.tried[asIs]
	if a.running && a.reason() == reasonTimeout {
		return fail("NeverEnds", "End before PREFLIGHT_DEADLINE, also while waiting for others: pass on the context that Run is given.",
			"it was still at work when its time was up")
	}
	if a.end == nil {
		return skip("NotTried", "it did not run to an end")
	}
	took := a.took()
	if took > maxTime {
		return fail("Slow", "A whole preflight has ten minutes: ask for less, or ask for it at once.", "it took %s", took).asWarning()
	}
	return pass("it took %s, to the second", took)
}

func (e evidence) output() Result {
	a := e.tried[asIs]
	if a.flooded {
		return fail("TooMuchOutput", "Log what an administrator would want to read: a node rotates logs at 10 MiB, and a preflight reads the last 2 MiB.",
			"it wrote more than %d KiB to its log", maxLog>>10)
	}
	if a.end == nil {
		return skip("NotTried", "it did not run to an end")
	}
	return pass("it wrote no more than %d KiB to its log", maxLog>>10)
}

// killed is about what is left of a check that is put to an end at once.
func (e evidence) killed() Result {
	a := e.tried[killed]
	if unended, ok := a.unended(); ok {
		return unended
	}
	how := fmt.Sprintf("ended by the node, by exit code %d", a.end.ExitCode)
	if a.signal == corev1.SIGKILL {
		if !a.killed() {
			return a.tooFast()
		}
		how = "ended by SIGKILL alone"
	}
	const remedy = "Say that you run before the first question, and take nothing for answered that is not: link preflight.Main, or follow WIRE.md."
	switch {
	case a.passed() && e.endedByItself(a):
		return a.tooFast()
	case a.passed():
		return fail("PassesWhenKilled", remedy, "%s, it is taken for a pass", how)
	case a.messageError != nil && e.check.Framed:
		return fail("NothingLeft", remedy, "%s, it left no result that it was at work: %v", how, a.messageError)
	case a.messageError != nil:
		return pass("%s, it is not taken for a pass", how)
	}
	return pass("%s, it left a result in the state %q, which is not taken for a pass", how, a.message.State)
}

// endedByItself is true where a check that was to be ended may have been at its
// end all the same: it took hardly longer than when it was left alone. The
// kubelet tells times to the second.
func (e evidence) endedByItself(a attempt) bool {
	alone := e.tried[asIs]
	return alone.answered && a.took() <= alone.took()+time.Second
}

func (e evidence) terminated() Result {
	a := e.tried[terminated]
	if unended, ok := a.unended(); ok {
		return unended
	}
	if a.killed() {
		return fail("IgnoresSIGTERM", "Stop at SIGTERM: link preflight.Main, which ends the context that Run is given, or trap it in a shell script.",
			"it did not end within %d seconds of SIGTERM, and was killed", patience)
	}
	if a.passed() && e.endedByItself(a) {
		return a.tooFast()
	}
	if a.passed() {
		return fail("PassesWhenTerminated", "What was not looked at is Unknown, also at SIGTERM.", "ended by SIGTERM, it is taken for a pass")
	}
	return pass("it ended within %d seconds of SIGTERM, with exit code %d", patience, a.end.ExitCode)
}

func (e evidence) idempotent() Result {
	const remedy = "The same cluster has to get the same answer: leave out times, counters and anything from an earlier run, and sort what is listed."
	result := e.same(again, "NotIdempotent", remedy, "the second run said the same as the first")
	if result.Outcome != preflight.Pass {
		return result
	}
	before, after := e.tried[asIs].findings, e.tried[again].findings
	for i := range before {
		if before[i].Message != after[i].Message {
			return fail("MessageVaries", remedy, "%s said %q, and a moment later %q", before[i].Name, before[i].Message, after[i].Message).asWarning()
		}
	}
	return result
}

func (e evidence) nonRoot() Result {
	const remedy = "Build the image with a numeric user that is not root, such as USER 65532."
	a := e.tried[nonRoot]
	if a.reason() == "ContainerConfig" {
		return fail("RunsAsRoot", remedy, "%s", a.findings[0].Message)
	}
	return e.same(nonRoot, "NeedsRoot", remedy, "it runs as a user other than root")
}

func (e evidence) readOnlyFilesystem() Result {
	return e.same(readOnly, "WritesToFilesystem", "Write no files, or mount an emptyDir where they are to be.", "it runs on a read-only file system")
}

func (e evidence) memory() Result {
	return e.same(memory, "TooMuchMemory", "Read in pages, keep what matters: many checks run side by side.", "it runs with "+memoryLimit+" of memory")
}

func (e evidence) budget() Result {
	const remedy = "Keep the frame within PREFLIGHT_RESULT_BYTES, and print the whole as a frame to standard output: link preflight.Main, or follow WIRE.md."
	a := e.tried[budget]
	if a.messageError == nil && a.end != nil && len(a.end.Message) > smallBudget {
		return fail("OverBudget", remedy, "it was given %d bytes for its result, and took %d", smallBudget, len(a.end.Message))
	}
	if !e.check.Framed {
		return skip("NotFramed", "the Job promises no result")
	}
	return e.same(budget, "ResultLost", remedy, fmt.Sprintf("nothing was lost with %d bytes for its result", smallBudget))
}

// failsClosed is about a check that cannot ask: whatever it says then, it must
// not be that all is well.
func (e evidence) failsClosed() Result {
	a, ok := e.tried[cutOff]
	switch {
	case !e.reads:
		return skip("NoAccess", "the manifest gives it nothing to ask the API server")
	case !ok:
		return e.notTried()
	case !a.answered:
		return pass("without an API server it could not tell")
	case slices.ContainsFunc(a.findings, func(f finding.Finding) bool {
		return f.Outcome == preflight.Unknown || f.Outcome == preflight.Fail
	}):
		return pass("without an API server it said %s", a.outcomes())
	}
	return fail("FailsOpen", "Return the error of every request: what could not be asked is Unknown, and never a pass.",
		"without an API server it said %s", a.outcomes())
}

// same holds an attempt against the first one.
func (e evidence) same(trial, reason, remedy, conforms string) Result {
	a, ok := e.tried[trial]
	if !ok {
		return e.notTried()
	}
	if !a.answered {
		result := a.failure()
		if result.Outcome == preflight.Fail {
			result.Reason, result.Remediation = reason, remedy
		}
		return result
	}
	before, after := e.tried[asIs].outcomes(), a.outcomes()
	if before != after && trial != again && before != e.tried[again].outcomes() {
		return skip("NotTried", "it does not say the same twice as it is, so that there is nothing to compare with")
	}
	if before != after {
		return fail(reason, remedy, "it said %s, where as it is it says %s", after, before)
	}
	return pass("%s", conforms)
}

func (evidence) notTried() Result {
	return skip("NotTried", "as it is, it leaves no result to compare with")
}
