package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	// reasonTimeout is runner/jobs' for a check that was at work when the
	// time was up.
	reasonTimeout = "Timeout"
	// kubeletBytes is what a kubelet keeps of a termination message.
	kubeletBytes = 4096
)

// failure is the result of an attempt in which the check did not have the last
// word, in the words of a preflight.
func (a attempt) failure() Result {
	if len(a.findings) == 0 {
		return Result{Outcome: preflight.Unknown, Reason: "NoFinding", Message: "nobody knows how it ended", Remediation: "Run it again."}
	}
	f := a.findings[0]
	result := Result{Outcome: preflight.Unknown, Reason: f.Reason, Message: f.Message, Remediation: f.Remediation}
	if remedy, ok := defects()[f.Reason]; ok && (f.Reason != reasonTimeout || a.running) {
		result.Outcome, result.Remediation = preflight.Fail, remedy
	}
	if a.end != nil && a.messageError != nil && len(a.end.Message) >= kubeletBytes {
		result.Message += fmt.Sprintf("; its termination message has %d bytes, where a kubelet cuts it", len(a.end.Message))
	}
	return result
}

// defects are the reasons of runner/jobs that are the check's own fault, each
// with its remedy. All others are the cluster's.
func defects() map[string]string {
	const result = "Write the result as the SDK does: link preflight.Main, or follow WIRE.md."
	return map[string]string{
		"NoResult":        "Let the first process write the final result before it ends; its children die with it. " + result,
		"BadResult":       result,
		"Contradiction":   "End with the exit code that goes with the result. " + result,
		"Killed":          "Find out what killed it: a check ends by itself.",
		"OOMKilled":       "Let it take less memory, or raise the limit in its manifest.",
		"BinaryMissing":   "Put the program where the manifest says, by default at /bin/preflight.",
		"NotExecutable":   "Build the program for linux, statically, and make it executable.",
		"ContainerConfig": "Let image and security context agree: build the image with a numeric user that is not root.",
		reasonTimeout:     "End before PREFLIGHT_DEADLINE, also while waiting for others.",
		"AttemptFailed":   result,
		"Failed":          result,
	}
}

// reason is that of the first finding.
func (a attempt) reason() string {
	if len(a.findings) == 0 {
		return ""
	}
	return a.findings[0].Reason
}

// outcomes is what was said, without the words: names with outcomes and reasons.
func (a attempt) outcomes() string {
	sorted := slices.SortedFunc(slices.Values(a.findings), func(x, y finding.Finding) int { return cmp.Compare(x.Name, y.Name) })
	var said []string
	for _, f := range sorted {
		said = append(said, fmt.Sprintf("%s %s (%s)", f.Name, f.Outcome, f.Reason))
	}
	return strings.Join(said, ", ")
}

// passed is true when there are findings and all of them pass.
func (a attempt) passed() bool {
	return len(a.findings) > 0 && !slices.ContainsFunc(a.findings, func(f finding.Finding) bool { return f.Outcome != preflight.Pass })
}

// unended is the result where the node did not put an end to the check.
func (a attempt) unended() (Result, bool) {
	switch {
	case a.end == nil:
		return a.failure(), true
	case !a.ended:
		return a.tooFast(), true
	}
	return Result{}, false
}

// tooFast is the result where the check ended before the node could end it, or
// in the same moment.
func (a attempt) tooFast() Result {
	return skip("TooFast", "it ended by itself, with exit code %d, before it could be ended", a.end.ExitCode)
}
