// Package verdict answers: may the cluster be updated, given all that was
// found? It is pure: findings and policy go in, the decision comes out.
package verdict

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Decision is the answer to "is it safe to update?".
type Decision string

// The decisions, in the order of precedence: whatever is Blocked is not
// Undecided, whatever is Undecided is not Ready.
const (
	Blocked   Decision = "Blocked"
	Undecided Decision = "Undecided"
	Ready     Decision = "Ready"
)

// The values of Bypass.By.
const (
	// ByAdminAck is an acknowledgement in the admin-acks ConfigMap.
	ByAdminAck = "AdminAck"
	// ByAcceptedRisk is an acceptance by name.
	ByAcceptedRisk = "AcceptedRisk"
	// ByForce is --force.
	ByForce = "Force"
)

// Policy is what the administrator decided beforehand.
type Policy struct {
	// Accepted maps the name of a finding to where it was accepted, e.g.
	// "--accept" or "spec.desiredUpdate.acceptRisks".
	Accepted map[string]string
	// Force bypasses everything that blocks or could not be told. It is never
	// silent: Verdict.Forced tells of it.
	Force bool
}

// Verdict is the decision and the names of the findings that led to it, each
// list sorted and free of duplicates.
type Verdict struct {
	Decision Decision `json:"decision"`
	// Forced is true when force was asked for, whether or not it was needed.
	Forced bool `json:"forced"`
	// Blocking names the unbypassed failures.
	Blocking []string `json:"blocking"`
	// Undecided names what could not be told.
	Undecided []string `json:"undecided"`
	// Accepted names what was bypassed by acceptance.
	Accepted []string `json:"accepted"`
	// ValidUntil is the RFC 3339 time until when the decision holds, if nothing
	// ends it sooner (package basis); empty when the run was not completed.
	ValidUntil string `json:"validUntil,omitempty"`
}

// Expectation counts the checks that had to report, and those that did.
type Expectation struct {
	Checks   int `json:"checks"`
	Reported int `json:"reported"`
	// Missing names the checks that did not report, sorted.
	Missing []string `json:"missing,omitempty"`
}

// met says whether every expected check reported, or was accepted by name
// without a report.
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
// with the blocking ones first and marked where they are bypassed; the input
// is left alone.
//
// An unbypassed Fail that blocks makes it Blocked; otherwise an unbypassed
// Unknown, fewer reports than expected, or nothing expected at all make it
// Undecided; otherwise it is Ready.
func Fold(findings []preflight.Finding, expected Expectation, policy Policy) (Verdict, []preflight.Finding) {
	folded := make([]preflight.Finding, 0, len(findings))
	verdict := Verdict{Forced: policy.Force, Blocking: []string{}, Undecided: []string{}, Accepted: []string{}}
	for _, finding := range findings {
		finding.Bypass = bypass(finding, policy)
		folded = append(folded, finding)
		verdict.count(finding)
	}
	slices.SortStableFunc(folded, Compare)
	verdict.Blocking = sortedSet(verdict.Blocking)
	verdict.Undecided = sortedSet(verdict.Undecided)
	verdict.Accepted = sortedSet(verdict.Accepted)
	verdict.Decision = verdict.decide()
	if verdict.Decision == Ready && !policy.Force && !expected.met(policy) {
		verdict.Decision = Undecided
	}
	return verdict, folded
}

func (v *Verdict) count(finding preflight.Finding) {
	switch {
	case finding.Bypass != nil && finding.Bypass.By == ByAcceptedRisk:
		v.Accepted = append(v.Accepted, finding.Name)
	case finding.Bypass != nil:
		// Acknowledged or forced: said by the finding and by Forced.
	case stopsUpdate(finding):
		v.Blocking = append(v.Blocking, finding.Name)
	case couldNotTell(finding):
		v.Undecided = append(v.Undecided, finding.Name)
	}
}

func (v *Verdict) decide() Decision {
	if len(v.Blocking) > 0 {
		return Blocked
	}
	if len(v.Undecided) > 0 {
		return Undecided
	}
	return Ready
}

// bypass says by what right a finding does not count, or nil. An acceptance
// covers a risk that could not be evaluated too, as ClusterVersion's
// spec.desiredUpdate.acceptRisks documents it.
func bypass(finding preflight.Finding, policy Policy) *preflight.Bypass {
	if !Open(finding) {
		return finding.Bypass
	}
	if where, ok := policy.Accepted[finding.Name]; ok && Acceptable(finding.Source) {
		return &preflight.Bypass{By: ByAcceptedRisk, Detail: where}
	}
	if policy.Force {
		return &preflight.Bypass{By: ByForce, Detail: "--force"}
	}
	return nil
}

// Open says whether a finding counts against the update: it blocks or could not
// be told, and nobody went past it.
func Open(finding preflight.Finding) bool {
	return finding.Bypass == nil && (stopsUpdate(finding) || couldNotTell(finding))
}

// Acceptable says whether an administrator may go past a finding by naming it.
// A gate is passed by fixing or acknowledging, and trust in the release is not
// a risk to accept by name: both leave only force.
func Acceptable(source preflight.Source) bool {
	switch source {
	case preflight.SourceJob, preflight.SourceRisk, preflight.SourceHealth, preflight.SourceImage:
		return true
	case preflight.SourceGate, preflight.SourceSignature, preflight.SourcePayload:
		return false
	}
	return false
}

func stopsUpdate(finding preflight.Finding) bool {
	return finding.Outcome == preflight.Fail && finding.Blocks
}

// couldNotTell is true for Unknown, and for an outcome that nobody knows: a
// newer check's new word must not read as a pass.
func couldNotTell(finding preflight.Finding) bool {
	switch finding.Outcome {
	case preflight.Pass, preflight.Warn, preflight.Fail, preflight.Skipped:
		return false
	case preflight.Unknown:
		return true
	}
	return true
}

// Compare orders findings as people read them, what decides first; the rest is
// for the same findings to make the same bytes in whatever order they came.
func Compare(a, b preflight.Finding) int {
	order := cmp.Or(
		cmp.Compare(rank(a), rank(b)),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Source, b.Source),
		cmp.Compare(a.Outcome, b.Outcome),
		cmp.Compare(a.Reason, b.Reason),
		cmp.Compare(a.Message, b.Message),
	)
	if order != 0 {
		return order
	}
	return bytes.Compare(written(a), written(b))
}

// written is the finding as the report has it.
func written(finding preflight.Finding) []byte {
	text, err := json.Marshal(finding)
	if err != nil {
		return nil // strings, numbers and lists of them: there is nothing that could fail
	}
	return text
}

func rank(finding preflight.Finding) int {
	switch {
	case stopsUpdate(finding) && finding.Bypass == nil:
		return 0
	case couldNotTell(finding) && finding.Bypass == nil:
		return 1
	case finding.Bypass != nil:
		return 2
	case finding.Outcome == preflight.Fail:
		return 3
	case finding.Outcome == preflight.Warn:
		return 4
	case finding.Outcome == preflight.Skipped:
		return 5
	}
	return 6
}

func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
