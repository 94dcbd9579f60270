// Package acceptance answers: which risks did the administrator accept, and do the acceptances still hold?
//
// Acceptances come from ClusterVersion, from the request, and from a file that can be kept in git for a fleet.
// Each can be limited to versions, to clusters and in time.
package acceptance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

// maxQuoted bounds a text of the user in an error, in bytes.
const maxQuoted = 64

// Acceptance is one accepted risk, with its limits.
type Acceptance struct {
	// Risk is the name of the finding that is accepted.
	Risk string
	// Origin is where it was accepted, e.g. "spec.desiredUpdate.acceptRisks".
	Origin string
	// Reason is why the risk is acceptable, Owner who accepted it; only a file has them.
	Reason, Owner string
	// Expires is the date or time as in the file; empty means never.
	Expires string
	// Versions is the range of targets as in the file; empty means all.
	Versions string
	// Clusters are the IDs of the clusters it is for; none means all.
	Clusters []string
	// Names and Labels select clusters of a fleet; none means all.
	Names  []string
	Labels map[string]string

	until     time.Time
	versions  semver.Range
	landmarks []semver.Version
}

// Named are acceptances without limits, from one origin.
func Named(origin string, names ...string) []Acceptance {
	acceptances := make([]Acceptance, 0, len(names))
	for _, name := range names {
		acceptances = append(acceptances, Acceptance{Risk: name, Origin: origin})
	}
	return acceptances
}

// CheckName returns an error for a name by which no finding can be accepted.
func CheckName(risk string) error {
	switch {
	case finding.ValidName(risk):
		return nil
	case len(risk) > finding.MaxName:
		return fmt.Errorf("illegal risk %q: the name has %d characters, and %d are the limit", words.Cut(risk, maxQuoted), len(risk),
			finding.MaxName)
	}
	return fmt.Errorf("illegal risk %q: a name begins with a capital letter and contains only letters, digits, dots and dashes",
		words.Cut(risk, finding.MaxName))
}

// String is the acceptance in reports and errors.
func (a Acceptance) String() string { return a.Risk + " (" + a.Origin + ")" }

func (a Acceptance) detail() string {
	parts := []string{a.Origin}
	if a.Reason != "" {
		parts = append(parts, a.Reason)
	}
	if a.Owner != "" {
		parts = append(parts, "accepted by "+a.Owner)
	}
	if a.Expires != "" {
		parts = append(parts, "until "+a.Expires)
	}
	return strings.Join(parts, "; ")
}

// Scope is the update, the cluster and the time for which acceptances are evaluated.
type Scope struct {
	// Target is the version of the target; empty when unknown.
	Target string
	// Cluster is spec.clusterID of ClusterVersion.
	Cluster string
	// Now is the time at which the acceptance has to hold.
	Now time.Time
}

type state int

const (
	holds state = iota
	// expired acceptances are for this target and this cluster, and have expired.
	expired
	// outOfScope acceptances are for other targets or clusters.
	outOfScope
)

// Account is which of all acceptances hold for one target.
type Account struct {
	all    []Acceptance
	states []state
}

// Evaluate determines which acceptances hold. If several acceptances of one risk hold, the first is its origin.
func Evaluate(all []Acceptance, scope Scope) Account {
	account := Account{all: all, states: make([]state, len(all))}
	for i, acceptance := range all {
		account.states[i] = acceptance.evaluate(scope)
	}
	return account
}

// Until is the time at which the first acceptance of these risks expires; zero when none expires.
func (a Account) Until(risks []string) time.Time {
	var first time.Time
	for i, acceptance := range a.all {
		ends := a.states[i] == holds && !acceptance.until.IsZero() && slices.Contains(risks, acceptance.Risk)
		if ends && (first.IsZero() || acceptance.until.Before(first)) {
			first = acceptance.until
		}
	}
	return first
}

func (a Acceptance) evaluate(scope Scope) state {
	switch {
	case !a.isFor(scope):
		return outOfScope
	case a.Expires != "" && !scope.Now.Before(a.until):
		return expired
	}
	return holds
}

// isFor reports whether the acceptance is for this target and cluster. A target that
// cannot be compared is not in a range.
func (a Acceptance) isFor(scope Scope) bool {
	sameCluster := func(id string) bool { return strings.EqualFold(id, scope.Cluster) }
	if len(a.Clusters) > 0 && !slices.ContainsFunc(a.Clusters, sameCluster) {
		return false
	}
	if a.versions == nil {
		return true
	}
	target, err := semver.Parse(scope.Target)
	return err == nil && a.versions(target)
}

// Accepted maps the names of the accepted risks to the details of their bypass.
func (a Account) Accepted() map[string]string {
	accepted := map[string]string{}
	for i, acceptance := range a.all {
		if _, known := accepted[acceptance.Risk]; !known && a.states[i] == holds {
			accepted[acceptance.Risk] = acceptance.detail()
		}
	}
	return accepted
}

var (
	nameWithoutEffect = finding.NewName("AcceptanceWithoutEffect",
		"Acceptances of findings that cannot be accepted, such as gates.")

	nameExpired = finding.NewName("AcceptanceExpired", "Acceptances that have expired.")

	nameOutOfScope = finding.NewName("AcceptanceOutOfScope",
		"Acceptances for other versions or clusters.")

	nameUnused = finding.NewName("AcceptanceUnused", "Acceptances that no blocking finding needs.")

	reasonNotAcceptable = finding.NewReason("NotAcceptable", finding.Explanation{
		Meaning: "An acceptance names a finding that cannot be accepted. The finding still blocks the update.",
		Cause:   "The finding is a gate, which CVO itself enforces, or concerns trust in the release.",
		Remedy:  "Follow the remedy of the finding.",
	})
	reasonExpired = finding.NewReason("Expired", finding.Explanation{
		Meaning: "Acceptances have expired and have no effect.",
		Cause:   "The time in \"expires\" of the acceptance file has passed.",
		Remedy:  "Assess the risks again, then renew \"expires\" or remove the entries.",
	})
	reasonOutOfScope = finding.NewReason("OutOfScope", finding.Explanation{
		Meaning: "An acceptance names a blocking finding, but does not apply to this update.",
		Cause:   "\"versions\" or \"clusters\" in the acceptance file exclude this target or this cluster.",
		Remedy:  "Assess the risk for this update, then extend \"versions\" or \"clusters\".",
	})
	reasonUnused = finding.NewReason("Unused", finding.Explanation{
		Meaning: "No finding needs this acceptance.",
		Cause:   "The risk does not apply, or the name is misspelled.",
		Remedy:  "Check the name, and remove the acceptance if it is no longer needed.",
	})
)

// maxListed bounds the acceptances in one message.
const maxListed = 50

// Target is one target with its findings.
type Target struct {
	// Account has the same acceptances for all targets.
	Account Account
	// Findings are the findings of the target, folded or not.
	Findings []finding.Finding
	// NoJobs is true when the release's own checks were not run, so that it is unknown
	// whether their acceptances are needed.
	NoJobs bool
}

// Review warns of acceptances without effect: acceptances that have expired, that no target needs, that are not
// for the target whose finding they name, or that name a finding that cannot be accepted. The warnings change no
// decision.
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
		return "it is a gate, which the cluster-version operator enforces whatever risks are accepted"
	}
	return "trust in the release cannot be accepted by name"
}

func (r review) expired(targets []Target) []finding.Finding {
	gone := r.list(func(i int, _ Acceptance) bool { return are(targets, i, expired) })
	if len(gone) == 0 {
		return nil
	}
	return []finding.Finding{warning(reasonExpired, nameExpired, "these acceptances have expired: %s",
		enumerate(gone, func(a Acceptance) string {
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
		"these acceptances do not apply to this update: %s", enumerate(missed, Acceptance.scope)).
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
	return []finding.Finding{warning(reasonUnused, nameUnused, "no blocking finding needs these acceptances: %s",
		enumerate(unused, Acceptance.String)).
		Remedy("Check the names. Remove unneeded acceptances from the acceptance file or from ClusterVersion.")}
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
