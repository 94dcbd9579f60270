package acceptance

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameWithoutEffect = finding.NewName("AcceptanceWithoutEffect",
		"The findings about acceptances of findings that cannot be accepted, such as gates.")

	nameExpired = finding.NewName("AcceptanceExpired", "The finding about acceptances that have expired.")

	nameOutOfScope = finding.NewName("AcceptanceOutOfScope",
		"The finding about acceptances for other versions or clusters.")

	nameUnused = finding.NewName("AcceptanceUnused", "The finding about acceptances that no blocking finding needs.")

	reasonNotAcceptable = finding.NewReason("NotAcceptable", finding.Explanation{
		Meaning: "Reported when an accepted finding cannot be accepted.",
		Cause:   "The finding is a gate, which CVO itself blocks, or about trust in the release.",
		Remedy:  "Follow the remedy of the finding.",
	})
	reasonExpired = finding.NewReason("Expired", finding.Explanation{
		Meaning: "Reported when acceptances have expired.",
		Cause:   "The time in \"expires\" of the acceptance file has passed.",
		Remedy:  "Assess the risks again, then renew \"expires\" or remove the entries.",
	})
	reasonOutOfScope = finding.NewReason("OutOfScope", finding.Explanation{
		Meaning: "Reported when an acceptance names a finding that blocks, but is not for this update.",
		Cause:   "\"versions\" or \"clusters\" of the acceptance file have other targets or clusters.",
		Remedy:  "Assess the risk for this update, then extend \"versions\" or \"clusters\".",
	})
	reasonUnused = finding.NewReason("Unused", finding.Explanation{
		Meaning: "Reported when no finding needs an acceptance.",
		Cause:   "The risk does not apply, or the name is misspelled.",
		Remedy:  "Check the name, and remove the acceptance if it is no longer needed.",
	})
)

// maxListed bounds the acceptances in one message.
const maxListed = 50

// Target is one target with its findings.
type Target struct {
	// Account is of the same acceptances for all targets.
	Account Account
	// Findings are the findings of the target, folded or not.
	Findings []finding.Finding
	// NoJobs is true when the release's own checks were not run, so that it is unknown
	// whether their acceptances are needed.
	NoJobs bool
}

// Review warns of acceptances without effect: those that have expired, that no target
// needs, that are not for the target whose finding they name, and that name a finding
// which cannot be accepted. The warnings change no decision.
func Review(targets ...Target) []finding.Finding {
	if len(targets) == 0 {
		return nil
	}
	review := review{all: targets[0].Account.all, needed: map[int]bool{}, missed: map[int]bool{}, unacceptable: map[string]finding.Finding{}}
	for _, target := range targets {
		review.add(target)
	}
	findings := append(review.notAcceptable(targets), review.expired(targets)...)
	if len(targets) == 1 { // of many targets, some are always out of scope
		findings = append(findings, review.outOfScope()...)
	}
	return append(findings, review.unused(targets)...)
}

type review struct {
	all []Acceptance
	// needed are the acceptances that hold for a target whose finding counts; missed
	// are those that are out of scope for such a target, where no other one holds.
	needed, missed map[int]bool
	// unacceptable are findings that count, by name, and cannot be accepted.
	unacceptable map[string]finding.Finding
}

func (r review) add(target Target) {
	counts := map[string]bool{}
	for _, f := range target.Findings {
		switch {
		case !countsUnaccepted(f):
		case f.Source.Acceptable():
			counts[f.Name] = true
		default:
			r.unacceptable[f.Name] = f
		}
	}
	accepted := target.Account.Accepted()
	for i, acceptance := range r.all {
		if !counts[acceptance.Risk] {
			continue
		}
		_, covered := accepted[acceptance.Risk]
		r.needed[i] = r.needed[i] || target.Account.states[i] == holds
		r.missed[i] = r.missed[i] || (target.Account.states[i] == outOfScope && !covered)
	}
}

// countsUnaccepted reports whether the finding would count without an acceptance and without force.
func countsUnaccepted(f finding.Finding) bool {
	if f.Bypass != nil && f.Bypass.By != finding.ByAdminAck {
		f.Bypass = nil
	}
	return f.Open()
}

func are(targets []Target, acceptance int, wanted state) bool {
	return slices.ContainsFunc(targets, func(target Target) bool { return target.Account.states[acceptance] == wanted })
}

func (r review) list(keep func(i int, acceptance Acceptance) bool) []Acceptance {
	var kept []Acceptance
	for i, acceptance := range r.all {
		if keep(i, acceptance) {
			kept = append(kept, acceptance)
		}
	}
	return kept
}

func warning(reason finding.Reason, name, format string, args ...any) finding.Finding {
	return finding.Warn(reason, format, args...).Named(name).From(finding.SourceRisk)
}

// notAcceptable is about each accepted finding that cannot be accepted.
func (r review) notAcceptable(targets []Target) []finding.Finding {
	var findings []finding.Finding
	reported := map[string]bool{}
	for i, acceptance := range r.all {
		unacceptable, ok := r.unacceptable[acceptance.Risk]
		if !ok || reported[acceptance.Risk] || !are(targets, i, holds) {
			continue
		}
		reported[acceptance.Risk] = true
		findings = append(findings, warning(reasonNotAcceptable, nameWithoutEffect,
			"the acceptance of %s has no effect: %s", acceptance, whyNot(unacceptable.Source)).
			Remedy("Follow the remedy of the finding %s.", acceptance.Risk).
			About(unacceptable.Objects...))
	}
	return findings
}

// whyNot is why findings of this source cannot be accepted.
func whyNot(source finding.Source) string {
	if source == finding.SourceGate {
		return "it is a gate, and the cluster-version operator itself blocks the update with any accepted risks"
	}
	return "trust in the release cannot be accepted by name"
}

func (r review) expired(targets []Target) []finding.Finding {
	gone := r.list(func(i int, _ Acceptance) bool { return are(targets, i, expired) })
	if len(gone) == 0 {
		return nil
	}
	return []finding.Finding{warning(reasonExpired, nameExpired, "these acceptances have expired: %s", enumerate(gone, func(a Acceptance) string {
		return fmt.Sprintf("%s of %s, expired %s", a, a.Owner, a.Expires)
	})).Remedy("Assess the risks again, then renew \"expires\" in the acceptance file, or remove the entries.")}
}

// outOfScope is about acceptances that name a finding which counts, and are for other targets or clusters.
func (r review) outOfScope() []finding.Finding {
	missed := r.list(func(i int, _ Acceptance) bool { return r.missed[i] })
	if len(missed) == 0 {
		return nil
	}
	return []finding.Finding{warning(reasonOutOfScope, nameOutOfScope,
		"these acceptances are not for this update: %s", enumerate(missed, Acceptance.scope)).
		Remedy("Assess the risks for this update, then extend \"versions\" or \"clusters\" in the acceptance file.")}
}

func (a Acceptance) scope() string {
	limits := a.String()
	if a.Versions != "" {
		limits += fmt.Sprintf(" for versions %q", a.Versions)
	}
	if len(a.Clusters) > 0 {
		limits += " for clusters " + words.List(a.Clusters, maxListed)
	}
	if len(a.Names) > 0 {
		limits += " for clusters " + words.List(a.Names, maxListed)
	}
	return limits
}

// unused is about acceptances that hold for a target, and that no target needs.
func (r review) unused(targets []Target) []finding.Finding {
	jobsRun := slices.ContainsFunc(targets, func(target Target) bool { return !target.NoJobs })
	unused := r.list(func(i int, a Acceptance) bool {
		_, unacceptable := r.unacceptable[a.Risk]
		return are(targets, i, holds) && !r.needed[i] && !unacceptable && (jobsRun || !jobFinding.MatchString(a.Risk))
	})
	if len(unused) == 0 {
		return nil
	}
	return []finding.Finding{warning(reasonUnused, nameUnused, "no blocking finding needs these acceptances: %s", enumerate(unused, Acceptance.String)).
		Remedy("Check the names. Remove what is no longer needed from the acceptance file, or from ClusterVersion.")}
}

// jobFinding is the form of the names of a release's own findings, <Component>.<Check>.
var jobFinding = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*\.[A-Z]`)

func enumerate(acceptances []Acceptance, describe func(Acceptance) string) string {
	var texts []string
	for _, acceptance := range acceptances[:min(maxListed, len(acceptances))] {
		texts = append(texts, describe(acceptance))
	}
	return words.ListOf(texts, len(acceptances))
}
