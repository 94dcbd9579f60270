package gate

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
)

const (
	ReasonNotUpdating                  finding.Reason = "NotUpdating"
	ReasonNotReported                  finding.Reason = "NotReported"
	ReasonUpdateInProgress             finding.Reason = "UpdateInProgress"
	ReasonPatchVersionUpdateInProgress finding.Reason = "PatchVersionUpdateInProgress"
)

// Updating is the gate that is shut while an update is in progress: the checks
// for the next minor version are those of operators that are not there yet
// (enhancement eus-upgrades-mvp: 4.6 to 4.7 to 4.8). Another target within the
// minor version on the way is allowed, since it may be what gets a stuck update
// going. An update that was given up for the next is in progress until the last
// one is complete.
func Updating() check.Check {
	return check.Check{
		Name: "ClusterVersionUpdating", Kind: finding.SourceGate,
		Reads: clusterVersionReads(),
		Run:   onClusterVersion(fresh(judgeUpdating)),
	}
}

func judgeUpdating(s situation) []finding.Finding {
	progressing := s.condition(configv1.OperatorProgressing)
	history := s.version.Status.History
	partial := len(history) > 0 && history[0].State == configv1.PartialUpdate
	switch {
	case progressing.Status == configv1.ConditionTrue || partial:
		return []finding.Finding{s.updating(progressing)}
	case progressing.Status == configv1.ConditionFalse || len(history) > 0:
		return []finding.Finding{finding.Pass(ReasonNotUpdating, "no update is in progress: the cluster has completed %s", s.move.From)}
	}
	return []finding.Finding{finding.Unknown(ReasonNotReported,
		"ClusterVersion has neither the condition Progressing nor a history, so nobody can tell whether an update is in progress").
		Remedy("See whether CVO is running: oc -n openshift-cluster-version get pods")}
}

// updating is the finding while an update is in progress.
func (s situation) updating(progressing configv1.ClusterOperatorStatusCondition) finding.Finding {
	completed := either(cvo.CompletedVersion(s.version.Status), "nothing")
	way := fmt.Sprintf("the update from %s to %s is in progress (%s)", completed, s.move.From,
		either(progressing.Message, "status.history has it as Partial"))
	if s.move.LeavesMinor() {
		return finding.Fail(ReasonUpdateInProgress,
			"%s, and %s would leave %s before what %s has to say about it is in place; updates within %s are not blocked", way, s.target(), s.minor(), s.move.From, s.minor()).
			Remedy("Let it finish, and see how far it is: oc adm upgrade. Then run the preflight again. Accepting risks does not get past it, only --force does.")
	}
	f := finding.Warn(ReasonPatchVersionUpdateInProgress,
		"%s, and would be retargeted to %s; that does not block updates within %s", way, s.target(), s.minor()).
		Remedy("Rather let it finish: oc adm upgrade. Where it is stuck and %s has the remedy: oc adm upgrade --allow-upgrade-with-warnings --to %s", s.target(), s.target())
	switch began, _ := update.Parse(completed, s.move.From.String()); began.Kind() {
	case update.Minor, update.SkipLevel:
		f.Reason = "MinorVersionClusterUpdateInProgress"
	case update.Major:
		f.Reason = "MajorVersionClusterUpdateInProgress"
	case update.Same, update.Patch, update.Rollback:
	}
	if s.move.Kind() == update.Same {
		f.Reason = "UpdateInProgress"
		f.Message = way + ", and it is the one that is asked about"
		f.Remediation = "See how far it is: oc adm upgrade"
	}
	return f
}
