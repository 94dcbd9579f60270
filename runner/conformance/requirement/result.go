package requirement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Result is the result of one requirement for one check.
type Result struct {
	// Check is the name of the check, as a preflight would report it; the name of
	// the file if a manifest cannot be read.
	Check string `json:"check"`
	// Requirement is one CamelCase word, stable between releases.
	Requirement string `json:"requirement"`
	// Outcome is Unknown when the cluster prevented the test, and Skipped when the requirement does not apply.
	Outcome     preflight.Outcome `json:"outcome"`
	Reason      string            `json:"reason"`
	Message     string            `json:"message"`
	Remediation string            `json:"remediation,omitempty"`
}

func (r Result) asWarning() Result {
	r.Outcome = preflight.Warn
	return r
}

func pass(format string, args ...any) Result {
	return Result{Outcome: preflight.Pass, Reason: reasonConforms.String(), Message: fmt.Sprintf(format, args...)}
}

func skip(reason finding.Reason, format string, args ...any) Result {
	return Result{Outcome: preflight.Skipped, Reason: reason.String(), Message: fmt.Sprintf(format, args...)}
}

func fail(reason finding.Reason, remedy, format string, args ...any) Result {
	return Result{Outcome: preflight.Fail, Reason: reason.String(), Message: fmt.Sprintf(format, args...), Remediation: remedy}
}

const (
	// reasonTimeout is the reason of runner/jobs and of the SDK for a check that ran until its deadline.
	reasonTimeout    = "Timeout"
	reasonCheckError = "CheckError"
	// kubeletBytes is the limit of a kubelet for a termination message.
	kubeletBytes = 4096
)

var _ = catalog.Reasons("A check ends with an error.", `
CheckError | The program of the check fails. | Fix the check.`)

// failure is the result of an attempt without a final result of the check, as a preflight reports it.
func (a Attempt) failure() Result {
	if len(a.Findings) == 0 {
		return Result{Outcome: preflight.Unknown, Reason: reasonNoFinding.String(), Message: "it is unknown how it ended", Remediation: "Run the conformance test again."}
	}
	f := a.Findings[0]
	result := Result{Outcome: preflight.Unknown, Reason: f.Reason, Message: f.Message, Remediation: f.Remediation}
	if remedy, ok := defects()[f.Reason]; ok && (f.Reason != reasonTimeout || a.running) {
		result.Outcome, result.Remediation = preflight.Fail, remedy
	}
	if a.End != nil && a.messageError != nil && len(a.End.Message) >= kubeletBytes {
		result.Message += fmt.Sprintf("; its termination message has %d bytes, the limit of a kubelet", len(a.End.Message))
	}
	return result
}

// defects are the reasons of runner/jobs that are defects of the check, each
// with its remedy. All others are caused by the cluster.
func defects() map[string]string {
	const result = "Write the result as the SDK does: link preflight.Main, or follow WIRE.md."
	return map[string]string{
		"NoResult":        "Write the final result in the first process before it ends; its children are killed with it. " + result,
		"BadResult":       result,
		"Contradiction":   "End with the exit code of the result. " + result,
		"Killed":          "Find out what killed the check: it must end by itself.",
		"OOMKilled":       "Use less memory, or raise the limit in the manifest.",
		"NotProvided":     "Install the program at the path in the manifest, by default /bin/preflight.",
		"BinaryMissing":   "Install the program at the path in the manifest, by default /bin/preflight.",
		"NotExecutable":   "Build the program for linux, statically linked, and make it executable.",
		"ContainerConfig": "Match image and security context: build the image with a numeric user other than root.",
		reasonTimeout:     "End before PREFLIGHT_DEADLINE, also while waiting.",
		"AttemptFailed":   result,
		"Failed":          result,
	}
}

func (a Attempt) reason() string {
	if len(a.Findings) == 0 {
		return ""
	}
	return a.Findings[0].Reason
}

// outcomes are the findings without messages: names with outcomes and reasons.
func (a Attempt) outcomes() string {
	sorted := slices.SortedFunc(slices.Values(a.Findings), func(x, y finding.Finding) int { return cmp.Compare(x.Name, y.Name) })
	var texts []string
	for _, f := range sorted {
		texts = append(texts, fmt.Sprintf("%s %s (%s)", f.Name, f.Outcome, f.Reason))
	}
	return strings.Join(texts, ", ")
}

// Passed is true when there are findings and all of them pass.
func (a Attempt) Passed() bool {
	return len(a.Findings) > 0 && !slices.ContainsFunc(a.Findings, func(f finding.Finding) bool { return f.Outcome != preflight.Pass })
}

// unended is the result when the node did not stop the check.
func (a Attempt) unended() (Result, bool) {
	switch {
	case a.End == nil && a.running:
		return Result{
			Outcome: preflight.Unknown, Reason: reasonNotTried.String(), Message: "the node did not stop it before the end of the test",
			Remediation: "Run the conformance test again with a longer timeout.",
		}, true
	case a.End == nil:
		return a.failure(), true
	case !a.Stopped:
		return a.tooFast(), true
	}
	return Result{}, false
}

// tooFast is the result when the check ended before the node could stop it, or at the same time.
func (a Attempt) tooFast() Result {
	return skip(reasonTooFast, "it ended by itself, with exit code %d, before it could be stopped", a.End.ExitCode)
}
