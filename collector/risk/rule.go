package risk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// rules evaluates the matching rules of risks.
type rules struct {
	cluster *snapshot.Cluster
	client  *monitoring.Client
	id      configv1.ClusterID
}

// match says whether a risk applies. The rules are in order of precedence: the
// first that can be evaluated decides. The error says why none could: a
// *monitoring.Error, or that of a context.
func (r rules) match(ctx context.Context, matchingRules []configv1.ClusterCondition) (bool, error) {
	if len(matchingRules) == 0 {
		return false, badRule("NoMatchingRules", "the risk has no matching rules")
	}
	var first error
	for _, rule := range matchingRules {
		matches, err := r.matchOne(ctx, rule)
		if err == nil {
			return matches, nil
		}
		if first == nil {
			first = err
		}
	}
	return false, first
}

func (r rules) matchOne(ctx context.Context, rule configv1.ClusterCondition) (bool, error) {
	switch {
	case rule.Type == "Always" && rule.PromQL == nil:
		return true, nil
	case rule.Type == "Always":
		return false, badRule("BadRule", "the 'promql' property is not valid for 'type: Always' conditions")
	case rule.Type != "PromQL":
		return false, badRule("UnknownRuleType", fmt.Sprintf("a matching rule of type %q is not known", rule.Type))
	case rule.PromQL == nil:
		return false, badRule("BadRule", "the 'promql' property is required for 'type: PromQL' conditions")
	case rule.PromQL.PromQL == "":
		return false, badRule("BadRule", "the 'promql.promql' query string must be non-empty for 'type: PromQL' conditions")
	}
	promql, err := r.inject(ctx, rule.PromQL.PromQL)
	if err != nil {
		return false, err
	}
	return r.client.Query(ctx, promql)
}

// inject names the cluster in a query that leaves its place empty. Only on
// HyperShift does CVO do so, where one monitoring has the metrics of many
// clusters (pkg/cvo/availableupdates.go, --hypershift).
func (r rules) inject(ctx context.Context, promql string) (string, error) {
	const place = `_id=""`
	if !strings.Contains(promql, place) {
		return promql, nil
	}
	topology, err := r.cluster.Topology(ctx)
	if err != nil {
		return "", unread("the Infrastructure \"cluster\", which says whether the query is about one cluster of many", err)
	}
	if topology != snapshot.HyperShift {
		return promql, nil
	}
	return strings.ReplaceAll(promql, place, fmt.Sprintf(`_id=%q`, r.id)), nil
}

func badRule(reason, message string) error {
	return &monitoring.Error{
		Reason: reason, Message: message,
		Remediation: "The rule is the update service's: report it there. Read what the risk is about, and accept it by name if that is acceptable here.",
	}
}

// unread is something else of the cluster that a rule depends on.
func unread(what string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &monitoring.Error{
		Reason: "Unreadable", Message: fmt.Sprintf("could not read %s: %v", what, err),
		Remediation: "Run the preflight as a user who may read it.", Err: err,
	}
}
