package runner

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/graph"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/risk"
)

// reasonEdgeRecommended is reported for a later update of a path that the update graph
// recommends without conditions.
//
// Cause: the graph has the update without risks.
//
// Remedy: none needed.
const reasonEdgeRecommended finding.Reason = "RecommendedByGraph"

// laterChecks are the built-in checks of a later update that can be evaluated in advance.
func (v view) laterChecks() []check.Check {
	return append(gate.Later(v.hop.gates, v.options.Fixed), v.laterRisks())
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

// conditions are matching rules as in ClusterVersion.
func conditions(rules []graph.Rule) []configv1.ClusterCondition {
	all := make([]configv1.ClusterCondition, 0, len(rules))
	for _, rule := range rules {
		condition := configv1.ClusterCondition{Type: rule.Type}
		if rule.PromQL != "" {
			condition.PromQL = &configv1.PromQLClusterCondition{PromQL: rule.PromQL}
		}
		all = append(all, condition)
	}
	return all
}
