package clusterversion

import (
	"cmp"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
)

var (
	nameClusterVersionUpdating = finding.NewName("ClusterVersionUpdating",
		"The gate that is closed while an update is in progress (enhancement eus-upgrades-mvp: 4.6 to 4.7 to "+
			"4.8): operators of the new minor version, which know what blocks the next one, do not run yet. It blocks "+
			"updates that leave the minor version in progress; another target within it is a warning, since it may "+
			"fix a stuck update. A retargeted update is in progress until the last one is complete.")

	reasonNotUpdating = finding.NewReason("NotUpdating", finding.Explanation{
		Meaning: "Reported when no update is in progress.",
		Cause:   "The condition Progressing of ClusterVersion is not True, and the last update in its history is complete.",
	})
	reasonUpdateInProgress = finding.NewReason("UpdateInProgress", finding.Explanation{
		Meaning: "Reported while an update is in progress, and the target is in another minor version or is that update.",
		Cause:   "The update has not completed yet, or is stuck.",
		Remedy:  "Let the update complete: `oc adm upgrade`.",
	})
	reasonPatchVersionUpdateInProgress = finding.NewReason("PatchVersionUpdateInProgress", finding.Explanation{
		Meaning: "Reported while a patch update is in progress, which the update would retarget.",
		Cause:   "The update has not completed yet, or is stuck.",
		Remedy:  "Let the update complete: `oc adm upgrade`. One that is stuck is retargeted by an update to a release that has the fix.",
	})
	reasonMinorVersionClusterUpdateInProgress = finding.NewReason("MinorVersionClusterUpdateInProgress", finding.Explanation{
		Meaning: "Reported while an update to another minor version is in progress, which the update would retarget.",
		Cause:   "The update has not completed yet, or is stuck.",
		Remedy:  "Let the update complete: `oc adm upgrade`. One that is stuck is retargeted by an update to a release that has the fix.",
	})
	reasonMajorVersionClusterUpdateInProgress = finding.NewReason("MajorVersionClusterUpdateInProgress", finding.Explanation{
		Meaning: "Reported while an update to another major version is in progress, which the update would retarget.",
		Cause:   "The update has not completed yet, or is stuck.",
		Remedy:  "Let the update complete: `oc adm upgrade`. One that is stuck is retargeted by an update to a release that has the fix.",
	})
)

// Updating is the check ClusterVersionUpdating.
func Updating() check.Check {
	return check.Check{
		Name: nameClusterVersionUpdating, Kind: finding.SourceGate,
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(current(judgeUpdating)),
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
		return []finding.Finding{finding.Pass(s.read, reasonNotUpdating, "no update is in progress: the cluster has completed %s", s.update.From)}
	}
	return []finding.Finding{finding.Unknown(reasonNotReported,
		"ClusterVersion has neither the condition Progressing nor a history, so it is unknown whether an update is in progress").
		Remedy("Check that CVO is running.").
		Do(check.CVOPods())}
}

func (s situation) updating(progressing configv1.ClusterOperatorStatusCondition) finding.Finding {
	completed := cvo.CompletedVersion(s.version.Status)
	progress := fmt.Sprintf("%s is in progress (%s)", inProgress(s.version.Status.History, completed, s.update.From.String()), cmp.Or(progressing.Message, "it is Partial in status.history"))
	status := finding.Read("oc adm upgrade")
	switch {
	case s.update.LeavesMinor():
		return finding.Fail(reasonUpdateInProgress,
			"%s, and %s would leave %s before the operators of %s can report what blocks that; updates within %s are not blocked",
			progress, s.target(), s.minor(), s.update.From, s.minor()).
			Remedy("Let the update complete, then run the preflight again.").Do(status)
	case s.update.Kind() == update.Same:
		return finding.Warn(reasonUpdateInProgress, "%s, and leads to the target", progress).
			Remedy("Check how far the update is.").Do(status)
	}
	return finding.Warn(retargetReason(completed, s.update), "%s, and would be retargeted to %s; this does not block updates within %s", progress, s.target(), s.minor()).
		Remedy("Let the update complete. If it is stuck and %s has the fix, the update to %s retargets it.", s.target(), s.target()).
		Do(status)
}

// inProgress names the update from the last completed release to another one.
func inProgress(history []configv1.UpdateHistory, completed, desired string) string {
	done := slices.ContainsFunc(history, func(past configv1.UpdateHistory) bool { return past.State == configv1.CompletedUpdate })
	switch {
	case len(history) > 0 && !done:
		return "the installation of " + desired
	case completed == desired:
		return "the update to another image of " + desired
	}
	return fmt.Sprintf("the update from %s to %s", cmp.Or(completed, "an unknown release"), desired)
}

func retargetReason(completed string, next update.Update) finding.Reason {
	inProgress, err := update.Parse(completed, next.From.String())
	if err != nil {
		return reasonPatchVersionUpdateInProgress
	}
	switch inProgress.Kind() {
	case update.Minor, update.SkipLevel:
		return reasonMinorVersionClusterUpdateInProgress
	case update.Major:
		return reasonMajorVersionClusterUpdateInProgress
	case update.Same, update.Patch, update.Rollback:
	}
	return reasonPatchVersionUpdateInProgress
}
