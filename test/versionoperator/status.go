package versionoperator

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const releaseAccepted = configv1.ClusterStatusConditionType("ReleaseAccepted")

// set sets a condition; its time changes with its status.
func set(status *configv1.ClusterVersionStatus, kind configv1.ClusterStatusConditionType, value configv1.ConditionStatus, reason,
	message string,
) {
	condition := configv1.ClusterOperatorStatusCondition{
		Type: kind, Status: value, Reason: reason, Message: message, LastTransitionTime: metav1.Now().Rfc3339Copy(),
	}
	i := slices.IndexFunc(status.Conditions, func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == kind })
	if i < 0 {
		status.Conditions = append(status.Conditions, condition)
		return
	}
	if status.Conditions[i].Status == value {
		condition.LastTransitionTime = status.Conditions[i].LastTransitionTime
	}
	status.Conditions[i] = condition
}

// accept begins the update to a target.
func accept(status *configv1.ClusterVersionStatus, target configv1.Update, acceptedRisks string) {
	status.Desired = configv1.Release{Version: target.Version, Image: target.Image}
	status.History = slices.Insert(status.History, 0, configv1.UpdateHistory{
		State: configv1.PartialUpdate, Version: target.Version, Image: target.Image, StartedTime: metav1.Now().Rfc3339Copy(),
		Verified: true, AcceptedRisks: acceptedRisks,
	})
	status.AvailableUpdates = slices.DeleteFunc(status.AvailableUpdates, func(r configv1.Release) bool { return r.Image == target.Image })
	set(status, releaseAccepted, configv1.ConditionTrue, "PayloadLoaded",
		"Payload loaded version=\""+target.Version+"\" image=\""+target.Image+"\"")
	set(status, configv1.OperatorProgressing, configv1.ConditionTrue, "", "Working towards "+target.Version)
}

// complete completes an update that is in progress.
func complete(status *configv1.ClusterVersionStatus) {
	if len(status.History) == 0 || status.History[0].State != configv1.PartialUpdate {
		return
	}
	now := metav1.Now().Rfc3339Copy()
	status.History[0].State, status.History[0].CompletionTime = configv1.CompletedUpdate, &now
	set(status, configv1.OperatorProgressing, configv1.ConditionFalse, "", "Cluster version is "+status.History[0].Version)
}

func isUpgradeable(condition configv1.ClusterOperatorStatusCondition) bool {
	return condition.Type == configv1.OperatorUpgradeable
}

// repeat copies Upgradeable=False of ClusterOperators to ClusterVersion, as CVO does up to
// 4.22: the message of a single one, or each of several on its own line. Without one, it
// removes the condition.
func repeat(status *configv1.ClusterVersionStatus, operators []configv1.ClusterOperator) {
	var messages []string
	var reason string
	for _, operator := range operators {
		i := slices.IndexFunc(operator.Status.Conditions, isUpgradeable)
		if i < 0 || operator.Status.Conditions[i].Status != configv1.ConditionFalse {
			continue
		}
		reason = operator.Status.Conditions[i].Reason
		messages = append(messages, fmt.Sprintf("Cluster operator %s should not be upgraded between minor or major versions: %s", operator.Name,
			operator.Status.Conditions[i].Message))
	}
	switch len(messages) {
	case 0:
		status.Conditions = slices.DeleteFunc(status.Conditions, isUpgradeable)
	case 1:
		set(status, configv1.OperatorUpgradeable, configv1.ConditionFalse, reason, messages[0])
	default:
		set(status, configv1.OperatorUpgradeable, configv1.ConditionFalse, "ClusterOperatorsNotUpgradeable",
			"Multiple cluster operators should not be upgraded between minor or major versions:\n* "+strings.Join(messages, "\n* "))
	}
}
