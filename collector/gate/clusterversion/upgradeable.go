package clusterversion

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate/measure"
	"github.com/openshift/update-preflight/collector/ownsignal"
)

var (
	nameClusterVersionUpgradeable = finding.NewName("ClusterVersionUpgradeable",
		"CVO's precondition ClusterVersionUpgradeable: the condition Upgradeable=False of ClusterVersion blocks "+
			"updates to another minor or major version, whatever was accepted. The finding has CVO's own reason, or "+
			"UpgradeableFalse for several. CVO accepts the update when the condition is Unknown, which means that it "+
			"could not evaluate one of the causes; here the check is inconclusive. A condition whose only cause is "+
			"the preflight's own ClusterOperator does not count.")

	reasonUpgradeableFalse = finding.NewReason("UpgradeableFalse", finding.Explanation{
		Meaning: "Reported when the condition Upgradeable of ClusterVersion is False for several causes.",
		Cause:   "The message lists the causes.",
		Remedy:  "Fix each cause, or acknowledge it where it is an admin gate: `oc adm upgrade`.",
	})
)

// Upgradeable is the check ClusterVersionUpgradeable.
func Upgradeable() check.Check {
	return check.Check{
		Name: nameClusterVersionUpgradeable, Kind: finding.SourceGate,
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(current(judgeUpgradeable)),
	}
}

func judgeUpgradeable(s situation) []finding.Finding {
	condition := s.condition(configv1.OperatorUpgradeable)
	violation := cvo.Upgradeable(s.version, s.target())
	switch {
	case violation != nil && isOwnViolation(s, *violation):
		return []finding.Finding{finding.Skipped(s.read, check.ReasonOwnSignal,
			"Upgradeable=False of ClusterVersion repeats the last verdict of the preflight and nothing else, so it does not count: %s", condition.Message)}
	case violation != nil && violation.Weight != cvo.Warning: // ClusterVersionOverrides and ClusterVersionUpdating have the warnings
		return []finding.Finding{s.notUpgradeable(*violation)}
	case !s.update.LeavesMinor():
		return s.notConcerned(fmt.Sprintf("Upgradeable=%s of ClusterVersion", orAbsent(condition.Status)))
	case condition.Status == "" || condition.Status == configv1.ConditionTrue:
		return []finding.Finding{finding.Pass(s.read, reasonUpgradeable,
			"the condition Upgradeable of ClusterVersion, which CVO removes when nothing blocks, is %s", orAbsent(condition.Status))}
	}
	return []finding.Finding{finding.Unknown(cmp.Or(finding.ReportedReason(condition.Reason), reasonEvaluationFailed),
		"CVO could not evaluate whether the cluster can leave %s: Upgradeable=%s of ClusterVersion: %s", s.minor(), condition.Status, cmp.Or(condition.Message, "no message")).
		Remedy("Check what CVO could not evaluate. CVO itself would accept the update.").
		Do(cvoLog())}
}

// isOwnViolation reports whether the preflight's own ClusterOperator is the only cause of a
// violation: no override is set, no condition of another cause is, and the message has
// none. In doubt the condition counts.
func isOwnViolation(s situation, violation cvo.Violation) bool {
	condition := s.condition(configv1.OperatorUpgradeable)
	unmanaged := func(override configv1.ComponentOverride) bool { return override.Unmanaged }
	another := func(other configv1.ClusterOperatorStatusCondition) bool {
		return other.Type != configv1.OperatorUpgradeable && strings.HasPrefix(string(other.Type), "Upgradeable") && other.Status == configv1.ConditionFalse
	}
	return violation.Weight != cvo.Warning && violation.Reason == condition.Reason &&
		ownsignal.Upgradeable(condition.Reason, condition.Message) &&
		!slices.ContainsFunc(s.version.Spec.Overrides, unmanaged) && !slices.ContainsFunc(s.version.Status.Conditions, another)
}

// notUpgradeable keeps CVO's message. Up to 4.22 the causes have conditions of
// their own; those that the message lacks are appended. A reason that names no
// cause is replaced.
func (s situation) notUpgradeable(violation cvo.Violation) finding.Finding {
	if slices.Contains([]string{"MultipleReasons", "RiskNameNotCompatibleWithReasonProperty"}, violation.Reason) {
		violation.Reason = reasonUpgradeableFalse.String() // as in oc adm upgrade recommend
	}
	causes := map[string]string{}
	for _, condition := range s.version.Status.Conditions {
		if !strings.HasPrefix(string(condition.Type), "Upgradeable") || condition.Status != configv1.ConditionFalse {
			continue
		}
		cause := strings.TrimPrefix(condition.Reason+": "+cmp.Or(condition.Message, "no message"), ": ")
		causes[string(condition.Type)] = cause
		if condition.Message != "" && !strings.Contains(violation.Message, condition.Message) {
			violation.Message += "\n* " + cause
		}
	}
	violation.Message = cmp.Or(violation.Message, fmt.Sprintf("Upgradeable=False of ClusterVersion keeps the cluster in %s, without a message", s.minor()))
	return violated(violation).
		Observed(causes).
		Remedy("Fix what the message names, or acknowledge it where it is an admin gate. This blocks updates that leave %s; until then, update to the newest release within it.", s.minor()).
		Do(finding.Read("oc adm upgrade"), finding.Targets())
}

var (
	nameResourceDeletionInProgress = finding.NewName("ResourceDeletionInProgress",
		"The gate that is closed while CVO deletes objects that the release no longer has (pkg/risk/deletion). It "+
			"concerns updates to another minor or major version. CVO publishes the list only in a condition of "+
			"ClusterVersion: UpgradeableDeletesInProgress up to 4.22, and a part of Upgradeable since.")

	reasonResourceDeletesInProgress = finding.NewReason("ResourceDeletesInProgress", finding.Explanation{
		Meaning: "Reported while CVO deletes objects that the release no longer has. Until then the cluster cannot leave " +
			"its minor version.",
		Cause:   "Most often a finalizer keeps one of the objects.",
		Remedy:  "Wait. If the deletion does not end, check what keeps the objects, most likely a finalizer.",
		Command: "oc get KIND NAME -o yaml",
	})
	reasonEvaluationFailed = finding.NewReason("EvaluationFailed", finding.Explanation{
		Meaning: "Reported when CVO could not evaluate whether the cluster can be updated.",
		Cause:   "An error of CVO, which its log has.",
		Remedy:  "Read the log of CVO: `oc -n openshift-cluster-version logs deployment/cluster-version-operator`.",
	})
	reasonNothingDeleted = finding.NewReason("NothingDeleted", finding.Explanation{
		Meaning: "Reported when CVO is not deleting objects.",
		Cause:   "No condition of ClusterVersion reports a deletion.",
	})
)

// Deletion is the check ResourceDeletionInProgress.
func Deletion() check.Check {
	return check.Check{
		Name: nameResourceDeletionInProgress, Kind: finding.SourceGate,
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(current(judgeDeletion)),
	}
}

var (
	// deletions is the message of all releases of CVO since 4.9.
	deletions = regexp.MustCompile(`not allowed while resource deletions are in progress; resources=([^\n]*)`)
	// deleted is one object in that message.
	deleted = regexp.MustCompile(`([a-zA-Z0-9.]+) "(?:([a-z0-9.-]+)/)?([A-Za-z0-9.:_-]+)"`)
)

func judgeDeletion(s situation) []finding.Finding {
	m := s.measure()
	if m.Effect == measure.None || m.Effect == measure.Warns {
		return s.notConcerned("a deletion in progress")
	}
	return m.Apply([]finding.Finding{s.deletion(m.Within)})
}

func (s situation) deletion(minor string) finding.Finding {
	own, all := s.condition("UpgradeableDeletesInProgress"), s.condition(configv1.OperatorUpgradeable)
	resources := deletions.FindStringSubmatch(own.Message + "\n" + all.Message)
	switch {
	case own.Status == configv1.ConditionFalse || (all.Status == configv1.ConditionFalse && resources != nil):
		f := finding.Fail(reasonResourceDeletesInProgress,
			"CVO is deleting objects that the release no longer has, and until then the cluster cannot leave %s: %s", minor, cmp.Or(own.Message, all.Message))
		if resources != nil {
			f = f.Observed(map[string]string{"resources": resources[1]}).Do(inspectDeleted(resources[1])...)
		}
		return f
	case all.Status == configv1.ConditionUnknown:
		if s.update.LeavesMinor() { // one cause is one finding
			return finding.Skipped(s.read, reasonEvaluationFailed,
				"the condition Upgradeable of ClusterVersion, in which CVO reports deletions in progress, is Unknown: see the finding ClusterVersionUpgradeable")
		}
		return finding.Unknown(reasonEvaluationFailed,
			"the condition Upgradeable of ClusterVersion, in which CVO reports deletions in progress, is Unknown").
			Remedy("Check what CVO could not evaluate.").Do(cvoLog())
	}
	return finding.Pass(s.read, reasonNothingDeleted, "ClusterVersion reports no deletion in progress")
}

// inspectDeleted are the commands that print the first few of the objects in CVO's message.
func inspectDeleted(resources string) []finding.Action {
	const most = 5
	var actions []finding.Action
	for _, object := range deleted.FindAllStringSubmatch(resources, most) {
		kind, namespace, name := strings.ToLower(object[1]), object[2], object[3]
		actions = append(actions, finding.Read("oc get %s %s -o yaml", kind, name).Namespaced(namespace))
	}
	return actions
}

func cvoLog() finding.Action {
	return finding.Read("oc -n openshift-cluster-version logs deployment/cluster-version-operator")
}
