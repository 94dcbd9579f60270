package gate

import (
	"regexp"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
)

const (
	ReasonResourceDeletesInProgress finding.Reason = "ResourceDeletesInProgress"
	ReasonEvaluationFailed          finding.Reason = "EvaluationFailed"
	ReasonNothingDeleted            finding.Reason = "NothingDeleted"
)

// Deletion is the gate that is shut while CVO deletes what a release no longer
// has. CVO keeps the list to itself: outside it can be read only in a condition
// of ClusterVersion, which up to 4.22 is UpgradeableDeletesInProgress and since
// is a part of Upgradeable.
func Deletion() check.Check {
	return check.Check{
		Name: "ResourceDeletionInProgress", Kind: finding.SourceGate,
		Reads: clusterVersionReads(),
		Run:   onClusterVersion(fresh(judgeDeletion)),
	}
}

// deletions is what all releases of CVO since 4.9 say of it.
const deletions = `not allowed while resource deletions are in progress; resources=([^\n]*)`

func judgeDeletion(s situation) []finding.Finding {
	if !s.move.LeavesMinor() {
		return s.notLeaving("a deletion in progress")
	}
	own, all := s.condition("UpgradeableDeletesInProgress"), s.condition(configv1.OperatorUpgradeable)
	resources := regexp.MustCompile(deletions).FindStringSubmatch(own.Message + "\n" + all.Message)
	switch {
	case own.Status == configv1.ConditionFalse || (all.Status == configv1.ConditionFalse && resources != nil):
		f := finding.Fail(ReasonResourceDeletesInProgress,
			"CVO is still deleting what the release no longer has, and until then the cluster cannot leave %s: %s", s.minor(), either(own.Message, all.Message)).
			Remedy("Wait. Where it does not end, see what keeps the resources that are named, most likely a finalizer: oc get RESOURCE NAME -o yaml. Accepting risks does not get past it, only --force does.")
		if resources != nil {
			f.Evidence = map[string]string{"resources": resources[1]}
		}
		return []finding.Finding{f}
	case all.Status == configv1.ConditionUnknown:
		return []finding.Finding{finding.Unknown(ReasonEvaluationFailed,
			"CVO tells of deletions in progress in the condition Upgradeable of ClusterVersion, and that is Unknown").
			Remedy("See the finding ClusterVersionUpgradeable for the cause.")}
	}
	return []finding.Finding{finding.Pass(ReasonNothingDeleted, "ClusterVersion tells of no deletion in progress")}
}
