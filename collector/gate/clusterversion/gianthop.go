package clusterversion

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

// The name of the finding about the span of an update, and its reasons.
var (
	NameGiantHop = finding.NewName("ClusterVersionGiantHop",
		"CVO's precondition ClusterVersionGiantHop: an update spans at most one minor version, and the only update to another major "+
			"version is from 4.y to 5.0. The finding has CVO's own reason. It concerns every update. The rule comes from the "+
			"Kubernetes API server, so the check applies it even if the CVO of the cluster does not have the precondition yet.")

	reasonOneHop = finding.NewReason("OneHop", finding.Explanation{
		Meaning: "The update does not skip a minor version.",
		Cause:   "The target is in the same or the next minor version.",
	})
	reasonNotNewer = finding.NewReason("NotNewer", finding.Explanation{
		Meaning: "A path contains an update whose target is not newer than the release before it.",
		Cause:   "The releases of the path are not in order.",
		Remedy:  "Name the releases in ascending order.",
	})
)

// GiantHop is the check ClusterVersionGiantHop.
func GiantHop() check.Check {
	return check.Check{
		Name: NameGiantHop, Kind: finding.SourceGate, NotHosted: "HostedClusterVersion compares the versions",
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(current(judgeGiantHop)),
	}
}

func judgeGiantHop(s situation) []finding.Finding {
	found := cvo.GiantHop(s.version, s.target())
	if found == nil {
		return []finding.Finding{finding.Pass(s.read, reasonOneHop, "from %s to %s is one hop", s.update.From, s.update.To)}
	}
	violation := *found
	notes := []string{"Some blockers of the later hops are reported only before each hop: check admin acks, Upgradeable, removed APIs, " +
		"kubelet versions and operator versions hop by hop."}
	if violation.Weight == cvo.Uncertain {
		violation.Weight = cvo.Blocking
		notes = append(notes, "Some releases of the CVO of this minor version do not check this yet.")
	}
	return []finding.Finding{violated(violation, notes...).
		Remedy("%s A forced update over several minor versions is neither tested nor supported.", hopsTo(s)).
		Do(finding.Targets())}
}

// hopsTo is the way to the target, one minor version at a time.
func hopsTo(s situation) string {
	const most = 10
	from, to := s.update.From, s.update.To
	if to.Major != from.Major || to.Minor-from.Minor > most {
		return "Update through the minor versions in between, and run the preflight before each hop."
	}
	var minors []string
	for minor := from.Minor + 1; minor <= to.Minor; minor++ {
		minors = append(minors, fmt.Sprintf("%d.%d", to.Major, minor))
	}
	return fmt.Sprintf("Update to %s, and run the preflight before each hop.", strings.Join(minors, ", then "))
}

// LaterGiantHop is [GiantHop] by the rules of the CVO of the release before the update, and
// rejects an update to a release that is not newer.
func LaterGiantHop() check.Check {
	later := GiantHop()
	later.Reads = nil
	later.Run = func(_ context.Context, s check.Subject) ([]finding.Finding, error) {
		return []finding.Finding{judgeLaterHop(s.Update)}, nil
	}
	return later
}

func judgeLaterHop(u update.Update) finding.Finding {
	if !u.To.GT(u.From) {
		return finding.Fail(reasonNotNewer, "the path leads from %s to %s, which is not newer", u.From, u.To)
	}
	before := &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{Desired: configv1.Release{Version: u.From.String()}}}
	found := cvo.GiantHop(before, u.To.String())
	if found == nil {
		return finding.Pass(gap.Proven("the versions of the two releases"), reasonOneHop, "from %s to %s is one hop", u.From, u.To)
	}
	found.Weight = cvo.Blocking
	return violated(*found).Remedy("%s", hopsTo(situation{update: u}))
}

var (
	nameClusterVersionUpdating = finding.NewName("ClusterVersionUpdating",
		"Blocks updates that leave the minor version in progress while an update is in progress (enhancement eus-upgrades-mvp: 4.6 to "+
			"4.7 to 4.8): the operators of the new minor version, which know what blocks the next one, are not running yet. Another "+
			"target within that minor version is a warning, since it may fix a stuck update. A retargeted update is in progress until "+
			"the last one is complete.")

	reasonNotUpdating = finding.NewReason("NotUpdating", finding.Explanation{
		Meaning: "No update is in progress.",
		Cause:   "The condition Progressing of ClusterVersion is not True, and the last update in its history is complete.",
	})
	reasonUpdateInProgress = finding.NewReason("UpdateInProgress", finding.Explanation{
		Meaning: "An update is in progress, and the target is that update or in another minor version.",
		Cause:   "The update has not completed yet, or is stuck.",
		Remedy:  "Let the update complete: `oc adm upgrade`.",
	})
	reasonPatchVersionUpdateInProgress = finding.NewReason("PatchVersionUpdateInProgress", finding.Explanation{
		Meaning: "A patch update is in progress, and the requested update would retarget it.",
		Cause:   "The update has not completed yet, or is stuck.",
		Remedy:  "Let the update complete: `oc adm upgrade`. If it is stuck, retarget it to a release that contains the fix.",
	})
	reasonMinorVersionClusterUpdateInProgress = finding.NewReason("MinorVersionClusterUpdateInProgress", finding.Explanation{
		Meaning: "An update to another minor version is in progress, and the requested update would retarget it.",
		Cause:   "The update has not completed yet, or is stuck.",
		Remedy:  "Let the update complete: `oc adm upgrade`. If it is stuck, retarget it to a release that contains the fix.",
	})
	reasonMajorVersionClusterUpdateInProgress = finding.NewReason("MajorVersionClusterUpdateInProgress", finding.Explanation{
		Meaning: "An update to another major version is in progress, and the requested update would retarget it.",
		Cause:   "The update has not completed yet, or is stuck.",
		Remedy:  "Let the update complete: `oc adm upgrade`. If it is stuck, retarget it to a release that contains the fix.",
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
	progress := fmt.Sprintf("%s is in progress (%s)", inProgress(s.version.Status.History, completed, s.update.From.String()),
		cmp.Or(progressing.Message, "status.history reports it as Partial"))
	status := finding.Read("oc adm upgrade")
	switch {
	case s.update.LeavesMinor():
		return finding.Fail(reasonUpdateInProgress,
			"%s, and %s would leave %s before the operators of %s can report what blocks that; updates within %s are not blocked",
			progress, s.target(), s.minor(), s.update.From, s.minor()).
			Remedy("Let the update complete, then run the preflight again.").Do(status)
	case s.update.Kind() == update.Same:
		return finding.Warn(reasonUpdateInProgress, "%s, and leads to the target", progress).
			Remedy("Check the progress of the update.").Do(status)
	}
	return finding.Warn(retargetReason(completed, s.update), "%s, and would be retargeted to %s; this does not block updates within %s",
		progress, s.target(), s.minor()).
		Remedy("Let the update complete. If it is stuck and %s contains the fix, the update to %s retargets it.", s.target(), s.target()).
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

var (
	nameTracked = finding.NewName("ClusterVersionTracked",
		"Warns of a ClusterVersion that Argo CD tracks. It is part of the check ClusterVersionRequest and concerns every update.")
	nameForce = finding.NewName("ClusterVersionForce",
		"Warns of force: true left over in spec.desiredUpdate of ClusterVersion. It is part of the check ClusterVersionRequest and "+
			"concerns every update.")

	reasonTrackedByArgoCD = finding.NewReason("TrackedByArgoCD", finding.Explanation{
		Meaning: "An Application of Argo CD tracks ClusterVersion. With automatic sync, a spec.desiredUpdate in Git starts an update " +
			"when it is synced; with self-heal, it replaces the update that `oc adm upgrade` requested.",
		Cause: "Argo CD applied ClusterVersion: its annotation argocd.argoproj.io/tracking-id names it, or Argo CD applied its " +
			"instance label. Another object's annotation, and a label that Argo CD did not apply, do not count.",
		Remedy: "Change spec.desiredUpdate in Git only after the preflight is Ready, or make the Application ignore it: " +
			"spec.ignoreDifferences with the pointer /spec/desiredUpdate, and the sync option RespectIgnoreDifferences=true.",
		Command: "oc get clusterversion version --show-managed-fields -o yaml",
	})
	reasonForceStays = finding.NewReason("ForceStays", finding.Explanation{
		Meaning: "spec.desiredUpdate of ClusterVersion contains force: true. A program that changes only the version, as a " +
			"ClusterCurator does, forces the next update: CVO verifies neither its signature nor the preconditions.",
		Cause:   "An administrator or a ClusterCurator forced an update, and force was not removed.",
		Remedy:  "Remove force once no update is in progress.",
		Command: `oc patch clusterversion version --type json --patch '[{"op":"remove","path":"/spec/desiredUpdate/force"}]'`,
	})
)

// How Argo CD marks the objects of an Application (util/argo/resource_tracking.go): by an annotation
// APPLICATION:GROUP/KIND:NAMESPACE/NAME, or by a label. The name of the latter is an option, by default one
// that others use as well, and the documentation recommends one of its own domain.
const (
	trackingAnnotation = "argocd.argoproj.io/tracking-id"
	trackingLabel      = "argocd.argoproj.io/instance"
	instanceLabel      = "app.kubernetes.io/instance"
	// argoManager begins the names by which Argo CD applies objects: argocd-controller on the server
	// side, argocd-application-controller otherwise.
	argoManager = "argocd-"
)

// application is the Application of Argo CD that tracks an object of a kind, GROUP/KIND; empty for none.
func application(object metav1.Object, kind string) string {
	if id := strings.Split(object.GetAnnotations()[trackingAnnotation], ":"); len(id) == 3 {
		_, name, _ := strings.Cut(id[2], "/")
		if id[1] == kind && name == object.GetName() {
			return id[0]
		}
	}
	labels := object.GetLabels()
	if name := labels[trackingLabel]; name != "" {
		return name
	}
	applied := slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return strings.HasPrefix(entry.Manager, argoManager)
	})
	if applied {
		return labels[instanceLabel]
	}
	return ""
}

func (s situation) writers() []finding.Finding {
	var findings []finding.Finding
	if name := application(s.version, "config.openshift.io/ClusterVersion"); name != "" {
		findings = append(findings, finding.Warn(reasonTrackedByArgoCD,
			"the Application %s of Argo CD tracks ClusterVersion: with automatic sync, a spec.desiredUpdate in Git starts an update "+
				"when it is synced, and with self-heal it replaces the update that \"oc adm upgrade\" requested",
			cmp.Or(words.External(name), "without a name")).
			Named(nameTracked).Do(finding.Read("oc get clusterversion version --show-managed-fields -o yaml")))
	}
	if request := s.version.Spec.DesiredUpdate; request != nil && request.Force {
		findings = append(findings, finding.Warn(reasonForceStays,
			"spec.desiredUpdate of ClusterVersion contains force: true, so a program that changes only its version, such as "+
				"ClusterCurator, requests the next update without verifying its signature and the preconditions").
			Named(nameForce).Do(finding.Change(
			`oc patch clusterversion version --type json --patch [{"op":"remove","path":"/spec/desiredUpdate/force"}]`)))
	}
	return findings
}
