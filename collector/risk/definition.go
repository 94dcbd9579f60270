package risk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	reasonRiskApplies = finding.NewReason("RiskApplies", finding.Explanation{
		Meaning: "Reported when a risk of the update applies to this cluster.",
		Cause:   "The message has the description of the risk.",
		Remedy:  "Update to a release without the risk, or accept the risk: `preflight accept NAME`.",
	})
	reasonRiskDoesNotApply = finding.NewReason("RiskDoesNotApply", finding.Explanation{
		Meaning: "Reported when a risk of the update does not apply to this cluster.",
		Cause:   "The matching rules of the risk do not match.",
	})
	reasonThrottled = finding.NewReason("Throttled", finding.Explanation{
		Meaning: "Reported when CVO has not evaluated a risk yet, and this preflight could not evaluate it either.",
		Cause:   "CVO evaluates one risk after the other, and the preflight has no access to the monitoring.",
		Remedy:  "Wait some minutes, then run the preflight again.",
	})
	reasonInterrupted = finding.NewReason("Interrupted", finding.Explanation{
		Meaning: "Reported when the run ended before a risk was evaluated.",
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

// judge evaluates a risk that the cluster could not evaluate. Of several definitions the worst counts.
func (r namedRisk) judge(ctx context.Context, evaluator evaluator, version string) finding.Finding {
	var findings []finding.Finding
	for _, definition := range r.definitions {
		findings = append(findings, definition.judge(ctx, evaluator, version))
	}
	return slices.MinFunc(findings, func(a, b finding.Finding) int {
		return cmp.Or(a.Outcome.Compare(b.Outcome), cmp.Compare(a.Message, b.Message))
	})
}

// isGate reports whether CVO made the risk of a gate. Its rules are always Always; another
// risk with such a name is judged as any risk.
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

func (d definition) judge(ctx context.Context, evaluator evaluator, version string) finding.Finding {
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
	message := fmt.Sprintf("it is unknown whether the risk applies to this cluster: %s; the risk is: %s", known.Message, d.text())
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
	return finding.Reported(gap.Proven("the evaluation of the risk"), outcome, reason, "%s", message).Named(name).Documented(d.risk.URL).Observed(evidence)
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
