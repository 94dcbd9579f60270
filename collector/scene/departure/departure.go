// Package departure answers: from which release does an update start, and what can be evaluated now?
//
// There are two: [Present], the release that the cluster runs, and [After] other updates of a path. An update from
// a later release can mostly be evaluated only when the cluster runs that release, so its verdict is provisional.
package departure

import (
	"context"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/builtin"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Departure is the release that an update starts from.
type Departure interface {
	// From is the version of the release.
	From(scene.Scene) string
	// Path lists the releases of a path before the target, the cluster's first; none for an update from the current
	// release.
	Path() []update.Release
	// Checks are the built-in checks that can be evaluated now.
	Checks(scene.Scene) []check.Check
	// Postponed are the other built-in checks, and why each is evaluated later.
	Postponed(scene.Scene) []report.AskedAgain
	// Annotate adds to the findings from which release they were evaluated, because the updates before may change
	// them.
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

// Provisional reports whether the verdict of an update must be confirmed when the cluster runs the release that
// the update starts from.
func Provisional(d Departure) bool { return len(d.Path()) > 0 }

// Versions lists the versions of the path that contains the update, its target last; nil for an update from the
// current release.
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

// Policy returns the administrator's decisions about a target of that version.
func Policy(s scene.Scene, d Departure, version string) verdict.Policy {
	judged := s.Settings.Judgement
	return verdict.Policy{
		Accepted: s.Account(version).Accepted(), Force: judged.Force, ForceReason: judged.ForceReason, ForcedBy: judged.ForcedBy,
		Provisional: Provisional(d),
	}
}

// Fold makes one verdict of all findings, like [verdict.Fold], and names the causes of findings that only repeat
// others.
func Fold(findings []finding.Finding, expected verdict.Expectation, policy verdict.Policy) (verdict.Verdict, []finding.Finding) {
	decided, folded := verdict.Fold(findings, expected, policy)
	return decided, gate.WithCauses(folded)
}

// Subject returns the subject on which built-in checks of the update to a version run. The error is about versions
// that cannot be compared.
func Subject(s scene.Scene, d Departure, version string) (check.Subject, error) {
	requested, err := update.Parse(d.From(s), version)
	subject := check.Subject{Cluster: s.Snapshot, Update: requested, Now: s.Start, Later: Provisional(d), Asks: s.Settings.Asks}
	return s.Settings.Estate.Subject(subject), err
}

// Sources returns the built-in checks of the update to a version. If the version cannot be compared, it returns
// the health checks that concern every update.
func Sources(s scene.Scene, d Departure, version string) []collector.Source {
	subject, err := Subject(s, d, version)
	if err != nil {
		general := slices.DeleteFunc(d.Checks(s), func(c check.Check) bool { return c.Kind != finding.SourceHealth || c.Concerns != nil })
		return append(collector.Bind(subject, general), notComparable(err))
	}
	return collector.Bind(subject, d.Checks(s))
}

var (
	nameUpdate = finding.NewName("Update", "Replaces all gates and risks when the versions cannot be compared.")

	reasonUnknownUpdateKind = finding.NewReason("UnknownUpdateKind", finding.Explanation{
		Meaning: "The versions of the cluster and the target cannot be compared, so the gates and risks cannot be evaluated.",
		Cause:   "A version is not a semantic version, or the version of the target is unknown because its release could not be verified.",
		Remedy:  "Name the target by its version, or fix the verification of its signature, from which oc-preflight reads the version.",
	})
)

// notComparable stands for the checks of which it depends on the versions whether they apply.
func notComparable(cause error) collector.Source {
	return collector.Known(nameUpdate, finding.SourceGate,
		finding.Unknown(reasonUnknownUpdateKind, "the gates and risks cannot be evaluated: %v", cause).
			Named(nameUpdate))
}

// Later is a later update of a path.
type Later struct {
	// Releases are the releases of the path before the target, the cluster's first; at
	// least two.
	Releases []update.Release
	Target   update.Release
	// Gates are the admin gates of the last release before the target; nil if unknown.
	Gates map[string]string
	Edge  Edge
}

// Edge is the update as the update graph has it.
type Edge struct {
	Risks []graph.Risk
	// Known is true if the graph contains the update; otherwise Cause says why not.
	Known bool
	Cause string
}

// EdgeOf is the update between two versions in a graph. The graph is nil if it could not be
// read, for the reason unread.
func EdgeOf(g *graph.Graph, unread error, from, to string) Edge {
	if g == nil {
		return Edge{Cause: fmt.Sprintf("the update graph could not be read: %v", unread)}
	}
	source, target := g.Find(from), g.Find(to)
	for _, each := range g.Updates {
		if source >= 0 && each.From == source && each.To == target {
			return Edge{Risks: each.Risks, Known: true}
		}
	}
	return Edge{Cause: "the update graph does not contain this update"}
}

// After is the departure of a later update of a path.
func After(l Later) Departure { return later{l} }

type later struct{ Later }

// before is the release that the update starts from.
func (l later) before() update.Release { return l.Releases[len(l.Releases)-1] }

func (l later) From(scene.Scene) string { return l.before().Version }

func (l later) Path() []update.Release { return l.Releases }

func (l later) Checks(s scene.Scene) []check.Check {
	return append(gate.Later(l.Gates, s.Settings.Judgement.Fixed), l.risks(s))
}

func (l later) Postponed(s scene.Scene) []report.AskedAgain {
	var postponed []report.AskedAgain
	evaluated := l.Checks(s)
	for _, each := range builtin.Checks(s.Settings.Judgement) {
		if !slices.ContainsFunc(evaluated, func(c check.Check) bool { return c.Name == each.Name }) {
			postponed = append(postponed, report.AskedAgain{Name: each.Name, Reason: l.whyLater(each)})
		}
	}
	return postponed
}

// whyLater is why a check cannot be evaluated in advance.
func (l later) whyLater(c check.Check) string {
	switch {
	case c.Kind == finding.SourceHealth:
		return "the state of the cluster before the update counts"
	case c.Name == risk.NameAlerts:
		return "alerts that fire before the update count"
	}
	return fmt.Sprintf("it reads what ClusterVersion and the operators report at %s", l.before().Version)
}

func (l later) Annotate(s scene.Scene, findings []finding.Finding) {
	for i, f := range findings {
		if dependsOnPresent(f) {
			findings[i] = f.Noted("Evaluated for %s, which the cluster runs; "+
				"the update to %s may change this.", s.About.Version, l.before().Version)
		}
	}
}

// dependsOnPresent reports whether a failure, or that a Job was inconclusive, is due to the
// present cluster, and not to the releases or acknowledgements, which are the same before
// the update.
func dependsOnPresent(f finding.Finding) bool {
	inReleases := strings.HasPrefix(f.Name, adminack.Name) || f.Name == clusterversion.NameGiantHop
	isJob := f.Source == finding.SourceJob
	if isJob && f.Job != nil && f.Inconclusive() {
		return true
	}
	return f.Outcome == preflight.Fail && (isJob || f.Source == finding.SourceGate && !inReleases)
}

var (
	reasonEdgeRecommended = finding.NewReason("RecommendedByGraph", finding.Explanation{
		Meaning: "The update graph recommends a later update of the path without conditions.",
		Cause:   "The graph contains the update without risks.",
	})
	reasonEdgeUnknown = finding.NewReason("UpdateNotInGraph", finding.Explanation{
		Meaning: "The update graph does not contain a later update of the path, so its risks are unknown.",
		Cause:   "The update was removed from the graph, the graph could not be read, or it covers other channels.",
		Remedy:  "Run or attach with the channels or graphs that contain the update, or plan the path again: `oc preflight plan`.",
	})
)

// risks is ClusterVersionRecommendedUpdate for an update that ClusterVersion does
// not list: each risk of the update graph is evaluated on the present cluster.
func (l later) risks(s scene.Scene) check.Check {
	recommended := risk.Recommended(s.Settings.Judgement.Monitoring, risk.Options{})
	return check.Check{
		Name: recommended.Name, Kind: finding.SourceRisk, Reads: append(check.ReadsClusterVersion(), monitoring.Reads()...),
		Run: func(ctx context.Context, subject check.Subject) ([]finding.Finding, error) {
			switch {
			case !l.Edge.Known:
				return []finding.Finding{l.edgeUnknown(recommended.Name)}, nil
			case len(l.Edge.Risks) == 0:
				return []finding.Finding{finding.Pass(gap.Proven("the update graph"), reasonEdgeRecommended,
					"the update graph contains the update from %s to %s without risks", subject.Update.From, subject.Update.To)}, nil
			}
			evaluator := risk.Evaluator{Subject: subject, Client: s.Settings.Judgement.Monitoring, ClusterID: s.Version.Spec.ClusterID}
			return l.judgeRisks(ctx, evaluator)
		},
	}
}

func (l later) judgeRisks(ctx context.Context, evaluator risk.Evaluator) ([]finding.Finding, error) {
	var findings []finding.Finding
	for _, each := range l.Edge.Risks {
		findings = append(findings, evaluator.Evaluate(ctx, configv1.ConditionalUpdateRisk{
			Name: each.Name, Message: each.Message, URL: each.URL, MatchingRules: risk.Conditions(each.Rules),
		}, evaluator.Subject.Update.To.String()))
	}
	return findings, ctx.Err()
}

func (l later) edgeUnknown(name string) finding.Finding {
	return finding.Unknown(reasonEdgeUnknown, "the risks of the update from %s to %s are unknown: %s", l.before().Version, l.Target.Version,
		l.Edge.Cause).
		Remedy("Name the channels or graphs that contain this update, or plan the path again. To continue with this update, read its "+
			"known issues, and accept the risk.").
		Do(finding.Retry(finding.OptionGraph), finding.Accept(name))
}
