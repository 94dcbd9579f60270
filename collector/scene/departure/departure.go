// Package departure answers: from which release does an update start, and what of it can
// be evaluated now?
//
// There are two: [Present], the release that the cluster runs, and [After] other updates
// of a path. Most of an update from a later release can only be evaluated when the cluster
// runs that release, so its verdict is provisional.
package departure

import (
	"slices"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/builtin"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
)

// Departure is the release that an update starts from.
type Departure interface {
	// From is the version of the release.
	From(scene.Scene) string
	// Path has the releases of a path before the target, that of the cluster first; none for
	// an update from the present release.
	Path() []update.Release
	// Checks are the built-in checks that can be evaluated now.
	Checks(scene.Scene) []check.Check
	// Postponed are the other built-in checks, and why each is evaluated later.
	Postponed(scene.Scene) []report.AskedAgain
	// Annotate adds to the findings that the updates before may change from which release
	// they were judged.
	Annotate(s scene.Scene, findings []finding.Finding)
}

// Present is the departure from the release that the cluster runs.
func Present() Departure { return present{} }

type present struct{}

func (present) From(s scene.Scene) string { return s.About.Version }

func (present) Path() []update.Release { return nil }

func (present) Checks(s scene.Scene) []check.Check {
	estate, judgement := s.Settings.Estate, s.Settings.Judgement
	return append(estate.Guest(builtin.Checks(judgement)), builtin.ManagementChecks(estate, judgement)...)
}

func (present) Postponed(scene.Scene) []report.AskedAgain { return nil }

func (present) Annotate(scene.Scene, []finding.Finding) {}

// Provisional reports whether the verdict of an update is to be confirmed when the cluster
// runs the release that the update starts from.
func Provisional(d Departure) bool { return len(d.Path()) > 0 }

// Versions lists the versions of the path that the update is a part of, its target last; nil for an
// update from the present release.
func Versions(d Departure, target string) []string {
	if !Provisional(d) {
		return nil
	}
	var versions []string
	for _, each := range d.Path() {
		versions = append(versions, each.Version)
	}
	return append(versions, target)
}

// Kind is the kind of the update to a version; empty for a version that cannot be compared.
func Kind(s scene.Scene, d Departure, version string) string {
	return update.KindOf(d.From(s), version)
}

// Policy is what the administrator decided about a target of that version.
func Policy(s scene.Scene, d Departure, version string) verdict.Policy {
	judged := s.Settings.Judgement
	return verdict.Policy{
		Accepted: s.Account(version).Accepted(), Force: judged.Force, ForceReason: judged.ForceReason, ForcedBy: judged.ForcedBy, Provisional: Provisional(d),
	}
}

// Fold makes one verdict of all findings, as [verdict.Fold], and names the causes of those that only repeat others.
func Fold(findings []finding.Finding, expected verdict.Expectation, policy verdict.Policy) (verdict.Verdict, []finding.Finding) {
	decided, folded := verdict.Fold(findings, expected, policy)
	return decided, gate.WithCauses(folded)
}

// Subject is what built-in checks of the update to a version are run on. The error is about
// versions that cannot be compared.
func Subject(s scene.Scene, d Departure, version string) (check.Subject, error) {
	requested, err := update.Parse(d.From(s), version)
	subject := check.Subject{Cluster: s.Snapshot, Update: requested, Now: s.Start, Later: Provisional(d), Asks: s.Settings.Asks}
	return s.Settings.Estate.Subject(subject), err
}

// Sources are the built-in checks of the update to a version. Of one that cannot be compared,
// they are those of the health that concern every update.
func Sources(s scene.Scene, d Departure, version string) []collector.Source {
	subject, err := Subject(s, d, version)
	if err != nil {
		general := slices.DeleteFunc(d.Checks(s), func(c check.Check) bool { return c.Kind != finding.SourceHealth || c.Concerns != nil })
		return append(collector.Bind(subject, general), notComparable(err))
	}
	return collector.Bind(subject, d.Checks(s))
}

var (
	nameUpdate = finding.NewName("Update", "The finding in place of all gates and risks where the versions cannot be compared.")

	reasonUnknownUpdateKind = finding.NewReason("UnknownUpdateKind", finding.Explanation{
		Meaning: "Reported when the versions of the cluster and the target cannot be compared.",
		Cause: "A version is not a semantic version, or the version of the target is not known because its release could " +
			"not be verified.",
		Remedy: "Name the target by its version, or fix the verification of its signature, from which the " +
			"version is read.",
	})
)

// notComparable stands for the checks of which it depends on the versions whether they apply.
func notComparable(cause error) collector.Source {
	return collector.Known(nameUpdate, finding.SourceGate, finding.Unknown(reasonUnknownUpdateKind, "the gates and risks cannot be evaluated: %v", cause).
		Named(nameUpdate))
}
