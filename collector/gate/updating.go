package gate

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Updating is the gate that is shut while an update is in progress: the checks
// for the next minor version are those of operators that are not there yet
// (enhancement eus-upgrades-mvp: 4.6 to 4.7 to 4.8). Another target within the
// minor version on the way is allowed, since it may be what gets a stuck update
// going. An update that was given up for the next is in progress until the last
// one is complete.
func Updating(cluster *snapshot.Cluster, u update.Update) check.Check {
	return check.Check{
		Title: "ClusterVersionUpdating", Kind: preflight.SourceGate, Update: u,
		Look: onClusterVersion(cluster, u, fresh(judgeUpdating)),
	}
}

func judgeUpdating(s situation) []preflight.Finding {
	progressing := s.condition(configv1.OperatorProgressing)
	history := s.version.Status.History
	partial := len(history) > 0 && history[0].State == configv1.PartialUpdate
	switch {
	case progressing.Status == configv1.ConditionTrue || partial:
		return []preflight.Finding{s.updating(progressing)}
	case progressing.Status == configv1.ConditionFalse || len(history) > 0:
		return []preflight.Finding{{
			Outcome: preflight.Pass, Reason: "NotUpdating",
			Message: fmt.Sprintf("no update is in progress: the cluster has completed %s", s.move.From),
		}}
	}
	return []preflight.Finding{{
		Outcome: preflight.Unknown, Reason: "NotReported",
		Message:     "ClusterVersion has neither the condition Progressing nor a history, so nobody can tell whether an update is in progress",
		Remediation: "See whether CVO is running: oc -n openshift-cluster-version get pods",
	}}
}

// updating is the finding while an update is in progress.
func (s situation) updating(progressing configv1.ClusterOperatorStatusCondition) preflight.Finding {
	completed := either(cvo.CompletedVersion(s.version.Status), "nothing")
	way := fmt.Sprintf("the update from %s to %s is in progress (%s)", completed, s.move.From,
		either(progressing.Message, "status.history has it as Partial"))
	if s.move.LeavesMinor() {
		return preflight.Finding{
			Outcome: preflight.Fail, Reason: "UpdateInProgress",
			Message: fmt.Sprintf("%s, and %s would leave %s before what %s has to say about it is in place; updates within %s are not blocked",
				way, s.target(), s.minor(), s.move.From, s.minor()),
			Remediation: "Let it finish, and see how far it is: oc adm upgrade. Then run the preflight again. Accepting risks does not get past it, only --force does.",
		}
	}
	finding := preflight.Finding{
		Outcome: preflight.Warn, Reason: "PatchVersionUpdateInProgress",
		Message: fmt.Sprintf("%s, and would be retargeted to %s; that does not block updates within %s", way, s.target(), s.minor()),
		Remediation: fmt.Sprintf("Rather let it finish: oc adm upgrade. Where it is stuck and %s has the remedy: oc adm upgrade --allow-upgrade-with-warnings --to %s",
			s.target(), s.target()),
	}
	switch began, _ := update.Parse(completed, s.move.From.String()); began.Kind() {
	case update.Minor, update.SkipLevel:
		finding.Reason = "MinorVersionClusterUpdateInProgress"
	case update.Major:
		finding.Reason = "MajorVersionClusterUpdateInProgress"
	case update.Same, update.Patch, update.Rollback:
	}
	if s.move.Kind() == update.Same {
		finding.Reason = "UpdateInProgress"
		finding.Message = way + ", and it is the one that is asked about"
		finding.Remediation = "See how far it is: oc adm upgrade"
	}
	return finding
}
