package acceptance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
)

const (
	ReasonNotAcceptable finding.Reason = "NotAcceptable"
	ReasonExpired       finding.Reason = "Expired"
	ReasonOutOfScope    finding.Reason = "OutOfScope"
	ReasonUnused        finding.Reason = "Unused"
)

// Asked is one target, with what was found out for it.
type Asked struct {
	// Account is of the same acceptances for all targets.
	Account Account
	// Findings are those of the target, folded or not.
	Findings []finding.Finding
	// NoJobs is true where the release's own checks were not asked, so that
	// nobody can say whether an acceptance of one of them is needed.
	NoJobs bool
}

// Review warns of acceptances that do not do what the administrator may expect
// of them: that have expired, that no target needs, that are not for the target
// whose finding they name, and that name what cannot be accepted. They are
// information; none of them changes a decision.
func Review(asked ...Asked) []finding.Finding {
	if len(asked) == 0 {
		return nil
	}
	review := review{all: asked[0].Account.all, needed: map[int]bool{}, missed: map[int]bool{}, refused: map[string]finding.Finding{}}
	for _, target := range asked {
		review.add(target)
	}
	findings := append(review.refusals(asked), review.expired(asked)...)
	if len(asked) == 1 { // of many targets, some are always out of scope
		findings = append(findings, review.outOfScope()...)
	}
	return append(findings, review.unused(asked)...)
}

// review is what all targets together need.
type review struct {
	all []Acceptance
	// needed are the acceptances that hold where their finding counts; missed
	// those that are not for the target where it does, and no other is either.
	needed, missed map[int]bool
	// refused are findings that count, by name, and cannot be accepted.
	refused map[string]finding.Finding
}

func (r review) add(asked Asked) {
	counts := map[string]bool{}
	for _, f := range asked.Findings {
		switch {
		case !countsUnaccepted(f):
		case f.Source.Acceptable():
			counts[f.Name] = true
		default:
			r.refused[f.Name] = f
		}
	}
	accepted := asked.Account.Accepted()
	for i, acceptance := range r.all {
		if !counts[acceptance.Risk] {
			continue
		}
		_, covered := accepted[acceptance.Risk]
		r.needed[i] = r.needed[i] || asked.Account.states[i] == holds
		r.missed[i] = r.missed[i] || (asked.Account.states[i] == elsewhere && !covered)
	}
}

// countsUnaccepted says whether the finding would count had nobody accepted or
// forced it.
func countsUnaccepted(f finding.Finding) bool {
	if f.Bypass != nil && f.Bypass.By != finding.ByAdminAck {
		f.Bypass = nil
	}
	return f.Open()
}

// are says whether the acceptance is in that state for any of the targets.
func are(asked []Asked, acceptance int, wanted state) bool {
	return slices.ContainsFunc(asked, func(target Asked) bool { return target.Account.states[acceptance] == wanted })
}

// list are the acceptances for which keep is true.
func (r review) list(keep func(i int, acceptance Acceptance) bool) []Acceptance {
	var kept []Acceptance
	for i, acceptance := range r.all {
		if keep(i, acceptance) {
			kept = append(kept, acceptance)
		}
	}
	return kept
}

// refusals say of each accepted finding that cannot be accepted what works
// instead.
func (r review) refusals(asked []Asked) []finding.Finding {
	var findings []finding.Finding
	told := map[string]bool{}
	for i, acceptance := range r.all {
		refused, ok := r.refused[acceptance.Risk]
		if !ok || told[acceptance.Risk] || !are(asked, i, holds) {
			continue
		}
		told[acceptance.Risk] = true
		findings = append(findings, finding.Warn(ReasonNotAcceptable, "the acceptance of %s has no effect: %s", acceptance, because(refused.Source)).
			Named("AcceptanceWithoutEffect").
			From(finding.SourceRisk).
			Remedy("Do what the finding %s says; nothing but --force gets past it otherwise.", acceptance.Risk).
			About(refused.Objects...))
	}
	return findings
}

// because says why findings of this source cannot be accepted.
func because(source finding.Source) string {
	if source == finding.SourceGate {
		return "it is a gate, and the cluster-version operator itself still blocks the update whatever is accepted"
	}
	return "trust in the release is not a risk to accept by name"
}

func (r review) expired(asked []Asked) []finding.Finding {
	gone := r.list(func(i int, _ Acceptance) bool { return are(asked, i, expired) })
	if len(gone) == 0 {
		return nil
	}
	return []finding.Finding{finding.Warn(ReasonExpired,
		"these acceptances no longer hold: %s", enumerate(gone, func(a Acceptance) string {
			return fmt.Sprintf("%s of %s, expired %s", a, a.Owner, a.Expires)
		})).
		Named("AcceptanceExpired").
		From(finding.SourceRisk).
		Remedy("Judge the risks again; then renew their \"expires\" in the acceptance file, or take them out of it.")}
}

// outOfScope are those that name what counts, and are about other targets or
// clusters.
func (r review) outOfScope() []finding.Finding {
	missed := r.list(func(i int, _ Acceptance) bool { return r.missed[i] })
	if len(missed) == 0 {
		return nil
	}
	return []finding.Finding{finding.Warn(ReasonOutOfScope, "these acceptances are not for this update: %s", enumerate(missed, Acceptance.scope)).
		Named("AcceptanceOutOfScope").
		From(finding.SourceRisk).
		Remedy("Judge the risks for this update too; then widen \"versions\" or \"clusters\" in the acceptance file.")}
}

// scope is the acceptance with what it is limited to.
func (a Acceptance) scope() string {
	limits := a.String()
	if a.Versions != "" {
		limits += fmt.Sprintf(" for versions %q", a.Versions)
	}
	if len(a.Clusters) > 0 {
		limits += " for clusters " + strings.Join(a.Clusters, ", ")
	}
	return limits
}

// unused are those that hold for a target, and that none of these needs.
func (r review) unused(asked []Asked) []finding.Finding {
	looked := slices.ContainsFunc(asked, func(target Asked) bool { return !target.NoJobs })
	idle := r.list(func(i int, a Acceptance) bool {
		_, refused := r.refused[a.Risk]
		return are(asked, i, holds) && !r.needed[i] && !refused && (looked || !namesJob(a.Risk))
	})
	if len(idle) == 0 {
		return nil
	}
	return []finding.Finding{finding.Warn(ReasonUnused,
		"nothing that stands in the way needs these acceptances: %s", enumerate(idle, Acceptance.String)).
		Named("AcceptanceUnused").
		From(finding.SourceRisk).
		Remedy("See whether the names are right. Take out what is no longer needed: from the acceptance file, or with: oc preflight accept RISK-")}
}

// namesJob recognizes the findings of a release's own checks, which are called
// <Component>.<Check>.
func namesJob(risk string) bool {
	return regexp.MustCompile(`^[A-Z][A-Za-z0-9]*\.[A-Z]`).MatchString(risk)
}

// enumerate lists acceptances; of very many, it says how many there are.
func enumerate(acceptances []Acceptance, describe func(Acceptance) string) string {
	const most = 50
	var texts []string
	for _, acceptance := range acceptances[:min(most, len(acceptances))] {
		texts = append(texts, describe(acceptance))
	}
	text := strings.Join(texts, ", ")
	if more := len(acceptances) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
