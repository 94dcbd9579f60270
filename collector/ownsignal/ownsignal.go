// Package ownsignal answers: which signals of this cluster are the preflight's own?
//
// A verdict that is not Ready may be raised as an alert, as a ClusterOperator or as a
// risk of an update. The cluster-version operator (CVO) repeats these in ClusterVersion.
// A check that counted them would keep a cluster Blocked that was Blocked once, so own
// signals are skipped, with the reason OwnSignal. What CVO does with them is still
// reported, as the cvo of a report.
//
// A signal is own only where it takes the rights of a cluster administrator to raise it: an
// alert needs the label namespace, which the rules of another namespace cannot have;
// ClusterOperators and the guard of a run are cluster-scoped; and a risk needs the form that CVO
// gives it.
package ownsignal

import (
	"fmt"
	"slices"
	"strings"
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
	// RiskPrefix begins the names of the risks of [Risk]; the version of the target
	// follows.
	RiskPrefix = "Preflight-"

	// RunLabel is the label of the pods of a run: its ID.
	RunLabel = "preflight.openshift.io/run"

	guardPrefix   = "preflight-read-only-"
	suffixDigits  = 10
	messagePrefix = "The update preflight does not allow this update: "
)

// Suffix ends the names of the objects of a run: the first ten hex digits of its ID.
func Suffix(run string) string {
	digits := strings.ReplaceAll(run, "-", "")
	return digits[:min(len(digits), suffixDigits)]
}

// Guard is the name of the ValidatingAdmissionPolicyBinding that denies the pods of a run to write. Pods
// with the label of a run that has one are own, and are deleted when the run ends.
func Guard(run string) string { return guardPrefix + Suffix(run) }

// Requester is the condition, in the Common Expression Language of admission policies, that a request
// comes from a pod of the run with this suffix. Only such a request has the name of its pod with the
// suffix: a user cannot set it.
func Requester(suffix string) string {
	const podName = "authentication.kubernetes.io/pod-name"
	return fmt.Sprintf("has(request.userInfo.extra) && '%[1]s' in request.userInfo.extra && "+
		"request.userInfo.extra['%[1]s'].exists(name, name.matches('-%[2]s-[a-z0-9]+$'))", podName, suffix)
}

// Alert reports whether an alert is own, by its name and its label namespace.
func Alert(name, namespace string) bool {
	return strings.HasPrefix(name, AlertPrefix) && namespace == Namespace
}

// Risk reports whether a risk of the update to a version is the one that CVO has from
// the preflight's source of risks. The reason is that of its condition Applies, which
// the update service cannot set.
func Risk(name, version, reason string) bool {
	reasons := []string{"PreflightInProgress", "PreflightBlocked", "PreflightUndecided", "PreflightMissing", "PreflightStale"}
	return name == RiskPrefix+version && slices.Contains(reasons, reason)
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
