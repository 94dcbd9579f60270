package clusterversion

import (
	"cmp"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The name of the finding about the request, and its reasons.
var (
	requestName = finding.NewName("ClusterVersionRequest",
		"CVO's validation of a request (lib/validation), before there is one: whether the ClusterVersion is "+
			"invalid already, and whether CVO knows the target. By version alone CVO accepts only a target that "+
			"is exactly one of status.availableUpdates; a conditional update needs its image. A verdict that is Ready ends "+
			"with the command that requests the target. It concerns every "+
			"update, and warns unless the ClusterVersion is invalid; that finding has CVO's own reason. For all checks "+
			"of the ClusterVersion it reports a status that is older than the spec.")

	reasonNothingAsked = finding.NewReason("NothingAsked", finding.Explanation{
		Meaning: "Reported when the target is the release that the cluster runs, or is being updated to.",
		Cause:   "Status.desired of ClusterVersion is the target.",
	})
	reasonAvailableUpdate = finding.NewReason("AvailableUpdate", finding.Explanation{
		Meaning: "Reported when CVO accepts a request for the target by its version alone.",
		Cause:   "The target is exactly one of status.availableUpdates of ClusterVersion.",
	})
	ReasonAmbiguousVersion = finding.NewReason("AmbiguousVersion", finding.Explanation{
		Meaning: "Reported when several available updates have the version of the target, so that CVO refuses a request by version alone.",
		Cause:   "The update service lists several images with that version.",
		Remedy:  "Find out which of the images is meant, and run the preflight for it by its pull spec.",
		Command: listUpdates,
	})
	reasonConditionalUpdateOnly = finding.NewReason("ConditionalUpdateOnly", finding.Explanation{
		Meaning: "Reported when the target is a conditional update, which CVO accepts only by image.",
		Cause:   "The update service knows risks of the target.",
		Remedy:  "Read the risks of the target, and accept those that the cluster can take, by their names.",
		Command: "oc adm upgrade --include-not-recommended",
	})
	reasonHistoryOnly = finding.NewReason("HistoryOnly", finding.Explanation{
		Meaning: "Reported when the target is only in status.history of ClusterVersion. CVO accepts a request by version " +
			"alone, and stays at the present release.",
		Cause:   "The cluster ran the release before, and the update service does not list it.",
		Remedy:  "Choose an update that the cluster knows, or find out why the update service no longer lists this one.",
		Command: listUpdates,
	})
	ReasonUnknownUpdate = finding.NewReason("UnknownUpdate", finding.Explanation{
		Meaning: "Reported when the cluster does not know the target, so that it is unknown whether the update is " +
			"recommended or supported.",
		Cause:  "The channel of the cluster does not have the target, or the update service could not be reached.",
		Remedy: "Choose an update that the cluster knows, or find out why the update service does not list this one.",
	})
	reasonRequestFailed = finding.NewReason("RequestFailed", finding.Explanation{
		Meaning: "Reported when CVO cannot carry out the request for the target, which was made before: it does not pass. It warns where a precondition refuses, " +
			"each of which has a check of its own, and where CVO cannot retrieve or verify the release, which the preflight does itself.",
		Cause:   "The condition ReleaseAccepted of ClusterVersion is False and names the version or the image of the target.",
		Remedy:  "Fix what the message names, or take the request back: `oc adm upgrade --clear`.",
		Command: "oc adm upgrade --clear",
	})
	reasonInvalidClusterVersion = finding.NewReason("InvalidClusterVersion", finding.Explanation{
		Meaning: "Reported when ClusterVersion is invalid, so that `oc adm upgrade` refuses to change it.",
		Cause:   "A field of its spec, such as an update that is not available.",
		Remedy:  "Fix the field that the message names: `oc edit clusterversion version`.",
	})
)

const (
	// maxImages bounds the images in a message.
	maxImages = 10
	// listUpdates prints the updates with their images.
	listUpdates = "oc get clusterversion version -o jsonpath={.status.availableUpdates}"
	// forceIsNotEnough limits the bypasses of an invalid ClusterVersion.
	forceIsNotEnough = `Neither accepted risks nor force bypass this in "oc adm upgrade", only --allow-upgrade-with-warnings does.`
)

// RequestValid is the check ClusterVersionRequest.
func RequestValid() check.Check {
	return check.Check{
		Name: requestName, Kind: finding.SourceGate, NotHosted: "HostedClusterRequest and HostedClusterVersion judge the request",
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(judgeRequest),
	}
}

func judgeRequest(s situation) []finding.Finding {
	if stale, ok := s.stale(); ok {
		return append([]finding.Finding{stale}, s.writers()...)
	}
	findings := append([]finding.Finding{s.request()}, s.writers()...)
	if failed := cvo.Failed(s.version, s.target(), ""); failed != nil {
		findings = append(findings, failedRequest(s.target(), failed))
	}
	if invalid := s.condition("Invalid"); invalid.Status != "" && invalid.Status != configv1.ConditionFalse {
		findings = append(findings, invalidClusterVersion(invalid))
	}
	if implicit, ok := implicitCapabilities(s.condition("ImplicitlyEnabledCapabilities")); ok {
		findings = append(findings, implicit)
	}
	return findings
}

// failedRequest is the finding of a target with which CVO fails at present. The preconditions have checks
// of their own, and the preflight may be one of them, so these only warn. So does the retrieval, which a run
// repeats itself: it verifies and reads the release.
func failedRequest(target string, condition *configv1.ClusterOperatorStatusCondition) finding.Finding {
	outcome := preflight.Unknown
	if condition.Reason == "PreconditionChecks" || condition.Reason == "RetrievePayload" {
		outcome = preflight.Warn
	}
	return finding.New(outcome, reasonRequestFailed, "CVO fails with the request for %s at present%s, and retries with the same result until the cause is gone: %s",
		target, words.Aside(words.External(condition.Reason)), cmp.Or(words.External(condition.Message), "no message")).
		Do(finding.Change("oc adm upgrade --clear"))
}

// invalidClusterVersion is the finding of a ClusterVersion that CVO calls invalid.
// CVO itself would accept a new request, but oc refuses to make one.
func invalidClusterVersion(condition configv1.ClusterOperatorStatusCondition) finding.Finding {
	outcome := preflight.Fail
	if condition.Status == configv1.ConditionUnknown {
		outcome = preflight.Unknown
	}
	f := finding.New(outcome, cmp.Or(finding.ReportedReason(condition.Reason), reasonInvalidClusterVersion),
		"%s", cmp.Or(condition.Message, "ClusterVersion is invalid, without a message"))
	if strings.Contains(condition.Message, "spec.desiredUpdate") {
		return f.Remedy("Remove the requested update, which is not available. " + forceIsNotEnough).Do(finding.Change("oc adm upgrade --clear"))
	}
	return f.Remedy("Fix the field that the message names. " + forceIsNotEnough).Do(finding.Change("oc edit clusterversion version"))
}

// request is how CVO knows the target.
func (s situation) request() finding.Finding {
	target, status := s.target(), s.version.Status
	images := imagesOf(status.AvailableUpdates, target)
	if s.update.Kind() == update.Same && len(images) == 0 {
		return nothingRequested(s)
	}
	switch len(images) {
	case 0:
		return s.notAvailable()
	case 1:
		return finding.Pass(s.read, reasonAvailableUpdate, "%s is an available update, which CVO accepts by its version alone", target)
	}
	return finding.Warn(ReasonAmbiguousVersion,
		"%d available updates have the version %s, so CVO refuses a request by version alone: %s", len(images), target, words.List(images, maxImages)).
		Do(finding.Read(listUpdates))
}

// nothingRequested is the finding of a target that is the release of the cluster, or that of the
// update in progress.
func nothingRequested(s situation) finding.Finding {
	if cvo.CompletedVersion(s.version.Status) != s.target() {
		return finding.Pass(s.read, reasonNothingAsked, "%s is already in status.desired of ClusterVersion", s.target())
	}
	return finding.Warn(reasonNothingAsked, "the cluster runs %s already, so a request by this version changes nothing", s.target()).
		Remedy("Choose another update.").Do(finding.Targets())
}

// notAvailable is the finding of a target that CVO does not accept by its version alone.
func (s situation) notAvailable() finding.Finding {
	target, status := s.target(), s.version.Status
	for _, conditional := range status.ConditionalUpdates {
		if conditional.Release.Version == target {
			return finding.Warn(reasonConditionalUpdateOnly,
				"%s is a conditional update: CVO refuses a request by version alone", target).
				Do(finding.Read("oc adm upgrade --include-not-recommended"))
		}
	}
	for _, past := range status.History {
		if past.Version == target {
			return finding.Warn(reasonHistoryOnly,
				"%s is only in status.history of ClusterVersion: CVO accepts a request by version alone, and silently stays at %s", target, s.update.From).
				Do(finding.Read(listUpdates))
		}
	}
	from := s.update.From.String() + ", which has no channel"
	if channel := s.version.Spec.Channel; channel != "" {
		from = fmt.Sprintf("%s in channel %q", s.update.From, channel)
	}
	return finding.Warn(ReasonUnknownUpdate,
		"%s is neither an available nor a conditional update from %s, so it is unknown whether it is recommended or supported, and which risks it has", target, from).
		Do(finding.Targets())
}

func imagesOf(releases []configv1.Release, version string) []string {
	var images []string
	for _, release := range releases {
		if release.Version == version && release.Image != "" {
			images = append(images, release.Image)
		}
	}
	return images
}

var (
	nameClusterVersionRollback = finding.NewName("ClusterVersionRollback",
		"CVO's precondition ClusterVersionRollback: a release before the present one cannot be a target, except "+
			"the cluster's previous release within the same minor version, which some releases of CVO allow. The "+
			"finding has CVO's own reason. It concerns every update.")

	reasonPreviousRelease = finding.NewReason("PreviousRelease", finding.Explanation{
		Meaning: "Reported when the target is the previous release of the cluster, to which its CVO allows a rollback.",
		Cause:   "The target is an earlier patch release of the same minor version.",
		Remedy:  "Prefer a later release with the fix.",
	})
	reasonNotBefore = finding.NewReason("NotBefore", finding.Explanation{
		Meaning: "Reported when the update is not a rollback.",
		Cause:   "The target is not earlier than status.desired of ClusterVersion.",
	})
)

// Rollback is the check ClusterVersionRollback.
func Rollback() check.Check {
	return check.Check{
		Name: nameClusterVersionRollback, Kind: finding.SourceGate, NotHosted: "HostedClusterVersion compares the versions",
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(current(judgeRollback)),
	}
}

func judgeRollback(s situation) []finding.Finding {
	violation := cvo.Rollback(s.version, s.target())
	switch {
	case violation != nil:
		return []finding.Finding{violated(*violation).
			Remedy("Choose a release that is not before %s. A forced rollback is neither tested nor supported.", s.update.From).
			Do(finding.Targets())}
	case s.update.Kind() == update.Rollback:
		return []finding.Finding{finding.Warn(reasonPreviousRelease,
			"%s is the cluster's previous release; a rollback from %s reverts the fixes made since", s.target(), s.update.From).
			Do(finding.Targets())}
	}
	return []finding.Finding{finding.Pass(s.read, reasonNotBefore, "%s is not before %s, the version in status.desired of ClusterVersion", s.target(), s.update.From)}
}
