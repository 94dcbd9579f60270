package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const ReasonAndMore finding.Reason = "AndMore"

// maxFindings is how many findings a check makes of as many objects.
const maxFindings = 50

// bounded keeps the worst findings, and says in one more how many others there
// are and how bad the worst of them is.
func bounded(findings []finding.Finding) []finding.Finding {
	if len(findings) <= maxFindings {
		return findings
	}
	slices.SortStableFunc(findings, func(a, b finding.Finding) int {
		return cmp.Compare(severity(a.Outcome), severity(b.Outcome))
	})
	rest := findings[maxFindings:]
	count := map[preflight.Outcome]int{}
	for _, f := range rest {
		count[f.Outcome]++
	}
	var counts []string
	for _, outcome := range outcomes() {
		if count[outcome] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", count[outcome], outcome))
		}
	}
	return append(slices.Clip(findings[:maxFindings]), finding.New(rest[0].Outcome, ReasonAndMore,
		"there are %d more findings like the %d listed: %s", len(rest), maxFindings, strings.Join(counts, ", ")).
		Remedy("Put right what is listed, then run the preflight again: it lists the worst first."))
}

// outcomes are all of them, the worst first.
func outcomes() []preflight.Outcome {
	return []preflight.Outcome{preflight.Fail, preflight.Unknown, preflight.Warn, preflight.Skipped, preflight.Pass}
}

func severity(outcome preflight.Outcome) int { return slices.Index(outcomes(), outcome) }

// someOf lists the first few of many.
func someOf(many []string, most int) string {
	if len(many) <= most {
		return strings.Join(many, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(many[:most], ", "), len(many)-most)
}

// short bounds text that somebody else wrote.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " [...]"
}
