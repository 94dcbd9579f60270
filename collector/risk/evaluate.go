package risk

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/monitoring"
)

// Evaluator evaluates the matching rules of risks that ClusterVersion does not list, such
// as those of later updates of a path.
type Evaluator struct {
	// Subject is the cluster; its update is not used.
	Subject check.Subject
	// Client is the monitoring that evaluates PromQL.
	Client *monitoring.Client
	// ClusterID is spec.clusterID of ClusterVersion.
	ClusterID configv1.ClusterID
}

// Match reports whether a risk with these matching rules applies to the cluster at
// present: the first rule that can be evaluated decides. The error is a
// *monitoring.Error, or that of a context: then it is unknown whether the risk applies.
func (e Evaluator) Match(ctx context.Context, rules []configv1.ClusterCondition) (bool, error) {
	return e.evaluator().match(ctx, rules)
}

func (e Evaluator) evaluator() evaluator {
	return evaluator{subject: e.Subject, client: e.Client, id: e.ClusterID}
}

// Judge is the finding about a risk of an update to that version, as the present cluster
// is. Conditions of the risk are not used.
func (e Evaluator) Judge(ctx context.Context, risk configv1.ConditionalUpdateRisk, version string) finding.Finding {
	return definition{risk: risk}.judge(ctx, e.evaluator(), version)
}
