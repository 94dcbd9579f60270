package risk

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/monitoring"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const ReasonJudgedElsewhere finding.Reason = "JudgedElsewhere"

// maxQuoted bounds what is quoted of the update service, of an alert or of the
// cluster, in bytes.
const maxQuoted = 4096

func (c claim) applies(version, by string) finding.Finding {
	f := c.finding(preflight.Fail, "RiskApplies", by)
	f.Message = fmt.Sprintf("the update service warns this cluster of %s: %s", version, c.about())
	if strings.HasPrefix(c.said.reason, "Alert:") {
		f.Message = "the cluster tells of an alert: " + quote(c.said.text)
	}
	f.Remediation = c.reading() + "Then update to a release without the risk (oc preflight targets), or " + acceptance(c.risk.Name)
	return f
}

func (c claim) spares(by string) finding.Finding {
	f := c.finding(preflight.Pass, "RiskDoesNotApply", by)
	f.Message = "the risk does not apply to this cluster: " + c.about()
	return f
}

// unknown is for a risk that nobody could tell of. That the cluster could not
// because it evaluates one risk after the other is the cause only where this
// preflight had no means of its own.
func (c claim) unknown(err error) finding.Finding {
	known, ok := errors.AsType[*monitoring.Error](err)
	if !ok { // canceled: the run tells of it too
		known = &monitoring.Error{Reason: "Interrupted", Message: err.Error(), Remediation: "Run the preflight again and let it finish."}
	}
	f := c.finding(preflight.Unknown, known.Reason, "by nobody")
	f.Message = fmt.Sprintf("could not tell whether the risk applies to this cluster: %s; the risk is: %s", known.Message, c.about())
	f.Remediation = known.Remediation
	ownMeans := known.Reason != "NoMonitoring" && known.Reason != "NoToken"
	if !ownMeans && strings.Contains(c.said.text, "evaluation is throttled") {
		f.Reason = "Throttled"
		f.Message = fmt.Sprintf("the cluster has not come to evaluate the risk yet (%s), and this preflight could not: %s; the risk is: %s",
			quote(c.said.text), known.Message, c.about())
		f.Remediation = "Wait some minutes, then run the preflight again. " + known.Remediation
	}
	f.Remediation = strings.TrimSuffix(f.Remediation, ".") + ". " + c.reading() + "If it is acceptable here, " + acceptance(c.risk.Name)
	return f
}

// about is the text of the risk; a risk may also only be named.
func (c claim) about() string {
	if c.risk.Message == "" {
		return "ClusterVersion names the risk, but nothing says what it is"
	}
	return quote(c.risk.Message)
}

// reading is the first thing to do about a risk.
func (c claim) reading() string {
	if c.risk.URL == "" {
		return ""
	}
	return "Read " + c.risk.URL + "\n"
}

// finding has what all findings of a risk have.
func (c claim) finding(outcome preflight.Outcome, reason, by string) finding.Finding {
	evidence := map[string]string{"evaluated": by}
	if c.said.text != "" {
		evidence["cluster"] = quote(c.said.reason + ": " + c.said.text)
	}
	for _, rule := range c.risk.MatchingRules {
		if rule.PromQL != nil {
			evidence["promql"] = quote(rule.PromQL.PromQL)
		}
	}
	return finding.Finding{Finding: preflight.Finding{
		Outcome:  outcome,
		Reason:   reason,
		URL:      c.risk.URL,
		Evidence: evidence,
	}}
}

func acceptance(name string) string {
	return "accept it by name: --accept " + accepted("InvalidRiskName", name)
}

// isGate says whether CVO made the risk out of what the gates look at
// (pkg/risk/{adminack,overrides,updating,deletion,upgradeable}). Its rules are
// always Always; another's risk by that name is judged as any risk.
func (s subject) isGate() bool {
	gates := []string{"ClusterVersionUpdating", "ClusterVersionOverrides", "ResourceDeletionInProgress", "AdminAckUnknown", "ClusterOperatorUpgradeableUnknown"}
	named := slices.Contains(gates, s.name) || strings.HasPrefix(s.name, "AdminAck-") || strings.HasPrefix(s.name, "ClusterOperatorUpgradeable-")
	return named && s.isAlways()
}

// isAlert says whether CVO made the risk out of an alert (pkg/risk/alert).
func (s subject) isAlert() bool {
	other := func(claim claim) bool { return !strings.HasPrefix(claim.said.reason, "Alert:") }
	return s.isAlways() && !slices.ContainsFunc(s.claims, other)
}

func (s subject) isAlways() bool {
	always := func(rules []configv1.ClusterCondition) bool { return len(rules) == 1 && rules[0].Type == "Always" }
	return !slices.ContainsFunc(s.claims, func(claim claim) bool { return !always(claim.risk.MatchingRules) })
}

// leftTo names the risks that another check tells of.
func leftTo(elsewhere []string) finding.Finding {
	return finding.Skipped(ReasonJudgedElsewhere,
		"ClusterVersion lists as risks of the update what other checks tell of: %s", quote(strings.Join(elsewhere, ", ")))
}

// ignored turns what blocks into a warning that says why it does not.
func ignored(f finding.Finding, why string) finding.Finding {
	f.Outcome, f.Reason = preflight.Warn, "Ignored"
	f.Message = why + ": " + f.Message
	return f
}

// quote bounds what somebody said, and keeps its lines.
func quote(said string) string {
	said = strings.TrimSpace(said)
	if len(said) > maxQuoted {
		return strings.ToValidUTF8(said[:maxQuoted], "") + " [...]"
	}
	return said
}
