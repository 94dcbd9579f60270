package projection

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

const maxCauses = 5

// valid reports whether there is a verdict that counts.
func (p projected) valid() bool { return p.observed.Verdict != nil && p.ended == "" }

// before reports whether the verdict is older than the request.
func (p projected) before() bool {
	completed, err := time.Parse(time.RFC3339, p.observed.Verdict.Run.CompletionTime)
	return err != nil || completed.Before(p.opens)
}

// whyEnded is why the verdict is not that of the object.
func (p projected) whyEnded() string {
	if p.observed.Verdict == nil {
		return ""
	}
	completed, err := time.Parse(time.RFC3339, p.observed.Verdict.Run.CompletionTime)
	switch {
	case err != nil:
		return "the time of its verdict is unknown"
	case completed.Before(p.opens):
		return "its verdict is older than the time for which the preflight is requested"
	case p.observed.Verdict.Standing == nil:
		return "unknown whether its verdict is valid"
	case len(p.observed.Verdict.Standing.Ended) > 0:
		return words.Clauses(p.observed.Verdict.Standing.Ended, maxCauses)
	}
	if expired := standing.Expired(*p.observed.Verdict, p.observed.Now); expired != "" {
		return expired
	}
	if unmet := terms(*p.observed.Verdict, p.object); unmet != "" || p.observed.Verdict.Verdict.Decision != verdict.Ready {
		return unmet
	}
	return p.observed.Verdict.Refusal()
}

// expired reports whether the object had a verdict that is no longer valid.
func (p projected) expired() bool {
	return p.observed.Verdict != nil && p.ended != "" && terms(*p.observed.Verdict, p.object) == "" && !p.before()
}

// decide sets what a valid verdict states.
func (p projected) decide(status *v1alpha1.UpdatePreflightStatus) {
	decided := p.observed.Verdict.Verdict
	status.Run = words.Cut(p.observed.Verdict.Run.ID, maxID)
	status.Decision = string(decided.Decision)
	status.Blocking, status.BlockingOmitted = bounded(decided.Blocking)
	status.Undecided, status.UndecidedOmitted = bounded(decided.Undecided)
	status.Accepted, status.AcceptedOmitted = bounded(decided.Accepted)
	if until, known := standing.ValidUntil(*p.observed.Verdict); known {
		status.ValidUntil = &metav1.Time{Time: until}
	}
}

// bounded returns the first names in order, and how many it omits.
func bounded(names []string) (kept []string, omitted int32) {
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	for _, name := range sorted[:min(len(sorted), v1alpha1.MaxNames)] {
		kept = append(kept, words.Cut(name, maxName))
	}
	return kept, int32(len(sorted) - len(kept)) //nolint:gosec // a report has far fewer names
}
