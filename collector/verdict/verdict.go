// Package verdict answers: may the cluster be updated, given all findings?
//
// It is pure: its input is findings and policy, its output the decision.
package verdict

import (
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

// Decision is the answer to "is it safe to update?".
type Decision string

// The decisions, in the order of precedence: what is Blocked is not Undecided, what is Undecided is not Ready.
const (
	Blocked   Decision = "Blocked"
	Undecided Decision = "Undecided"
	Ready     Decision = "Ready"
	// NothingKnown is in place of Ready for a later update of a path: nothing that can be
	// evaluated in advance blocks it.
	NothingKnown Decision = "NothingKnown"
)

// Policy has the decisions that the administrator made beforehand.
type Policy struct {
	// Accepted maps the name of a finding to where it was accepted, e.g. "spec.desiredUpdate.acceptRisks".
	Accepted map[string]string
	// Force requests to continue although the release is not verified or findings block. It changes no decision: the
	// verdict records it, with the requester's reason, in one line, and the user.
	Force                 bool
	ForceReason, ForcedBy string
	// Provisional is for a later update of a path, which starts from a release that the
	// cluster does not run yet: its verdict is NothingKnown instead of Ready.
	Provisional bool
}

// Verdict is the decision and the names of the findings that led to it, each list sorted and free of duplicates.
type Verdict struct {
	Decision Decision `json:"decision"`
	// Forced is true when force was requested, needed or not. The decision is the one without it.
	Forced bool `json:"forced"`
	// ForceReason is why force was requested, and ForcedBy the user who requested it; empty without force, and if
	// unknown.
	ForceReason string `json:"forceReason,omitempty"`
	ForcedBy    string `json:"forcedBy,omitempty"`
	// Provisional is true for a later update of a path, whose decision is never Ready.
	Provisional bool `json:"provisional,omitempty"`
	// Blocking names the unbypassed failures.
	Blocking []string `json:"blocking"`
	// Undecided names the unbypassed inconclusive findings.
	Undecided []string `json:"undecided"`
	// Accepted are the names of findings that were bypassed by acceptance.
	Accepted []string `json:"accepted"`
	// Narrowed are the parts that the request left out of the evaluation, such as ignored alerts; none if it is
	// complete. The caller of Fold sets it.
	Narrowed []string `json:"narrowed,omitempty"`
	// ValidUntil is the RFC 3339 time until when the decision holds, unless the
	// cluster changes before (package fingerprint); empty when the run was not
	// completed.
	ValidUntil string `json:"validUntil,omitempty"`
}

// LeavesOut says what the request left out, as a clause; empty for nothing.
func (v Verdict) LeavesOut() []string {
	const most = 5
	if len(v.Narrowed) == 0 {
		return nil
	}
	return []string{"the run leaves out " + words.External(words.List(v.Narrowed, most))}
}

// Summary is the decision, and whether it was forced.
func (v Verdict) Summary() string {
	if v.Forced {
		return string(v.Decision) + " (FORCED)"
	}
	return string(v.Decision)
}

// Expectation is the number of expected checks, and of checks that reported.
type Expectation struct {
	Checks   int `json:"checks"`
	Reported int `json:"reported"`
	// Missing names the checks that did not report, sorted.
	Missing []string `json:"missing,omitempty"`
}

// met reports whether every expected check reported, or was accepted by name without a report.
func (e Expectation) met(policy Policy) bool {
	covered := e.Reported
	for _, name := range sortedSet(slices.Clone(e.Missing)) {
		if _, ok := policy.Accepted[name]; ok {
			covered++
		}
	}
	return e.Checks > 0 && covered >= e.Checks
}

// Fold makes one verdict of all findings. It returns the findings too, sorted
// with the blocking ones first, each with its bypass and its effect on the
// verdict; the input is not changed.
//
// An unbypassed Fail that blocks makes the decision Blocked; otherwise an
// unbypassed Unknown, fewer reports than expected, or no expected report at all
// makes it Undecided; otherwise it is Ready, or NothingKnown for a provisional verdict.
func Fold(findings []finding.Finding, expected Expectation, policy Policy) (Verdict, []finding.Finding) {
	folded := make([]finding.Finding, 0, len(findings))
	verdict := Verdict{
		Forced: policy.Force, ForceReason: policy.ForceReason, ForcedBy: policy.ForcedBy, Provisional: policy.Provisional,
		Blocking: []string{}, Undecided: []string{}, Accepted: []string{},
	}
	for _, f := range findings {
		f.Bypass = bypass(f, policy)
		f.Effect = f.EffectOf()
		folded = append(folded, f)
		verdict.count(f)
	}
	slices.SortStableFunc(folded, finding.Compare)
	verdict.Blocking = sortedSet(verdict.Blocking)
	verdict.Undecided = sortedSet(verdict.Undecided)
	verdict.Accepted = sortedSet(verdict.Accepted)
	verdict.Decision = verdict.decide()
	if verdict.Decision == verdict.clear() && !expected.met(policy) {
		verdict.Decision = Undecided
	}
	return verdict, folded
}

// Refold folds the verdict again from findings with their recorded bypasses. The result records the force of v.
func (v Verdict) Refold(findings []finding.Finding, expected Expectation) Verdict {
	accepted := map[string]string{}
	for _, f := range findings {
		if f.Bypass != nil && f.Bypass.By == finding.ByAcceptedRisk {
			accepted[f.Name] = f.Bypass.Detail
		}
	}
	verdict, _ := Fold(findings, expected, Policy{Accepted: accepted, Provisional: v.Provisional})
	verdict.Forced, verdict.ForceReason, verdict.ForcedBy, verdict.Narrowed = v.Forced, v.ForceReason, v.ForcedBy, v.Narrowed
	return verdict
}

func (v *Verdict) count(f finding.Finding) {
	switch f.Effect {
	case finding.EffectBlocks:
		v.Blocking = append(v.Blocking, f.Name)
	case finding.EffectUndecided:
		v.Undecided = append(v.Undecided, f.Name)
	case finding.EffectBypassed:
		if f.Bypass.By == finding.ByAcceptedRisk {
			v.Accepted = append(v.Accepted, f.Name)
		}
	case finding.EffectNone:
	}
}

func (v *Verdict) decide() Decision {
	if len(v.Blocking) > 0 {
		return Blocked
	}
	if len(v.Undecided) > 0 {
		return Undecided
	}
	return v.clear()
}

// clear is the decision where no finding counts.
func (v *Verdict) clear() Decision {
	if v.Provisional {
		return NothingKnown
	}
	return Ready
}

// Whole returns the decision about a path from the decisions about its updates, in order: Blocked if an update is;
// otherwise Undecided if an update is, or if there is none; otherwise the decision about the first update, the
// only one that can be Ready.
func Whole(updates []Decision) Decision {
	switch {
	case slices.Contains(updates, Blocked):
		return Blocked
	case len(updates) == 0 || slices.ContainsFunc(updates, func(d Decision) bool { return d != Ready && d != NothingKnown }):
		return Undecided
	}
	return updates[0]
}

// bypass is the decision by which a finding does not count, or nil. An
// acceptance also covers a risk that could not be evaluated, as the API of
// ClusterVersion's spec.desiredUpdate.acceptRisks documents.
func bypass(f finding.Finding, policy Policy) *finding.Bypass {
	if !f.Open() {
		return f.Bypass
	}
	if where, ok := policy.Accepted[f.Name]; ok && f.Source.Acceptable() {
		return &finding.Bypass{By: finding.ByAcceptedRisk, Detail: where}
	}
	return nil
}

func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
