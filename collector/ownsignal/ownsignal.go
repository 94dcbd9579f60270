// Package ownsignal answers: which signals of this cluster are the preflight's own?
//
// A verdict that is not Ready may be raised as an alert, as a ClusterOperator or as a risk of an update. The
// cluster-version operator (CVO) repeats these in ClusterVersion. A check that counted them would keep a cluster
// Blocked that was Blocked once, so own signals are skipped, with the reason OwnSignal. A report still contains
// CVO's reaction to them, in its field cvo.
//
// A signal is the preflight's own only if raising it takes the rights of a cluster administrator: an alert needs
// the label namespace, which the rules of another namespace cannot have; ClusterOperators and the guard of a run
// are cluster-scoped. A risk of an update is the exception: a writer of the update graph can imitate one with the
// fields that CVO copies from there. SECURITY.md describes the consequences.
package ownsignal

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
)

const (
	// Namespace is where the controller runs, and the label "namespace" of its alerts.
	Namespace = "openshift-update-preflight"
	// ClusterOperator is the name of the preflight's ClusterOperator.
	ClusterOperator = "update-preflight"
	// Definition is the name of the CustomResourceDefinition of the controller's API.
	Definition = "updatepreflights.preflight.openshift.io"
	// OperatorRisk is CVO's name for the risk of that ClusterOperator.
	OperatorRisk = "ClusterOperatorUpgradeable-" + ClusterOperator
	// NotReady is the reason of Upgradeable=False of that ClusterOperator.
	NotReady = "PreflightNotReady"
	// AlertPrefix begins the names of the preflight's alerts.
	AlertPrefix = "UpdatePreflight"
	// AlertRegressed is the alert about an update after it.
	AlertRegressed = "UpdateRegressed"
	// RiskPrefix begins the names of the risks of [Risk]; the version of the target follows.
	RiskPrefix = "Preflight-"
	// URL is the URL of risks from the preflight's source of risks (runner/trigger/cvo), and the
	// annotation runbook_url of its alerts, which CVO copies into their risks.
	URL = "https://github.com/openshift/update-preflight"

	// RunLabel is the label of the pods of a run: its ID.
	RunLabel = "preflight.openshift.io/run"

	guardPrefix    = "preflight-read-only-"
	podGuardPrefix = "preflight-pods-"
	suffixDigits   = 10
	messagePrefix  = "The update preflight does not allow this update: "
)

// Suffix ends the names of the objects of a run: the first ten hex digits of its ID.
func Suffix(run string) string {
	digits := strings.ReplaceAll(run, "-", "")
	return digits[:min(len(digits), suffixDigits)]
}

// OfRun is true for the name of an object of a run, which ends with its suffix. An object with such a name and the
// label of the run is deleted when the run ends.
func OfRun(run, name string) bool { return strings.HasSuffix(name, "-"+Suffix(run)) }

// PodOfRun is OfRun for the name of a pod, which may have in addition the characters that the Job controller appends.
func PodOfRun(run, name string) bool {
	i := strings.LastIndex(name, "-")
	return i >= 0 && OfRun(run, name[:i]) || OfRun(run, name)
}

// Guard is the name of the ValidatingAdmissionPolicyBinding that denies the pods of a run to write. Pods
// with the label and a name of a run that has one are own.
func Guard(run string) string { return guardPrefix + Suffix(run) }

// Requester returns the condition, in the Common Expression Language of admission policies, that a request comes
// from a pod of the run with this suffix: the name of the pod contains it, or the name of the ServiceAccount. A
// user cannot set these for a request; admission can change one of them in a pod, but a pod with both changed has
// nothing of the run.
func Requester(suffix string) string {
	const podName = "authentication.kubernetes.io/pod-name"
	return fmt.Sprintf("(has(request.userInfo.extra) && '%[1]s' in request.userInfo.extra && "+
		"request.userInfo.extra['%[1]s'].exists(name, name.matches('-%[2]s-[a-z0-9]+$')) || "+
		"request.userInfo.username.matches('^system:serviceaccount:[^:]+:[^:]*-%[2]s$'))", podName, suffix)
}

// PodGuard is the name of the ValidatingAdmissionPolicy, and of its binding, that denies pods of the run which differ from
// their Jobs.
func PodGuard(run string) string { return podGuardPrefix + Suffix(run) }

// Subject is the condition, in the Common Expression Language of admission policies, that an object is a pod of the run with
// this suffix, by any of what admission would have to change.
func Subject(suffix string) string {
	return fmt.Sprintf("(object.metadata.?ownerReferences.orValue([]).exists(o, o.name.endsWith('-%[1]s')) || "+
		"object.metadata.?generateName.orValue('').endsWith('-%[1]s-') || object.metadata.?name.orValue('').matches('-%[1]s-[a-z0-9]+$') || "+
		"object.metadata.?labels.orValue({})[?'batch.kubernetes.io/job-name'].orValue('').endsWith('-%[1]s') || "+
		"object.?spec.?serviceAccountName.orValue('').endsWith('-%[1]s'))", suffix)
}

// Alert reports whether an alert is own, by its name and its label namespace.
func Alert(name, namespace string) bool {
	return (strings.HasPrefix(name, AlertPrefix) || name == AlertRegressed) && namespace == Namespace
}

// Risk reports whether a risk of the update to a version has the form of the one that CVO has from the preflight's
// source of risks: its name, its URL, and Always as its only rule, which CVO copies unchanged. Its message and
// conditions do not count. They change with the verdict, and CVO replaces the reason of Applies with its own, such
// as EvaluationFailed (pkg/cvo/availableupdates.go, loadRiskConditions), or with a reason from the update graph,
// which may have conditions. Of two risks with one name, CVO keeps the update service's (pkg/risk/risk.go, Merge).
//
// A version with build metadata has no such risk: its name is invalid for CVO.
func Risk(risk configv1.ConditionalUpdateRisk, version string) bool {
	parsed, err := semver.Parse(version)
	return err == nil && len(parsed.Build) == 0 && risk.Name == RiskPrefix+version && hasForm(risk)
}

// AlertRisk reports whether a risk has the form of one that CVO makes of the preflight's
// alerts. Another alert of that name may have it too: see [Alert].
func AlertRisk(risk configv1.ConditionalUpdateRisk) bool {
	return strings.HasPrefix(risk.Name, AlertPrefix) && hasForm(risk)
}

// hasForm reports whether a risk has the fields that all risks of the preflight have.
func hasForm(risk configv1.ConditionalUpdateRisk) bool {
	return risk.URL == URL && len(risk.MatchingRules) == 1 && risk.MatchingRules[0].Type == "Always" && risk.MatchingRules[0].PromQL == nil
}

// Message is the message of Upgradeable=False of the preflight's ClusterOperator. It is
// one line, by which [Upgradeable] recognizes it.
func Message(detail string) string {
	return messagePrefix + strings.Join(strings.Fields(detail), " ")
}

// Upgradeable reports whether the preflight's ClusterOperator alone is the cause of
// Upgradeable=False of ClusterVersion, by its reason and message. CVO repeats the
// message of a single cause, and lists several on lines of their own; from 4.23 on with
// a fixed reason for all ClusterOperators, before with the reason of the ClusterOperator
// and a prefix that names it. Any other text is another cause.
func Upgradeable(reason, message string) bool {
	if strings.ContainsAny(message, "\n\r") {
		return false
	}
	if reason == "RiskNameNotCompatibleWithReasonProperty" {
		return strings.HasPrefix(message, messagePrefix)
	}
	if reason != NotReady {
		return false
	}
	named, ok := strings.CutPrefix(message, "Cluster operator "+ClusterOperator+" should not be upgraded between minor ")
	return ok && (strings.HasPrefix(named, "versions: "+messagePrefix) || strings.HasPrefix(named, "or major versions: "+messagePrefix))
}
