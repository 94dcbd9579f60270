package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/graph"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/update"
)

// reasonEdgeUnknown is reported for a later update of a path that the update graph does
// not have, so that its risks are unknown.
//
// Cause: the update was removed from the graph, the graph could not be read, or it is of
// other channels.
//
// Remedy: run or attach with the channels or graphs that have the update, or plan the path
// again: `oc preflight plan`.
const reasonEdgeUnknown finding.Reason = "UpdateNotInGraph"

// reasonEdgeRecommended is reported for a later update of a path that the update graph
// recommends without conditions.
//
// Cause: the graph has the update without risks.
//
// Remedy: none needed.
const reasonEdgeRecommended finding.Reason = "RecommendedByGraph"

// hop is a later update of a path.
type hop struct {
	// releases are those of the path before the target, that of the cluster first; at
	// least two.
	releases []update.Release
	target   update.Release
	// gates are the admin gates of the last release before the target; nil if unknown.
	gates map[string]string
	// risks are those of the update; known is false if the graph does not have it, for
	// that cause.
	risks []graph.Risk
	known bool
	cause string
}

// before is the release that the update starts from.
func (h *hop) before() update.Release { return h.releases[len(h.releases)-1] }

// versions are those before the target.
func (h *hop) versions() []string {
	versions := make([]string, 0, len(h.releases))
	for _, each := range h.releases {
		versions = append(versions, each.Version)
	}
	return versions
}

// path is the versions of the path up to the target; nil for an update from the present
// release.
func (h *hop) path(target string) []string {
	if h == nil {
		return nil
	}
	return append(h.versions(), target)
}

// annotate adds to each failure of a later update, and to what its checks could not
// determine, from which release it was judged: the update before may change that.
func (h *hop) annotate(present string, findings []finding.Finding) {
	if h == nil {
		return
	}
	for i, f := range findings {
		if dependsOnPresent(f) {
			findings[i].Message = noted(f.Message, fmt.Sprintf("Judged from %s, which the cluster runs; the update to %s may change this.", present, h.before().Version))
		}
	}
}

// dependsOnPresent reports whether a failure, or that a Job was inconclusive, is due to the
// present cluster, and not to the releases or acknowledgements, which are the same before
// the update.
func dependsOnPresent(f finding.Finding) bool {
	inReleases := strings.HasPrefix(f.Name, gate.AdminAck().Name) || f.Name == gate.GiantHop().Name
	isJob := f.Source == finding.SourceJob
	if isJob && f.Job != nil && f.Inconclusive() {
		return true
	}
	return fails(f) && (isJob || f.Source == finding.SourceGate && !inReleases)
}

// laterChecks are the built-in checks of a later update that can be evaluated in advance.
func (v view) laterChecks() []check.Check {
	return append(gate.Later(v.hop.gates, v.options.Fixed), v.laterRisks())
}

// askedAgain are the other built-in checks; none for an update from the present release.
func (v view) askedAgain() []report.AskedAgain {
	if v.hop == nil {
		return nil
	}
	var asked []report.AskedAgain
	evaluated := v.laterChecks()
	for _, each := range v.checks() {
		if !slices.ContainsFunc(evaluated, func(c check.Check) bool { return c.Name == each.Name }) {
			asked = append(asked, report.AskedAgain{Name: each.Name, Reason: v.hop.whyLater(each)})
		}
	}
	return asked
}

// whyLater is why a check cannot be evaluated in advance.
func (h *hop) whyLater(c check.Check) string {
	switch {
	case c.Kind == finding.SourceHealth:
		return "the state of the cluster before the update counts"
	case c.Name == risk.Alerts(nil, risk.Options{}).Name:
		return "alerts that fire before the update count"
	}
	return fmt.Sprintf("it reads what ClusterVersion and the operators report at %s", h.before().Version)
}

// laterRisks is ClusterVersionRecommendedUpdate for an update that ClusterVersion does
// not list: each risk of the update graph is evaluated on the present cluster.
func (v view) laterRisks() check.Check {
	recommended := risk.Recommended(v.options.Monitoring, risk.Options{})
	return check.Check{
		Name: recommended.Name, Kind: finding.SourceRisk, Reads: append(check.ReadsClusterVersion(), monitoring.Reads()...),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			if !v.hop.known {
				return []finding.Finding{v.hop.edgeUnknown(recommended.Name)}, nil
			}
			return v.judgeRisks(ctx, s)
		},
	}
}

func (h *hop) edgeUnknown(name string) finding.Finding {
	return finding.Unknown(reasonEdgeUnknown, "the risks of the update from %s to %s are unknown: %s", h.before().Version, h.target.Version, h.cause).
		Remedy("Name the channels or graphs that have this update, or plan the path again. To continue with this update, read its known issues, and accept the risk.").
		Do(finding.Retry(finding.OptionGraph), finding.Accept(name))
}

func (v view) judgeRisks(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	if len(v.hop.risks) == 0 {
		return []finding.Finding{finding.Pass(reasonEdgeRecommended, "the update graph has the update from %s to %s without risks", s.Update.From, s.Update.To)}, nil
	}
	evaluator := risk.Evaluator{Subject: s, Client: v.options.Monitoring, ClusterID: v.version.Spec.ClusterID}
	var findings []finding.Finding
	for _, each := range v.hop.risks {
		findings = append(findings, evaluator.Judge(ctx, configv1.ConditionalUpdateRisk{
			Name: each.Name, Message: each.Message, URL: each.URL, MatchingRules: conditions(each.Rules),
		}, s.Update.To.String()))
	}
	return findings, ctx.Err()
}
