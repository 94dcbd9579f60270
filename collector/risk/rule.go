package risk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
)

var (
	reasonNoMatchingRules = finding.NewReason("NoMatchingRules", finding.Explanation{
		Meaning: "Reported when a risk has no matching rules, so that it is unknown whether it applies.",
		Cause:   "ClusterVersion has only the name of the risk, or the update service defines it without rules.",
		Remedy:  "Report the risk to the update service. Read what it is about, and accept it if it is acceptable.",
	})
	reasonBadRule = finding.NewReason("BadRule", finding.Explanation{
		Meaning: "Reported when no matching rule of a risk is valid.",
		Cause:   "A rule lacks its query, or has one where none is allowed.",
		Remedy:  "Report the rule to the update service. Read what the risk is about, and accept it if it is acceptable.",
	})
	reasonUnknownRuleType = finding.NewReason("UnknownRuleType", finding.Explanation{
		Meaning: "Reported when the type of a risk's matching rule is unknown.",
		Cause:   "The rule is of a type that is newer than this preflight.",
		Remedy:  "Use a newer preflight, or read what the risk is about, and accept it if it is acceptable.",
	})
	reasonUnreadable = finding.NewReason("Unreadable", finding.Explanation{
		Meaning: "Reported when an object that a matching rule depends on could not be read.",
		Cause:   "The user has no permission, or the API server does not respond.",
		Remedy:  "Run the preflight as a user with permission to read what the message names.",
	})
)

type evaluator struct {
	subject check.Subject
	client  *monitoring.Client
	id      configv1.ClusterID
}

// match reports whether a risk applies. The rules are in order of precedence: the
// first one that can be evaluated decides. The error belongs to the first rule where
// none can be: a *monitoring.Error, or that of a context.
func (e evaluator) match(ctx context.Context, rules []configv1.ClusterCondition) (bool, error) {
	if len(rules) == 0 {
		return false, badRule(reasonNoMatchingRules, "the risk has no matching rules")
	}
	var first error
	for _, rule := range rules {
		matches, err := e.matchRule(ctx, rule)
		if err == nil {
			return matches, nil
		}
		if first == nil {
			first = err
		}
	}
	return false, first
}

func (e evaluator) matchRule(ctx context.Context, rule configv1.ClusterCondition) (bool, error) {
	switch {
	case rule.Type == "Always" && rule.PromQL == nil:
		return true, nil
	case rule.Type == "Always":
		return false, badRule(reasonBadRule, "the 'promql' property is not valid for 'type: Always' conditions")
	case rule.Type != "PromQL":
		return false, badRule(reasonUnknownRuleType, fmt.Sprintf("the type %q of a matching rule is unknown", rule.Type))
	case rule.PromQL == nil:
		return false, badRule(reasonBadRule, "the 'promql' property is required for 'type: PromQL' conditions")
	case rule.PromQL.PromQL == "":
		return false, badRule(reasonBadRule, "the 'promql.promql' query string must be non-empty for 'type: PromQL' conditions")
	}
	promql, err := e.inject(ctx, rule.PromQL.PromQL)
	if err != nil {
		return false, err
	}
	return e.client.Query(ctx, promql)
}

// emptyID is the matcher that CVO gives the ID of the cluster.
const emptyID = `_id=""`

// inject inserts the ID of the cluster into a query that leaves it empty. CVO does
// so only on HyperShift, where one monitoring has the metrics of many clusters
// (pkg/cvo/availableupdates.go, option hypershift).
func (e evaluator) inject(ctx context.Context, promql string) (string, error) {
	if !strings.Contains(promql, emptyID) {
		return promql, nil
	}
	topology, err := e.subject.Topology(ctx)
	if err != nil {
		return "", unreadable(err)
	}
	return injectFor(promql, topology, e.id), nil
}

func injectFor(promql string, topology snapshot.Topology, id configv1.ClusterID) string {
	if topology != snapshot.HyperShift {
		return promql
	}
	return strings.ReplaceAll(promql, emptyID, fmt.Sprintf(`_id=%q`, id))
}

// Queries are the PromQL that Recommended evaluates for the updates of a ClusterVersion, sorted.
func Queries(version *configv1.ClusterVersion, topology snapshot.Topology) []string {
	found := map[string]bool{}
	add := func(risks []configv1.ConditionalUpdateRisk) {
		for _, risk := range risks {
			for _, rule := range risk.MatchingRules {
				if rule.PromQL != nil && rule.PromQL.PromQL != "" {
					found[injectFor(rule.PromQL.PromQL, topology, version.Spec.ClusterID)] = true
				}
			}
		}
	}
	add(version.Status.ConditionalUpdateRisks)
	for _, each := range version.Status.ConditionalUpdates {
		add(each.Risks)
	}
	return slices.Sorted(maps.Keys(found))
}

func badRule(reason finding.Reason, message string) error {
	return &monitoring.Error{Reason: reason, Message: message, Remedy: monitoring.ReportQuery}
}

// unreadable is the error of an object that a rule depends on; that of a context stays as it is.
func unreadable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &monitoring.Error{
		Reason: reasonUnreadable, Message: fmt.Sprintf("the query depends on the topology of the cluster: %v", err),
		Remedy: "Run the preflight as a user with permission to read it.", Actions: []finding.Action{finding.Roles()}, Err: err,
	}
}

// isAlways reports whether rules belong to a risk that CVO made, of a gate or an alert.
func isAlways(rules []configv1.ClusterCondition) bool {
	return len(rules) == 1 && rules[0].Type == "Always"
}

// Conditions are the matching rules of a risk of the update graph, as ClusterVersion has them.
func Conditions(rules []graph.Rule) []configv1.ClusterCondition {
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

// Evaluator evaluates the matching rules of risks that ClusterVersion does not list, such
// as those of later updates of a path.
type Evaluator struct {
	// Subject is the cluster; its update is not used.
	Subject   check.Subject
	Client    *monitoring.Client
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
