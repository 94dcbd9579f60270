package risk

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
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
	return evaluator{subject: e.Subject, client: e.Client, id: e.ClusterID}.match(ctx, rules)
}
