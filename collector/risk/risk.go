// Package risk answers: which risks of this update apply to this cluster?
//
// [Checks] returns the checks for risks that the update service declares, and for risks that the cluster's own
// alerts indicate. Each has the name by which it is accepted: the name of the risk or of the alert, as in the
// cluster-version operator (CVO).
//
// The risks are read from ClusterVersion, with CVO's assessment of each. If CVO has none, could not evaluate a
// risk, or its status is out of date, the rules of the risk are evaluated here. Differences from CVO:
//
//   - Every risk is a finding with its own cause. CVO folds them into one condition,
//     whose reason depends on their order, or is MultipleReasons.
//   - A target that CVO neither recommends nor knows is Unknown, since its risks were
//     not evaluated. CVO accepts it with a warning (recommendedupdate.go).
//   - Alerts that cannot be read are Unknown. CVO uses those that it read before, or
//     none (pkg/clusterconditions/promql/alerts.go).
//   - A rule of an unknown type does not mean that the risk does not apply. CVO drops
//     such rules, and a target that has no others.
//   - A risk that CVO drops, because its name is invalid or because two definitions of
//     it differ, is evaluated and reported.
//   - A gate is left to the gates, even if CVO lists it among the risks, as it does
//     from 4.23 on: accepting it does not bypass CVO's precondition
//     ClusterVersionUpgradeable, so it must not look acceptable.
//   - Rules are evaluated at once. CVO waits a second between two, and an hour before
//     it evaluates them again.
package risk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"regexp"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Checks are all checks for risks. A new one is added here. Checks of many updates
// may share the client, so that everything is read once for all.
func Checks(client *monitoring.Client, options Options) []check.Check {
	return []check.Check{
		Recommended(client, options),
		Alerts(client, options),
	}
}

// Options are decisions of the administrator for all updates.
type Options struct {
	// IgnoredAlerts and IgnoredNamespaces select alerts that only warn, by their
	// name and by their label "namespace".
	IgnoredAlerts, IgnoredNamespaces []string
}

var reasonIgnored = finding.NewReason("Ignored", finding.Explanation{
	Meaning: "An alert is firing that the administrator ignores.",
	Cause:   "The alert is ignored by its name, or by its namespace.",
})

func ignoredByName(name string) string { return fmt.Sprintf("the alert %q is ignored by name", name) }

// ignored is the warning in place of a finding that is ignored for a cause.
func ignored(f finding.Finding, cause string) finding.Finding {
	return finding.Warn(reasonIgnored, "%s: %s", cause, f.Message).
		Named(f.Name).
		Documented(f.URL).
		About(f.Objects...).
		Observed(f.Evidence)
}

// NameControlPlaneAlerts is the name of the check of the alerts of a hosted control plane.
var NameControlPlaneAlerts = finding.NewName("ControlPlaneAlerts",
	"Checks for alerts of the management cluster about the control plane of a hosted cluster: alerts with the namespace of the control "+
		"plane that Alerts would count. Each alert name has a finding ControlPlaneAlerts-NAME, by which it is accepted.")

// ControlPlaneAlerts is the check of the alerts of a hosted control plane, which the monitoring of its
// management cluster has with the namespace of the control plane. One that is not OpenShift need not have
// monitoring: then the check is Skipped.
func ControlPlaneAlerts(side *hosted.ControlPlane, options Options) check.Check {
	return check.Check{
		Name: NameControlPlaneAlerts, Kind: finding.SourceRisk, Side: check.Management,
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			s.Cluster = snapshot.Of(side.Management)
			return alerts{
				subject: s, client: side.Monitoring, options: options,
				controlPlane: hypershift.ControlPlaneNamespace(side.Cluster.Namespace, side.Cluster.Name),
			}.findings(ctx)
		},
	}
}

// Assessed is a risk that CVO has evaluated.
type Assessed struct {
	Name  string
	Rules []configv1.ClusterCondition
	// Applies is true for a risk that applies to the cluster.
	Applies bool
}

// AssessedByCluster returns the risks of the conditional updates of ClusterVersion that CVO has evaluated, by the
// version of the update, then by name. It omits risks that CVO could not evaluate, and assessments that are out of
// date or may be about another definition of the risk.
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

var (
	reasonRiskApplies = finding.NewReason("RiskApplies", finding.Explanation{
		Meaning: "A risk of the update applies to this cluster.",
		Cause:   "The message contains the description of the risk.",
		Remedy:  "Update to a release without the risk, or accept the risk: `preflight accept NAME`.",
	})
	reasonRiskDoesNotApply = finding.NewReason("RiskDoesNotApply", finding.Explanation{
		Meaning: "A risk of the update does not apply to this cluster.",
		Cause:   "The matching rules of the risk do not match.",
	})
	reasonThrottled = finding.NewReason("Throttled", finding.Explanation{
		Meaning: "CVO has not evaluated a risk yet, and oc-preflight could not evaluate it either.",
		Cause:   "CVO evaluates one risk after the other, and the preflight has no access to the monitoring.",
		Remedy:  "Wait some minutes, then run the preflight again.",
	})
	reasonInterrupted = finding.NewReason("Interrupted", finding.Explanation{
		Meaning: "The run ended before a risk was evaluated.",
		Cause:   "The run was canceled, or reached its deadline.",
		Remedy:  "Run the preflight again and let it finish.",
	})
)

// maxText bounds a text of the update service or of the cluster, in bytes.
const maxText = 4096

// The ways in which a risk is evaluated.
const (
	byCluster   = "by the cluster"
	byPreflight = "by this preflight"
	notAtAll    = "not evaluated"
)

// namedRisk is one risk of the update. It has several definitions where
// ClusterVersion has several entries for the update.
type namedRisk struct {
	name        string
	definitions []definition
}

// evaluate evaluates a risk that the cluster could not evaluate. Of several definitions the worst counts.
func (r namedRisk) evaluate(ctx context.Context, evaluator evaluator, version string) finding.Finding {
	var findings []finding.Finding
	for _, definition := range r.definitions {
		findings = append(findings, definition.evaluate(ctx, evaluator, version))
	}
	return slices.MinFunc(findings, func(a, b finding.Finding) int {
		return cmp.Or(a.Outcome.Compare(b.Outcome), cmp.Compare(a.Message, b.Message))
	})
}

// isGate reports whether CVO made the risk for a gate. Its rules are always Always; another risk with such a name
// is evaluated like any risk.
func (r namedRisk) isGate() bool { return cvo.NamesGate(r.name) && r.isAlways() }

// isAlert reports whether CVO made the risk of an alert (pkg/risk/alert).
func (r namedRisk) isAlert() bool {
	return r.isAlways() && !slices.ContainsFunc(r.definitions, func(d definition) bool { return !d.assessment.ofAlert() })
}

func (r namedRisk) isAlways() bool {
	return r.all(func(risk configv1.ConditionalUpdateRisk) bool { return isAlways(risk.MatchingRules) })
}

func (r namedRisk) all(satisfies func(configv1.ConditionalUpdateRisk) bool) bool {
	return !slices.ContainsFunc(r.definitions, func(d definition) bool { return !satisfies(d.risk) })
}

// definition is a risk in one entry of ClusterVersion, with the cluster's assessment.
type definition struct {
	risk       configv1.ConditionalUpdateRisk
	assessment assessment
}

func (d definition) evaluate(ctx context.Context, evaluator evaluator, version string) finding.Finding {
	switch d.assessment.applies {
	case metav1.ConditionTrue:
		return d.applies(version, byCluster)
	case metav1.ConditionFalse:
		return d.doesNotApply(byCluster)
	case metav1.ConditionUnknown:
	}
	matches, err := evaluator.match(ctx, d.risk.MatchingRules)
	switch {
	case err != nil:
		return d.unknown(err)
	case matches:
		return d.applies(version, byPreflight)
	}
	return d.doesNotApply(byPreflight)
}

func (d definition) applies(version, evaluated string) finding.Finding {
	message := fmt.Sprintf("the update service warns this cluster of %s: %s", version, d.text())
	if d.assessment.ofAlert() {
		message = "the cluster reports an alert: " + words.Lines(d.assessment.message, maxText)
	}
	return d.finding(preflight.Fail, reasonRiskApplies, message, evaluated).
		Remedy("%sUpdate to a release without the risk, or accept the risk.", d.reading()).
		Do(finding.Targets(), finding.Accept(d.name()))
}

func (d definition) doesNotApply(evaluated string) finding.Finding {
	return d.finding(preflight.Pass, reasonRiskDoesNotApply, "the risk does not apply to this cluster: "+d.text(), evaluated)
}

// unknown is the finding of a risk that could not be evaluated. That CVO evaluates
// one risk after the other is the cause only where this preflight has no access to
// the monitoring.
func (d definition) unknown(err error) finding.Finding {
	known, ok := errors.AsType[*monitoring.Error](err)
	if !ok { // canceled
		known = &monitoring.Error{
			Reason: reasonInterrupted, Message: err.Error(),
			Remedy: "Run the preflight again and let it finish.", Actions: []finding.Action{finding.Retry("")},
		}
	}
	reason, remedy := known.Reason, known.Remedy
	message := fmt.Sprintf("whether the risk applies to this cluster is unknown: %s; the risk is: %s", known.Message, d.text())
	hasAccess := known.Reason != monitoring.ReasonNoMonitoring && known.Reason != monitoring.ReasonNoToken
	if !hasAccess && strings.Contains(d.assessment.message, "evaluation is throttled") {
		reason, remedy = reasonThrottled, "Wait some minutes, then run the preflight again. "+known.Remedy
		message = fmt.Sprintf("the cluster has not evaluated the risk yet (%s), and this preflight could not: %s; the risk is: %s",
			words.Lines(d.assessment.message, maxText), known.Message, d.text())
	}
	return d.finding(preflight.Unknown, reason, message, notAtAll).
		Remedy("%s %sIf the risk is acceptable, accept it.", remedy, d.reading()).
		Do(known.Actions...).
		Do(finding.Accept(d.name()))
}

func (d definition) name() string { return riskName("InvalidRiskName", d.risk.Name) }

// text is the description of the risk, which may lack one.
func (d definition) text() string {
	if d.risk.Message == "" {
		return "ClusterVersion has only the name of the risk"
	}
	return words.Lines(d.risk.Message, maxText)
}

func (d definition) reading() string {
	if d.risk.URL == "" {
		return ""
	}
	return "Read " + words.Line(d.risk.URL, maxText) + " first. "
}

func (d definition) finding(outcome preflight.Outcome, reason finding.Reason, message, evaluated string) finding.Finding {
	evidence := map[string]string{"evaluated": evaluated}
	if d.assessment.message != "" {
		evidence["cluster"] = words.Lines(d.assessment.reason+": "+d.assessment.message, maxText)
	}
	for _, rule := range d.risk.MatchingRules {
		if rule.PromQL != nil {
			evidence["promql"] = words.Lines(rule.PromQL.PromQL, maxText)
		}
	}
	name := d.name()
	if name != d.risk.Name {
		message += fmt.Sprintf(" (ClusterVersion cannot accept the risk by its own name, %q)", words.Line(d.risk.Name, maxText))
	}
	return finding.Reported(gap.Proven("the evaluation of the risk"), outcome, reason, "%s",
		message).Named(name).Documented(d.risk.URL).Observed(evidence)
}

// maxKept bounds the part of an invalid name that is kept, in bytes.
const maxKept = 128

var invalidCharacters = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// riskName is the name by which a risk is accepted: its own where that is valid,
// otherwise one derived from it and from kind. Different names have different
// results, and a derived name is none that another risk has.
func riskName(kind, name string) string {
	switch {
	case finding.ValidName(name):
		return name
	case name == "":
		return kind
	}
	derived := invalidCharacters.ReplaceAllString(name, "-")
	derived = derived[:min(len(derived), maxKept)]
	if derived == name {
		return kind + "-" + name
	}
	return fmt.Sprintf("%s-%s-%08x", kind, strings.Trim(derived, "-"), crc32.ChecksumIEEE([]byte(name)))
}
