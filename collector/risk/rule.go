package risk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
)

var (
	reasonNoMatchingRules = finding.NewReason("NoMatchingRules", finding.Explanation{
		Meaning: "A risk has no matching rules, so whether it applies is unknown.",
		Cause:   "ClusterVersion contains only the name of the risk, or the update service defines it without rules.",
		Remedy:  "Report the risk to the update service. Read its description, and accept the risk if it is acceptable.",
	})
	reasonBadRule = finding.NewReason("BadRule", finding.Explanation{
		Meaning: "No matching rule of a risk is valid, so whether the risk applies is unknown.",
		Cause:   "A rule lacks its query, or contains one although its type allows none.",
		Remedy:  "Report the rule to the update service. Read the description of the risk, and accept the risk if it is acceptable.",
	})
	reasonUnknownRuleType = finding.NewReason("UnknownRuleType", finding.Explanation{
		Meaning: "The type of a risk's matching rule is unknown, so the risk cannot be evaluated.",
		Cause:   "The type of the rule is newer than this oc-preflight.",
		Remedy:  "Use a newer version of oc-preflight, or read the description of the risk, and accept the risk if it is acceptable.",
	})
	reasonUnreadable = finding.NewReason("Unreadable", finding.Explanation{
		Meaning: "An object that a matching rule depends on could not be read.",
		Cause:   "The user has no permission, or the API server does not respond.",
		Remedy:  "Run the preflight as a user with permission to read the objects in the message.",
	})
)

type evaluator struct {
	subject check.Subject
	client  *monitoring.Client
	id      configv1.ClusterID
}

// match reports whether a risk applies. The rules are in order of precedence: the first one that can be evaluated
// decides. If none can be evaluated, the error belongs to the first rule: a *monitoring.Error, or the error of a
// context.
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

// unreadable returns the error of an object that a rule depends on; the error of a context is returned unchanged.
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

// Evaluator evaluates the matching rules of risks that ClusterVersion does not list, such as risks of later
// updates of a path.
type Evaluator struct {
	// Subject is the cluster; its update is not used.
	Subject   check.Subject
	Client    *monitoring.Client
	ClusterID configv1.ClusterID
}

// Match reports whether a risk with these matching rules currently applies to the cluster: the first rule that can
// be evaluated decides. An error means that it is unknown whether the risk applies; it is a *monitoring.Error, or
// comes from a context.
func (e Evaluator) Match(ctx context.Context, rules []configv1.ClusterCondition) (bool, error) {
	return e.evaluator().match(ctx, rules)
}

func (e Evaluator) evaluator() evaluator {
	return evaluator{subject: e.Subject, client: e.Client, id: e.ClusterID}
}

// Evaluate returns the finding about a risk of an update to that version, for the current state of the cluster.
// Conditions of the risk are not used.
func (e Evaluator) Evaluate(ctx context.Context, risk configv1.ConditionalUpdateRisk, version string) finding.Finding {
	return definition{risk: risk}.evaluate(ctx, e.evaluator(), version)
}

type assessment struct {
	// applies is empty where the cluster has no assessment.
	applies         metav1.ConditionStatus
	reason, message string
}

func (a assessment) ofAlert() bool { return strings.HasPrefix(a.reason, "Alert:") }

// rank orders contradictory assessments: the first one counts.
func (a assessment) rank() int {
	switch a.applies {
	case metav1.ConditionTrue:
		return 0
	case metav1.ConditionFalse:
		return 2
	case metav1.ConditionUnknown:
	}
	return 1
}

// conditions are where the cluster publishes its assessments for one update.
type conditions struct {
	update    configv1.ConditionalUpdate
	published map[string]configv1.ConditionalUpdateRisk
	// generation is the generation of the spec; a condition of an earlier one is out of date.
	generation int64
	// accepts is true when the spec accepts risks: then the condition of the update
	// does not determine which of its risks apply.
	accepts bool
}

// of is the assessment of a risk: its condition Applies, where the feature set has
// it, otherwise what the condition Recommended of the update implies.
func (c conditions) of(risk configv1.ConditionalUpdateRisk) assessment {
	var found []assessment
	for _, holder := range []configv1.ConditionalUpdateRisk{risk, c.published[risk.Name]} {
		if condition := c.find(holder.Conditions, "Applies"); condition != nil {
			found = append(found, assessment{condition.Status, condition.Reason, condition.Message})
		}
	}
	if len(found) == 0 {
		return c.recommended(risk)
	}
	return slices.MinFunc(found, func(a, b assessment) int { return a.rank() - b.rank() })
}

// recommended returns what the condition of the update implies for one risk: nothing if that is ambiguous.
func (c conditions) recommended(risk configv1.ConditionalUpdateRisk) assessment {
	condition := c.find(c.update.Conditions, "Recommended")
	if condition == nil {
		return assessment{}
	}
	implied := assessment{reason: condition.Reason, message: condition.Message}
	switch condition.Status {
	case metav1.ConditionTrue:
		if condition.Reason != "AllExposedRisksAccepted" {
			implied.applies = metav1.ConditionFalse
		}
	case metav1.ConditionFalse:
		implied.applies = c.exposed(risk, condition)
	case metav1.ConditionUnknown:
		implied.applies = cmp.Or(c.listed(risk, condition.Message), metav1.ConditionUnknown)
	}
	return implied
}

// exposed returns what Recommended=False implies: its reason names a single risk, its message lists all that
// apply.
func (c conditions) exposed(risk configv1.ConditionalUpdateRisk, condition *metav1.Condition) metav1.ConditionStatus {
	named := func(other configv1.ConditionalUpdateRisk) bool { return other.Name == condition.Reason }
	several := slices.Contains([]string{"MultipleReasons", "ExposedToRisks", "EvaluationFailed"}, condition.Reason)
	switch listed := c.listed(risk, condition.Message); {
	case condition.Reason == risk.Name:
		return metav1.ConditionTrue
	case several || listed == metav1.ConditionTrue || listed == metav1.ConditionUnknown:
		return listed
	case !c.accepts && slices.ContainsFunc(c.update.Risks, named):
		return metav1.ConditionFalse
	}
	return ""
}

// listed returns what the message of Recommended implies for one risk. CVO lists every risk of the update that
// applies or could not be evaluated, and no other, in the order of the update (pkg/cvo/availableupdates.go,
// evaluateConditionalUpdate). It is empty if the risk is not listed, and either the message has other text too or
// risks that apply were accepted, which CVO does not list.
func (c conditions) listed(risk configv1.ConditionalUpdateRisk, message string) metav1.ConditionStatus {
	switch {
	case hasBlock(message, applying(risk)):
		return metav1.ConditionTrue
	case strings.Contains(message, unevaluated(risk).start), strings.Contains(message, formerlyUnevaluated(risk).start):
		return metav1.ConditionUnknown
	case c.accepts || !listsOnly(message, c.update.Risks):
		return ""
	}
	return metav1.ConditionFalse
}

// find returns a condition that is not out of date, or nil.
func (c conditions) find(conditions []metav1.Condition, kind string) *metav1.Condition {
	for i, condition := range conditions {
		if condition.Type != kind {
			continue
		}
		if condition.ObservedGeneration != 0 && condition.ObservedGeneration < c.generation {
			return nil
		}
		return &conditions[i]
	}
	return nil
}

// separator is between the texts of risks in the message of Recommended.
const separator = "\n\n"

func applying(risk configv1.ConditionalUpdateRisk) string { return risk.Message + " " + risk.URL }

// unknownText is the text of a risk that could not be evaluated; the error is between start and end.
type unknownText struct{ start, end string }

// unevaluated is the text since 4.14.
func unevaluated(risk configv1.ConditionalUpdateRisk) unknownText {
	return unknownText{
		start: "Could not evaluate exposure to update risk " + risk.Name + " (",
		end:   ")\n  " + risk.Name + " description: " + risk.Message + "\n  " + risk.Name + " URL: " + risk.URL,
	}
}

// formerlyUnevaluated is the text up to 4.13. It ends with the text of a risk that applies.
func formerlyUnevaluated(risk configv1.ConditionalUpdateRisk) unknownText {
	return unknownText{
		start: "Exposure to " + risk.Name + " is unknown due to an evaluation failure: ",
		end:   "\n" + applying(risk),
	}
}

// hasBlock reports whether the message has a text that separators enclose.
func hasBlock(message, text string) bool {
	return strings.Contains(separator+message+separator, separator+text+separator)
}

// listsOnly reports whether the message is a list of these risks and nothing else.
func listsOnly(message string, risks []configv1.ConditionalUpdateRisk) bool {
	rest := message + separator
	for _, risk := range risks {
		rest = withoutRisk(rest, risk)
	}
	return message != "" && rest == ""
}

// withoutRisk is a list without its first text, where that is about the risk.
func withoutRisk(list string, risk configv1.ConditionalUpdateRisk) string {
	if rest, ok := strings.CutPrefix(list, applying(risk)+separator); ok {
		return rest
	}
	for _, text := range []unknownText{unevaluated(risk), formerlyUnevaluated(risk)} {
		failed, ok := strings.CutPrefix(list, text.start)
		if !ok {
			continue
		}
		if _, rest, ended := strings.Cut(failed, text.end+separator); ended {
			return rest
		}
	}
	return list
}
