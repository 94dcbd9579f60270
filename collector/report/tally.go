package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	page "github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// What findings require, or why they require nothing.
const (
	mustBeFixed  = "must be fixed"
	inconclusive = "inconclusive"
	warning      = "warning"
	passed       = "passed"
	skipped      = "skipped"
)

func requires(f finding.Finding) string {
	switch {
	case f.Bypass != nil:
		return page.Label(f)
	case f.Stops():
		return mustBeFixed
	case f.Inconclusive():
		return inconclusive
	case f.Outcome == preflight.Pass:
		return passed
	case f.Outcome == preflight.Skipped:
		return skipped
	}
	return warning
}

func plural(word string, number int) string {
	switch {
	case word == page.Acknowledged:
		return "acknowledged"
	case word == warning && number > 1:
		return "warnings"
	}
	return word
}

// counts are the numbers of findings by what they require.
func (r Report) counts() string {
	numbers := map[string]int{}
	for _, f := range r.Findings {
		numbers[requires(f)]++
	}
	var parts []string
	if r.Run.Phase == PhaseRunning || r.Expected.Reported < r.Expected.Checks {
		parts = append(parts, fmt.Sprintf("%d of %s reported", r.Expected.Reported, words.Count(r.Expected.Checks, "check")))
	}
	for _, each := range []string{mustBeFixed, inconclusive, warning, page.Forced, page.Accepted, page.Acknowledged, passed, skipped} {
		if n := numbers[each]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, plural(each, n)))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "no findings")
}

// tally counts the findings by label, the worst first.
func tally(findings []finding.Finding) string {
	counts := map[string]int{}
	for _, f := range findings {
		counts[page.Label(f)]++
	}
	var parts []string
	for _, label := range page.Labels() {
		if counts[label] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[label], label))
		}
	}
	return strings.Join(parts, ", ")
}
