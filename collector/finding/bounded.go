package finding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var reasonAndMore = NewReason("AndMore", Explanation{
	Meaning: "Reported when a check has more findings than it lists.",
	Cause:   "The check has a finding for each of very many objects. The worst 50 are listed, this one counts the others.",
	Remedy:  "Fix what is listed, then run the preflight again; it lists the worst findings first.",
})

const maxListed = 50

// Draft is a finding that is described only when it is listed: of thousands, most are only counted.
type Draft struct {
	Outcome preflight.Outcome
	// Describe returns the finding, with the outcome of the draft.
	Describe func() Finding
}

// Drafts makes drafts of findings that are already described.
func Drafts(findings ...Finding) []Draft {
	drafts := make([]Draft, 0, len(findings))
	for _, f := range findings {
		drafts = append(drafts, Draft{Outcome: f.Outcome, Describe: func() Finding { return f }})
	}
	return drafts
}

// Bounded returns the findings, the worst first, otherwise in the order of the
// drafts. It describes the first 50, and counts the others in one more finding
// with the outcome of the worst of them. It sorts drafts in place.
func Bounded(drafts []Draft) []Finding {
	slices.SortStableFunc(drafts, func(a, b Draft) int { return a.Outcome.Compare(b.Outcome) })
	listed := min(len(drafts), maxListed)
	findings := make([]Finding, 0, listed+1)
	for _, draft := range drafts[:listed] {
		findings = append(findings, draft.Describe())
	}
	if listed < len(drafts) {
		findings = append(findings, unlisted(drafts[listed:]))
	}
	return findings
}

// unlisted counts drafts, which are sorted, by outcome.
func unlisted(drafts []Draft) Finding {
	var counts []string
	for rest := drafts; len(rest) > 0; {
		same := slices.IndexFunc(rest, func(d Draft) bool { return d.Outcome != rest[0].Outcome })
		if same < 0 {
			same = len(rest)
		}
		counts = append(counts, fmt.Sprintf("%d %s", same, rest[0].Outcome))
		rest = rest[same:]
	}
	return New(drafts[0].Outcome, reasonAndMore, "%s besides the %d listed: %s",
		words.Count(len(drafts), "more finding"), maxListed, strings.Join(counts, ", ")).
		Do(Retry(""))
}
