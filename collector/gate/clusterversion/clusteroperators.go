package clusterversion

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/gate/measure"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	nameClusterOperatorUpgradeable = finding.NewName("ClusterOperatorUpgradeable",
		"Blocks updates to another minor or major version while an operator reports Upgradeable=False. Each such operator has a "+
			"finding ClusterOperatorUpgradeable-<name>, with the operator's own reason. By the API (ClusterOperator status.conditions, "+
			"OperatorUpgradeable) an absent condition, True and Unknown do not block. Unknown is a warning, except with the reason "+
			"NoData, which operators set while they have nothing to report. The preflight's own ClusterOperator does not count.")

	reasonUpgradeable = finding.NewReason("Upgradeable", finding.Explanation{
		Meaning: "No condition Upgradeable of a ClusterOperator blocks the update.",
		Cause:   "The condition is True or absent; absent means True.",
	})
)

// ClusterOperators is the check ClusterOperatorUpgradeable.
func ClusterOperators() check.Check {
	return check.Check{
		Name: nameClusterOperatorUpgradeable, Kind: finding.SourceGate,
		Reads: append(check.ReadsClusterVersion(), check.List(configv1.GroupName, "clusteroperators")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			var m measure.Measure
			findings, err := onClusterVersion(func(s situation) []finding.Finding {
				if m = s.measure(); m.Effect == measure.Blocks || m.Effect == measure.Uncertain {
					return nil
				}
				return s.notConcerned("Upgradeable=False of a ClusterOperator")
			})(ctx, s)
			if err != nil || len(findings) > 0 {
				return findings, err
			}
			operators, err := s.Cluster.ClusterOperators(ctx)
			if apierrors.IsNotFound(err) {
				return []finding.Finding{check.APIMissing("ClusterOperators", configv1.GroupName)}, nil
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the ClusterOperators: %w", err)
			}
			return m.Apply(judgeOperators(gap.ExtentOf(ctx), operators, m.Within)), nil
		},
	}
}

func judgeOperators(read gap.Extent, operators []configv1.ClusterOperator, minor string) []finding.Finding {
	var findings []finding.Finding
	var own []finding.Finding
	others := len(operators)
	for i := range operators {
		f, ok := judgeOperator(&operators[i], minor)
		switch {
		case operators[i].Name == ownsignal.ClusterOperator:
			others--
			if ok {
				own = append(own, ownOperator(f))
			}
		case ok:
			findings = append(findings, f)
		}
	}
	if len(findings) > 0 {
		return append(finding.Bounded(finding.Drafts(findings...)), own...)
	}
	return append(own, finding.Pass(read, reasonUpgradeable, "none of %s reports Upgradeable=False", words.Count(others, "ClusterOperator")))
}

// ownOperator is the result in place of the finding of the preflight's own ClusterOperator.
func ownOperator(f finding.Finding) finding.Finding {
	return finding.Skipped(gap.Proven("the ClusterOperator"), check.ReasonOwnSignal,
		"ClusterOperator %q repeats the last verdict of the preflight, so it does not count: %s",
		ownsignal.ClusterOperator, f.Message).
		Named(f.Name).
		About(f.Objects...)
}

// judgeOperator evaluates one operator; false means that it does not block the update and has no warning.
func judgeOperator(operator *configv1.ClusterOperator, minor string) (finding.Finding, bool) {
	condition := upgradeableOf(operator)
	message := fmt.Sprintf("ClusterOperator %q reports Upgradeable=%s: %s", operator.Name, condition.Status,
		cmp.Or(condition.Message, "no message"))
	reason := cmp.Or(finding.ReportedReason(condition.Reason), reasonUnexplained)
	inspect := finding.Read("oc get clusteroperator %s -o yaml", operator.Name)
	var f finding.Finding
	switch {
	case condition.Status == configv1.ConditionFalse:
		f = finding.Fail(reason, "%s\nThis blocks updates to another minor version than %s.", message, minor).
			Remedy("Do what the operator's message requires, then check the condition.").Do(inspect)
	case condition.Status == configv1.ConditionUnknown && condition.Reason != "NoData":
		f = finding.Warn(reason, "%s", message).
			Remedy("CVO accepts the update, but the operator could not determine whether it is safe. Check the operator.").Do(inspect)
	default:
		return finding.Finding{}, false
	}
	return f.Named(NameOfOperator(operator.Name)).
		About(finding.Object{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterOperator", Name: operator.Name}), true
}

// NameOfOperator is the name of the finding about the condition Upgradeable of a ClusterOperator.
func NameOfOperator(name string) string { return nameClusterOperatorUpgradeable + "-" + name }

func upgradeableOf(operator *configv1.ClusterOperator) configv1.ClusterOperatorStatusCondition {
	for _, condition := range operator.Status.Conditions {
		if condition.Type == configv1.OperatorUpgradeable {
			return condition
		}
	}
	return configv1.ClusterOperatorStatusCondition{}
}

// Repeats returns the names of the open findings that f repeats: CVO sets the condition Upgradeable of
// ClusterVersion because of the ClusterOperators' conditions and of admin gates, among other causes. It returns
// none unless f is ClusterVersionUpgradeable and its whole message comes from these findings. Once they are fixed,
// CVO removes the condition.
//
// Source: setUpgradeableCondition in pkg/cvo/status.go of CVO, and for releases up to 4.22
// setUpgradeableConditions in pkg/cvo/upgradeable.go.
func Repeats(f finding.Finding, findings []finding.Finding) []string {
	if f.Name != nameClusterVersionUpgradeable || f.Outcome != preflight.Fail {
		return nil
	}
	var known []repeated
	for _, other := range findings {
		if text, ok := repeatable(other); ok {
			known = append(known, repeated{name: other.Name, text: text, open: other.Open()})
		}
	}
	names, all := consume(f.Message, known)
	if !all {
		return nil
	}
	slices.Sort(names)
	return slices.Compact(names)
}

type repeated struct {
	name, text string
	open       bool
}

func repeatable(f finding.Finding) (text string, ok bool) {
	operator, isOperator := strings.CutPrefix(f.Name, nameClusterOperatorUpgradeable+"-")
	switch {
	case isOperator && (f.Open() || operator == ownsignal.ClusterOperator && f.Reason == check.ReasonOwnSignal.String()):
		_, text, ok = strings.Cut(f.Message, `ClusterOperator "`+operator+`" reports Upgradeable=False: `)
		text, _, _ = strings.Cut(text, "\nThis blocks updates to another minor version than ")
	case strings.HasPrefix(f.Name, "AdminAck-") && f.Open():
		text, ok = f.Message, true
		if _, gate, found := strings.Cut(text, `only "true" counts: `); found {
			text = gate
		}
	}
	text = strings.TrimSpace(text)
	return text, ok && text != ""
}

// introduced lists the endings of a message that CVO may repeat, with and without its own introduction.
func introduced(message string) []string {
	const list = `Cluster should not be upgraded between minor (?:or major )?versions for multiple reasons:[^\n]*|` +
		`Multiple cluster operators should not be upgraded between minor (?:or major )?versions:`
	const one = `Cluster operator \S+ should not be upgraded between minor (?:or major )?versions:`
	ends := []string{message}
	for _, pattern := range []string{`^(?:` + list + `|` + one + `)`, `^` + one + ` [A-Z][A-Za-z0-9_]*:`} {
		if found := regexp.MustCompile(pattern).FindString(message); found != "" {
			ends = append(ends, listed(message[len(found):]))
		}
	}
	return ends
}

// listed returns the text after a bullet, in CVO's form.
func listed(text string) string { return strings.TrimLeft(text, "\n *") }

// consume takes the known texts out of a message; all is false where something else is in it, or
// nothing. A finding that is not open is the preflight's own, and has no name here.
func consume(message string, known []repeated) (names []string, all bool) {
	slices.SortStableFunc(known, func(a, b repeated) int { return len(b.text) - len(a.text) })
	for rest := strings.TrimSpace(message); rest != ""; {
		ends := introduced(rest)
		at, end := -1, ""
		for _, end = range ends {
			if at = slices.IndexFunc(known, func(r repeated) bool { return starts(end, r.text) }); at >= 0 {
				break
			}
		}
		switch {
		case at >= 0:
			if known[at].open {
				names = append(names, known[at].name)
			}
			rest = listed(end[len(known[at].text):])
			known = slices.Delete(known, at, at+1)
		case len(ends) > 1: // an introduction of a list
			rest = ends[1]
		default:
			return nil, false
		}
	}
	return names, len(names) > 0
}

// starts reports whether a message starts with a whole text.
func starts(message, text string) bool {
	rest, ok := strings.CutPrefix(message, text)
	return ok && (rest == "" || rest[0] == '\n' || rest[0] == ' ')
}
