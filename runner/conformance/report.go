package conformance

import (
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
)

// Kind is the kind of the document.
const Kind = "PreflightConformance"

// Report is the results for all checks of a manifest, each check's results in the same order.
type Report struct {
	Results []requirement.Result `json:"results"`
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
