package conformance

import (
	"fmt"

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
	// Outcome is Unknown when the cluster prevented the test, and
	// Skipped when the requirement does not apply.
	Outcome     preflight.Outcome `json:"outcome"`
	Reason      finding.Reason    `json:"reason"`
	Message     string            `json:"message"`
	Remediation string            `json:"remediation,omitempty"`
}

func (r Result) asWarning() Result {
	r.Outcome = preflight.Warn
	return r
}

func pass(format string, args ...any) Result {
	return Result{Outcome: preflight.Pass, Reason: ReasonConforms, Message: fmt.Sprintf(format, args...)}
}

func skip(reason finding.Reason, format string, args ...any) Result {
	return Result{Outcome: preflight.Skipped, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func fail(reason finding.Reason, remedy, format string, args ...any) Result {
	return Result{Outcome: preflight.Fail, Reason: reason, Message: fmt.Sprintf(format, args...), Remediation: remedy}
}

// Kind is that of the document.
const Kind = "PreflightConformance"

// Report is the results for all checks of a manifest, each check's
// results in the same order.
type Report struct {
	Results []Result `json:"results"`
}

// Outcome is Fail when a check violates a requirement, else Unknown when one
// could not be tested, else Pass. A report without results is Unknown.
func (r Report) Outcome() preflight.Outcome {
	out := preflight.Pass
	if len(r.Results) == 0 {
		return preflight.Unknown
	}
	for _, result := range r.Results {
		switch result.Outcome {
		case preflight.Fail:
			return preflight.Fail
		case preflight.Unknown:
			out = preflight.Unknown
		case preflight.Pass, preflight.Warn, preflight.Skipped:
		}
	}
	return out
}
