package risk

import (
	"context"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/snapshot"
)

// Assessed is a risk that CVO has evaluated.
type Assessed struct {
	Name  string
	Rules []configv1.ClusterCondition
	// Applies is true for a risk that applies to the cluster.
	Applies bool
}

// AssessedByCluster are the risks of the conditional updates of ClusterVersion that CVO has
// evaluated, by the version of the update, then by name. Without are those that CVO could not
// evaluate, and assessments that are out of date or may be about another definition of
// the risk.
func AssessedByCluster(ctx context.Context, cluster *snapshot.Cluster) ([]Assessed, error) {
	version, err := cluster.ClusterVersion(ctx)
	if err != nil {
		return nil, err
	}
	conditional, err := cluster.ConditionalUpdates(ctx)
	if err != nil {
		return nil, err
	}
	var assessed []Assessed
	for _, name := range slices.Sorted(maps.Keys(conditional.ByVersion)) {
		to := target{version: version, conditional: conditional, name: name, updates: conditional.ByVersion[name]}
		for _, risk := range to.risks() {
			assessed = append(assessed, risk.assessed()...)
		}
	}
	return assessed, nil
}

// assessed are the definitions of the risk that CVO has evaluated.
func (r namedRisk) assessed() []Assessed {
	var found []Assessed
	for _, definition := range r.definitions {
		switch definition.assessment.applies {
		case metav1.ConditionTrue, metav1.ConditionFalse:
			found = append(found, Assessed{
				Name: r.name, Rules: definition.risk.MatchingRules, Applies: definition.assessment.applies == metav1.ConditionTrue,
			})
		case metav1.ConditionUnknown:
		}
	}
	return found
}
