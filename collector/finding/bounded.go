package finding

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var reasonAndMore = NewReason("AndMore", Explanation{
	Meaning: "A check has more findings than it lists.",
	Cause: "The check has one finding per object, and very many objects. The 50 worst findings are listed, and this one counts the " +
		"others.",
	Remedy: "Fix the listed findings, then run the preflight again; it lists the worst findings first.",
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

// Stops reports whether the finding is a failure that blocks, bypassed or not.
func (f Finding) Stops() bool { return f.Outcome == preflight.Fail && f.Blocks }

// Inconclusive is true for Unknown, and for an outcome that this version does
// not know: a newer check's new outcome must not count as a pass.
func (f Finding) Inconclusive() bool {
	switch f.Outcome {
	case preflight.Pass, preflight.Warn, preflight.Fail, preflight.Skipped:
		return false
	case preflight.Unknown:
		return true
	}
	return true
}

// Open reports whether the finding counts against the update: it blocks or is inconclusive, and is not bypassed.
func (f Finding) Open() bool { return f.Bypass == nil && (f.Stops() || f.Inconclusive()) }

// EffectOf is the effect that follows from outcome and bypass.
func (f Finding) EffectOf() Effect {
	switch {
	case !f.Stops() && !f.Inconclusive():
		return EffectNone
	case f.Bypass != nil:
		return EffectBypassed
	case f.Stops():
		return EffectBlocks
	}
	return EffectUndecided
}

// Acceptable reports whether an administrator may bypass findings of this
// source by name. A gate is passed by fixing or acknowledging, and trust in the
// release is not a risk to accept by name: both leave only force.
func (s Source) Acceptable() bool {
	switch s {
	case SourceJob, SourceRisk, SourceHealth, SourceImage, SourceRehearsal:
		return true
	case SourceGate, SourceSignature, SourcePayload:
		return false
	}
	return false
}

// Compare orders findings for a report: deciding findings first, then by name and the other fields, so that the
// same findings give the same bytes in whatever order they were collected. Findings without an effect are ordered
// by outcome before name.
func Compare(a, b Finding) int {
	order := cmp.Compare(a.EffectOf().rank(), b.EffectOf().rank())
	if order == 0 && a.EffectOf() == EffectNone {
		order = a.Outcome.Compare(b.Outcome)
	}
	order = cmp.Or(
		order,
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Source, b.Source),
		a.Outcome.Compare(b.Outcome),
		cmp.Compare(a.Reason, b.Reason),
		cmp.Compare(a.Message, b.Message),
	)
	if order != 0 {
		return order
	}
	return bytes.Compare(a.encoded(), b.encoded())
}

func (f Finding) encoded() []byte {
	text, err := json.Marshal(f)
	if err != nil {
		return nil // strings, numbers and lists of them always encode
	}
	return text
}

// rank orders effects, the most severe first.
func (e Effect) rank() int {
	return slices.Index([]Effect{EffectBlocks, EffectUndecided, EffectBypassed, EffectNone}, e)
}
