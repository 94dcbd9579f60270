package runner

import (
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/jobplan"
	"github.com/openshift/update-preflight/runner/record"
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

// find returns the result that an earlier update of the path had of the same check.
func (s *sharedResults) find(draft jobplan.Draft, check jobplan.Check) ([]finding.Finding, bool) {
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
		findings[i].Message = noted(findings[i].Message, fmt.Sprintf("The check is the same as that of %s, and was run once.", result.version))
	}
	return findings, true
}

// put keeps the result of a check of the present update, if it is settled.
func (s *sharedResults) put(check, version string, findings []finding.Finding) {
	if s == nil || !isSettled(findings) || s.identities[check] == "" {
		return
	}
	if _, known := s.results[s.identities[check]]; !known {
		s.results[s.identities[check]] = sharedResult{version: version, findings: slices.Clone(findings)}
	}
}

// noted is a message with a sentence after it.
func noted(message, note string) string {
	if message == "" {
		return note
	}
	return message + "\n" + note
}

// results are the findings of checks that have reported, by check.
type results map[string][]finding.Finding

// settledResults are those of a record that need not be collected again. What was
// inconclusive may be known by now.
func settledResults(taken record.Record) results {
	settled := results{}
	for _, result := range taken.Results {
		if isSettled(result.Findings) {
			settled[result.Check] = result.Findings
		}
	}
	return settled
}

func isSettled(findings []finding.Finding) bool {
	return len(findings) > 0 && !slices.ContainsFunc(findings, finding.Finding.Inconclusive)
}
