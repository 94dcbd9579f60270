package runner

import (
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/jobplan"
)

// sharedResults are the results of the checks of a path. A check that several releases
// have with the same image runs once. The updates of a path run one after the other; a nil
// value shares nothing.
type sharedResults struct {
	// identities are those of the checks of the present update, by name.
	identities map[string]string
	// results are settled, by identity.
	results map[string]sharedResult
}

// sharedResult is the result of a check of the release of that version.
type sharedResult struct {
	version  string
	findings []finding.Finding
}

func newSharedResults() *sharedResults {
	return &sharedResults{identities: map[string]string{}, results: map[string]sharedResult{}}
}

// known returns the result that an earlier update of the path had of the same check, by the
// checks of a draft.
func (s *sharedResults) known(draft jobplan.Draft) func(jobplan.Check) ([]finding.Finding, bool) {
	return func(check jobplan.Check) ([]finding.Finding, bool) {
		if s == nil {
			return nil, false
		}
		identity, comparable := draft.Identity(check)
		if !comparable {
			delete(s.identities, check.Name)
			return nil, false
		}
		s.identities[check.Name] = identity
		result, known := s.results[identity]
		if !known {
			return nil, false
		}
		findings := slices.Clone(result.findings)
		for i := range findings {
			findings[i] = findings[i].Noted("The check is the same as that of %s, and was run once.", result.version)
		}
		return findings, true
	}
}

// put keeps the result of a check of the present update, if it is settled.
func (s *sharedResults) put(check, version string, findings []finding.Finding) {
	if s == nil || !hold.IsSettled(findings) || s.identities[check] == "" {
		return
	}
	if _, known := s.results[s.identities[check]]; !known {
		s.results[s.identities[check]] = sharedResult{version: version, findings: slices.Clone(findings)}
	}
}
