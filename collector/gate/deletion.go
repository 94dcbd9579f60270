package gate

import (
	"fmt"
	"regexp"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Deletion is the gate that is shut while CVO deletes what a release no longer
// has. CVO keeps the list to itself: outside it can be read only in a condition
// of ClusterVersion, which up to 4.22 is UpgradeableDeletesInProgress and since
// is a part of Upgradeable.
func Deletion(cluster *snapshot.Cluster, u update.Update) check.Check {
	return check.Check{
		Title: "ResourceDeletionInProgress", Kind: preflight.SourceGate, Update: u,
		Look: onClusterVersion(cluster, u, fresh(judgeDeletion)),
	}
}

// deletions is what all releases of CVO since 4.9 say of it.
const deletions = `not allowed while resource deletions are in progress; resources=([^\n]*)`

func judgeDeletion(s situation) []preflight.Finding {
	if !s.move.LeavesMinor() {
		return s.notLeaving("a deletion in progress")
	}
	own, all := s.condition("UpgradeableDeletesInProgress"), s.condition(configv1.OperatorUpgradeable)
	resources := regexp.MustCompile(deletions).FindStringSubmatch(own.Message + "\n" + all.Message)
	switch {
	case own.Status == configv1.ConditionFalse || (all.Status == configv1.ConditionFalse && resources != nil):
		finding := preflight.Finding{
			Outcome: preflight.Fail, Reason: "ResourceDeletesInProgress",
			Message: fmt.Sprintf("CVO is still deleting what the release no longer has, and until then the cluster cannot leave %s: %s",
				s.minor(), either(own.Message, all.Message)),
			Remediation: "Wait. Where it does not end, see what keeps the resources that are named, most likely a finalizer: oc get RESOURCE NAME -o yaml. Accepting risks does not get past it, only --force does.",
		}
		if resources != nil {
			finding.Evidence = map[string]string{"resources": resources[1]}
		}
		return []preflight.Finding{finding}
	case all.Status == configv1.ConditionUnknown:
		return []preflight.Finding{{
			Outcome: preflight.Unknown, Reason: "EvaluationFailed",
			Message:     "CVO tells of deletions in progress in the condition Upgradeable of ClusterVersion, and that is Unknown",
			Remediation: "See the finding ClusterVersionUpgradeable for the cause.",
		}}
	}
	return []preflight.Finding{{
		Outcome: preflight.Pass, Reason: "NothingDeleted",
		Message: "ClusterVersion tells of no deletion in progress",
	}}
}
