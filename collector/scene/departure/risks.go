package departure

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/scene"
)

var (
	reasonEdgeRecommended = finding.NewReason("RecommendedByGraph", finding.Explanation{
		Meaning: "Reported for a later update of a path that the update graph recommends without conditions.",
		Cause:   "The graph has the update without risks.",
	})
	reasonEdgeUnknown = finding.NewReason("UpdateNotInGraph", finding.Explanation{
		Meaning: "Reported for a later update of a path that the update graph does not have, so that its risks are unknown.",
		Cause:   "The update was removed from the graph, the graph could not be read, or it is of other channels.",
		Remedy:  "Run or attach with the channels or graphs that have the update, or plan the path again: `oc preflight plan`.",
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
				return []finding.Finding{finding.Pass(gap.Proven("the update graph"), reasonEdgeRecommended, "the update graph has the update from %s to %s without risks", subject.Update.From, subject.Update.To)}, nil
			}
			evaluator := risk.Evaluator{Subject: subject, Client: s.Settings.Judgement.Monitoring, ClusterID: s.Version.Spec.ClusterID}
			return l.judgeRisks(ctx, evaluator)
		},
	}
}

func (l later) judgeRisks(ctx context.Context, evaluator risk.Evaluator) ([]finding.Finding, error) {
	var findings []finding.Finding
	for _, each := range l.Edge.Risks {
		findings = append(findings, evaluator.Judge(ctx, configv1.ConditionalUpdateRisk{
			Name: each.Name, Message: each.Message, URL: each.URL, MatchingRules: risk.Conditions(each.Rules),
		}, evaluator.Subject.Update.To.String()))
	}
	return findings, ctx.Err()
}

func (l later) edgeUnknown(name string) finding.Finding {
	return finding.Unknown(reasonEdgeUnknown, "the risks of the update from %s to %s are unknown: %s", l.before().Version, l.Target.Version, l.Edge.Cause).
		Remedy("Name the channels or graphs that have this update, or plan the path again. To continue with this update, read its known issues, and accept the risk.").
		Do(finding.Retry(finding.OptionGraph), finding.Accept(name))
}
