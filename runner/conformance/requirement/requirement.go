// Package requirement answers: which requirements does a check meet, given the results of its trials?
//
// [Evidence.Results] is pure; [Observe] reads the end of a trial from its pod.
package requirement

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// The requirements that are checked before a run.
const (
	Manifest = "Manifest"
	Image    = "Image"
)

// The names of the trials.
const (
	AsIs       = "as it is"
	Again      = "again"
	Killed     = "killed"
	Terminated = "terminated"
	NonRoot    = "non-root"
	ReadOnly   = "read-only"
	Memory     = "memory"
	Budget     = "budget"
	CutOff     = "cut off"
)

const (
	// MemoryLimit is the memory that must suffice for a check: a preflight runs some thirty of them concurrently.
	MemoryLimit = "128Mi"
	// SmallBudget is the least that a runner may grant a result (WIRE.md).
	SmallBudget = 512
	// StopSeconds is how long a check may take to end after SIGTERM, in seconds.
	StopSeconds = 5
)

// MaxLog bounds the log of a check, in bytes. A preflight reads the last 2 MiB, and a node keeps 10 MiB.
const MaxLog = 1 << 20

// maxTime is the duration above which a check is reported as slow.
const maxTime = time.Minute

// Evidence is the data about one check.
type Evidence struct {
	Check  jobplan.Check
	Images string
	Tried  map[string]Attempt
	Rights rights.Rights
	// Alone is true for an image without a manifest.
	Alone bool
	// Reads is true when a binding of the manifest grants its account rights.
	Reads bool
}

// Results checks the evidence against every requirement.
func (e Evidence) Results() []Result {
	requirements := []struct {
		name    string
		require func(Evidence) Result
	}{
		{Manifest, requireManifest},
		{Image, requireImage},
		{"ReadOnlyAccess", requireAccess},
		{"Result", requireResult},
		{"Time", requireTime},
		{"Output", requireOutput},
		{"Killed", requireKilled},
		{"Terminated", requireTerminated},
		{"Idempotent", requireIdempotent},
		{"NonRoot", requireNonRoot},
		{"ReadOnlyFilesystem", requireReadOnlyFilesystem},
		{"Memory", requireMemory},
		{"ResultBudget", requireBudget},
		{"FailsClosed", requireFailsClosed},
	}
	results := make([]Result, 0, len(requirements))
	for _, requirement := range requirements {
		result := requirement.require(e)
		result.Check, result.Requirement = e.Check.Name, requirement.name
		results = append(results, result)
	}
	return results
}

func requireManifest(e Evidence) Result {
	return pass("%s is accepted by a preflight and by the API server", e.Check.File)
}

func requireImage(e Evidence) Result { return pass("%s", e.Images) }

func requireAccess(e Evidence) Result {
	user := rights.User(e.Rights.Account)
	switch {
	case len(e.Rights.Writes) > 0:
		return fail(reasonMayWrite, "Give the check a ServiceAccount of its own, annotated like its Job, with roles that get, list and watch.",
			"%s may %s; a check must have read-only access", user, access.Summarize(e.Rights.Writes, 5))
	case len(e.Rights.Unserved) > 0:
		return Result{
			Outcome: preflight.Unknown, Reason: reasonAPIUnavailable.String(),
			Message: fmt.Sprintf("the write access of %s to %s is unknown: the API server does not currently serve "+
				"these groups", user,
				strings.Join(e.Rights.Unserved, ", ")),
			Remediation: "Check the API services: oc get apiservices",
		}
	}
	return pass("%s has no write access (%s)", user, words.Count(e.Rights.Roles, "role"))
}

func requireResult(e Evidence) Result {
	a := e.Tried[AsIs]
	if !a.Answered {
		return a.failure()
	}
	if violation, ok := e.inconclusive(a); ok {
		return violation
	}
	if !e.Check.Framed {
		return fail(reasonNotFramed, "Link the SDK, or write the result as WIRE.md specifies, and annotate the Job with "+
			"preflight.openshift.io/result: framed.",
			"the Job declares no framed result, so only its exit code %d is known", a.End.ExitCode).asWarning()
	}
	return pass("reported %s with exit code %d", a.outcomes(), a.End.ExitCode)
}

// inconclusive is the result for findings that are Unknown: Fail for those that
// are Unknown on every cluster, else Warn. ok is false when there are none.
func (e Evidence) inconclusive(a Attempt) (result Result, ok bool) {
	for _, f := range a.Findings {
		if f.Outcome != preflight.Unknown {
			continue
		}
		reason := unknownReason(f)
		if remedy, always := e.alwaysUnknown()[reason]; always {
			return fail(finding.ReportedReason(reason), remedy, "%s is Unknown on every cluster: %s", f.Name, f.Message), true
		}
		if !ok {
			result = fail(reasonInconclusive, "Run the check on a cluster where it reaches a conclusion, or correct "+
				"the problem in the message.",
				"%s is Unknown on this cluster (%s): %s", f.Name, reason, f.Message).asWarning()
		}
		ok = true
	}
	return result, ok
}

// MissingAccount is the remedy for a ServiceAccount that the manifests lack.
const MissingAccount = "Add the ServiceAccount to the manifests, with the annotation openshift.io/preflight-check: \"true\"."

// alwaysUnknown are the reasons of a check that cannot pass on any cluster, each
// with its remedy. Without a manifest, missing permissions are not a violation.
func (e Evidence) alwaysUnknown() map[string]string {
	reasons := map[string]string{
		collector.ReasonPanic.String():              "Fix the panic; the stack is in the evidence of the finding.",
		reasonInvalidCheck.String():                 "Correct the declaration of the check.",
		reasonInvalidArguments.String():             "Correct the command of the container in the manifest.",
		reasonNotFinished.String():                  "Return from the check instead of exiting the process.",
		collector.ReasonTimeout.String():            "End before PREFLIGHT_DEADLINE, also while waiting.",
		collector.ReasonNoResult.String():           "Write the final result before the process ends.",
		launch.ReasonServiceAccountMissing.String(): MissingAccount,
		collector.ReasonForbidden.String(): "Declare the rules of the check in a Role or ClusterRole of the manifest, and bind " +
			"it to its ServiceAccount.",
	}
	if e.Alone {
		delete(reasons, collector.ReasonForbidden.String())
	}
	return reasons
}

// unknownReason is the reason of an Unknown finding. The SDK reports a request
// that the API server denies as an error of the check, with the server's message.
func unknownReason(f finding.Finding) string {
	denied := regexp.MustCompile(`\bis forbidden: (User|user) "|\b403 Forbidden\b`)
	if f.Reason == reasonCheckError && denied.MatchString(f.Message) {
		return collector.ReasonForbidden.String()
	}
	return f.Reason
}

func requireTime(e Evidence) Result {
	a := e.Tried[AsIs]
	if a.running && a.reason() == reasonTimeout {
		return fail(reasonNeverEnds, "End before PREFLIGHT_DEADLINE, also while waiting: use the context that Run receives.",
			"it was still running at its deadline")
	}
	if a.End == nil {
		return skip(reasonNotTried, "it did not exit")
	}
	took := a.Took()
	if took > maxTime {
		return fail(reasonSlow, "Send fewer requests, or send them concurrently: a whole preflight has ten minutes.", "it took %s",
			took).asWarning()
	}
	return pass("it took %s (resolution 1s)", took)
}

func requireOutput(e Evidence) Result {
	a := e.Tried[AsIs]
	if a.flooded {
		return fail(reasonTooMuchOutput, "Log only what an administrator needs: a node rotates logs at 10 MiB, and a preflight reads "+
			"the last 2 MiB.",
			"it wrote more than %d KiB to its log", MaxLog>>10)
	}
	if a.End == nil {
		return skip(reasonNotTried, "it did not exit")
	}
	return pass("it wrote no more than %d KiB to its log", MaxLog>>10)
}

func requireKilled(e Evidence) Result {
	a := e.Tried[Killed]
	if unended, ok := a.unended(); ok {
		return unended
	}
	how := fmt.Sprintf("stopped by the node, with exit code %d", a.End.ExitCode)
	if a.signal == corev1.SIGKILL {
		if !a.killed() {
			return a.tooFast()
		}
		how = "stopped by SIGKILL"
	}
	const remedy = "Report that the check runs before its first request, and report no result before the last: link preflight.Main, " +
		"or follow WIRE.md."
	switch {
	case a.Passed():
		return fail(reasonPassesWhenKilled, remedy, "%s, it counts as passed", how)
	case a.messageError != nil && e.Check.Framed:
		return fail(reasonNothingLeft, remedy, "%s, it left no result in the state running: %v", how, a.messageError)
	case a.messageError != nil:
		return pass("%s, it does not count as passed", how)
	}
	return pass("%s, it left a result in the state %q, which does not count as passed", how, a.message.State)
}

func requireTerminated(e Evidence) Result {
	a := e.Tried[Terminated]
	if unended, ok := a.unended(); ok {
		return unended
	}
	if a.killed() {
		return fail(reasonIgnoresSIGTERM, "Exit on SIGTERM: link preflight.Main, which cancels the context that Run "+
			"receives, or trap it in a shell script.",
			"it did not exit within %d seconds of SIGTERM, and was killed", StopSeconds)
	}
	if a.Passed() {
		return fail(reasonPassesWhenTerminated, "On SIGTERM, report Unknown for everything not checked yet.",
			"stopped by SIGTERM, it counts as passed")
	}
	return pass("it exited within %d seconds of SIGTERM, with exit code %d", StopSeconds, a.End.ExitCode)
}

func requireIdempotent(e Evidence) Result {
	const remedy = "Report the same result for the same cluster: omit times, counters and data of earlier runs, and sort lists."
	result := e.same(Again, reasonNotIdempotent, remedy, "the second run reported the same as the first")
	if result.Outcome != preflight.Pass {
		return result
	}
	after := map[string]string{}
	for _, f := range e.Tried[Again].Findings {
		after[f.Name] = f.Message
	}
	for _, before := range e.Tried[AsIs].Findings {
		if before.Outcome != preflight.Unknown && before.Message != after[before.Name] {
			return fail(reasonMessageVaries, remedy, "%s reported %q, then %q", before.Name, before.Message, after[before.Name]).asWarning()
		}
	}
	return result
}

func requireNonRoot(e Evidence) Result {
	const remedy = "Build the image with a numeric user that is not root, such as USER 65532."
	a := e.Tried[NonRoot]
	if a.reason() == "ContainerConfig" {
		return fail(reasonRunsAsRoot, remedy, "%s", a.Findings[0].Message)
	}
	return e.same(NonRoot, reasonNeedsRoot, remedy, "it runs as a user other than root")
}

func requireReadOnlyFilesystem(e Evidence) Result {
	return e.same(ReadOnly, reasonWritesToFilesystem, "Write no files, or mount an emptyDir for them.", "it runs on a read-only file system")
}

func requireMemory(e Evidence) Result {
	return e.same(Memory, reasonTooMuchMemory, "List in pages, and keep only what is needed: many checks run concurrently.",
		"it runs with "+MemoryLimit+" of memory")
}

func requireBudget(e Evidence) Result {
	const remedy = "Keep the frame within PREFLIGHT_RESULT_BYTES, and print the complete result as a frame to standard output: link " +
		"preflight.Main, or follow WIRE.md."
	a := e.Tried[Budget]
	if a.messageError == nil && a.End != nil && len(a.End.Message) > SmallBudget {
		return fail(reasonOverBudget, remedy, "its result has %[2]d bytes; the budget was %[1]d", SmallBudget, len(a.End.Message))
	}
	if !e.Check.Framed {
		return skip(reasonNotFramed, "the Job declares no framed result")
	}
	return e.same(Budget, reasonResultLost, remedy, fmt.Sprintf("no result was lost with a budget of %d bytes", SmallBudget))
}

// requireFailsClosed is about a check without an API server: it must not pass.
func requireFailsClosed(e Evidence) Result {
	a, ok := e.Tried[CutOff]
	switch {
	case !e.Reads:
		return skip(reasonNoAccess, "the manifest grants it no access to the API server")
	case !ok:
		return e.notTried()
	case !a.Answered:
		return pass("without an API server it was inconclusive")
	case slices.ContainsFunc(a.Findings, func(f finding.Finding) bool {
		return f.Outcome == preflight.Unknown || f.Outcome == preflight.Fail
	}):
		return pass("without an API server it reported %s", a.outcomes())
	}
	return fail(reasonFailsOpen, "Return the error of every request: a failed request is Unknown, never a pass.",
		"without an API server it reported %s", a.outcomes())
}

func (e Evidence) same(trial string, reason finding.Reason, remedy, conforms string) Result {
	a, ok := e.Tried[trial]
	if violation, inconclusive := e.inconclusive(e.Tried[AsIs]); !ok || inconclusive && violation.Outcome == preflight.Fail {
		return e.notTried()
	}
	if !a.Answered {
		result := a.failure()
		if result.Outcome == preflight.Fail {
			result.Reason, result.Remediation = reason.String(), remedy
		}
		return result
	}
	before, after := e.Tried[AsIs].outcomes(), a.outcomes()
	if before != after && trial != Again && before != e.Tried[Again].outcomes() {
		return skip(reasonNotTried, "two unchanged runs reported different results, so there is nothing to compare with")
	}
	if before != after {
		return fail(reason, remedy, "it reported %s; unchanged it reports %s", after, before)
	}
	return pass("%s", conforms)
}

func (Evidence) notTried() Result {
	return skip(reasonNotTried, "unchanged, it leaves no result to compare with")
}
