package clusterversion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	nameFailing = finding.NewName("Failing",
		"The condition Failing of ClusterVersion: CVO cannot reconcile the current release. The finding has CVO's own reason. It "+
			"concerns every update. CVO still accepts an update of such a cluster; `oc adm upgrade` rejects it. The finding may be "+
			"accepted by name, as with `oc adm upgrade recommend`, since the target may contain the fix. While an update is in "+
			"progress, a different target in the same minor version is only a warning, because it is most likely meant as the fix.")

	reasonAsExpected = finding.NewReason("AsExpected", finding.Explanation{
		Meaning: "CVO reconciles the current release without failing.",
		Cause:   "The condition Failing of ClusterVersion is False.",
	})
	reasonFailing = finding.NewReason("Failing", finding.Explanation{
		Meaning: "CVO fails to reconcile the current release and gives no reason of its own.",
		Cause:   "The condition Failing of ClusterVersion is True.",
		Remedy:  "Fix the cause in the message: `oc adm upgrade`.",
	})
)

// Failing is the check Failing.
func Failing() check.Check {
	return check.Check{
		Name: nameFailing, Kind: finding.SourceRisk,
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(current(judgeFailing)),
	}
}

func judgeFailing(s situation) []finding.Finding {
	condition := s.condition("Failing")
	switch condition.Status {
	case configv1.ConditionFalse:
		return []finding.Finding{finding.Pass(s.read, reasonAsExpected, "CVO reconciles %s without failing", s.update.From)}
	case configv1.ConditionTrue:
		outcome := preflight.Fail
		if s.condition(configv1.OperatorProgressing).Status == configv1.ConditionTrue && !s.update.LeavesMinor() {
			outcome = preflight.Warn
		}
		return []finding.Finding{finding.New(outcome, cmp.Or(finding.ReportedReason(condition.Reason), reasonFailing),
			"CVO fails to reconcile %s: %s", s.update.From, cmp.Or(condition.Message, "no message")).
			Remedy("Fix the cause in the message. If the target contains the fix, accept the risk.").
			Do(finding.Read("oc adm upgrade"), finding.Accept("Failing"))}
	case configv1.ConditionUnknown:
	}
	return []finding.Finding{finding.Unknown(cmp.Or(finding.ReportedReason(condition.Reason), reasonNotReported),
		"the condition Failing of ClusterVersion is %s: %s", orAbsent(condition.Status), cmp.Or(condition.Message, "it is unknown "+
			"whether CVO fails")).
		Remedy("Check that CVO is running, or accept the risk.").
		Do(check.CVOPods(), finding.Accept("Failing"))}
}

var (
	nameCannotRetrieveUpdates = finding.NewName("CannotRetrieveUpdates",
		"The condition RetrievedUpdates of ClusterVersion: whether the updates and risks that the cluster knows are current. If not, "+
			"risks of the update may be unknown; the finding has CVO's own reason. It concerns every update. A disconnected cluster "+
			"may never retrieve them, so the finding may be accepted by name, as with `oc adm upgrade recommend`.")

	reasonRetrieved = finding.NewReason("Retrieved", finding.Explanation{
		Meaning: "The cluster knows the current updates and risks of its channel.",
		Cause:   "The condition RetrievedUpdates of ClusterVersion is True.",
	})
	reasonNotRetrieved = finding.NewReason("NotRetrieved", finding.Explanation{
		Meaning: "CVO could not retrieve the updates of the channel, and gives no reason of its own. Known risks of the update may be " +
			"missing.",
		Cause: "The update service is unreachable, or no channel is set.",
		Remedy: "Give the cluster access to its update service: `oc adm upgrade`. Without an update service, read the known issues of " +
			"the release and accept the risk: `oc preflight accept CannotRetrieveUpdates`.",
	})
)

// RetrievedUpdates is the check CannotRetrieveUpdates.
func RetrievedUpdates() check.Check {
	return check.Check{
		Name: nameCannotRetrieveUpdates, Kind: finding.SourceRisk,
		NotHosted: "HyperShift does not require that an update service lists the update",
		Reads:     check.ReadsClusterVersion(),
		Run:       onClusterVersion(current(judgeRetrieved)),
	}
}

func judgeRetrieved(s situation) []finding.Finding {
	condition := s.condition(configv1.RetrievedUpdates)
	if condition.Status == configv1.ConditionTrue {
		return []finding.Finding{finding.Pass(s.read, reasonRetrieved, "the cluster has the updates and risks of channel %q",
			s.version.Spec.Channel)}
	}
	f := finding.Unknown(cmp.Or(finding.ReportedReason(condition.Reason), reasonNotRetrieved),
		"RetrievedUpdates of ClusterVersion is %s, so the updates and risks that the cluster knows may be out of date: %s",
		orAbsent(condition.Status), cmp.Or(condition.Message, "no message")).
		Remedy("Set the channel, and give the cluster access to its update service. If it has none, read the known issues of the " +
			"release and accept the risk.").
		Do(finding.Read("oc adm upgrade"))
	if s.version.Spec.Channel == "" {
		f = f.Do(Channels(s.version)...)
	}
	return []finding.Finding{f.Do(finding.Accept("CannotRetrieveUpdates"))}
}

var (
	nameImplicitCapabilities = finding.NewName("ImplicitlyEnabledCapabilities",
		"The condition ImplicitlyEnabledCapabilities of ClusterVersion (CVO pkg/cvo/status.go and lib/capability, since 4.11): "+
			"capabilities that are enabled although spec.capabilities does not name them. It is part of the check "+
			"ClusterVersionRequest, concerns every update, and only warns.")

	reasonImplicitlyEnabled = finding.NewReason("CapabilitiesImplicitlyEnabled", finding.Explanation{
		Meaning: "Capabilities are enabled that spec.capabilities of ClusterVersion does not enable. CVO never disables an enabled " +
			"capability, and an update enables a capability when objects of the cluster move into it.",
		Cause: "The cluster was installed or updated with them, and spec.capabilities was changed or is narrower.",
		Remedy: "Add the capabilities in the message to spec.capabilities.additionalEnabledCapabilities, so that the spec matches the " +
			"cluster.",
		Command: "oc get clusterversion version -o jsonpath={.spec.capabilities}",
	})
)

// maxStated bounds a message of CVO in a message, in bytes.
const maxStated = 2048

// implicitCapabilities is the finding about capabilities that are enabled in spite of the spec; false for none.
func implicitCapabilities(condition configv1.ClusterOperatorStatusCondition) (finding.Finding, bool) {
	if condition.Status == "" || condition.Status == configv1.ConditionFalse {
		return finding.Finding{}, false
	}
	return finding.Warn(reasonImplicitlyEnabled, "the enabled capabilities differ from spec.capabilities, and an update keeps them: "+
		"ImplicitlyEnabledCapabilities is %s",
		words.Condition(condition.Status, words.External(condition.Reason), cmp.Or(words.Line(condition.Message, maxStated), "no message"))).
		Named(nameImplicitCapabilities).Do(finding.Read("oc get clusterversion version -o jsonpath={.spec.capabilities}")), true
}

// maxChannels bounds the channels of which a command is printed.
const maxChannels = 3

// Channels returns commands that set a channel with the running release: the last supported ones that the cluster
// knows. If it knows none, the channel of its minor version contains the release; whether a later channel does is
// unknown.
func Channels(version *configv1.ClusterVersion) []finding.Action {
	known := slices.Clone(version.Status.Desired.Channels)
	if running, err := semver.Parse(version.Status.Desired.Version); err == nil && len(known) == 0 {
		known = []string{"stable-" + update.Line(running)}
	}
	known = slices.DeleteFunc(known, func(name string) bool {
		return name == version.Spec.Channel || strings.HasPrefix(name, "candidate-") || words.ShellLine(name) != name // a channel is one word
	})
	var commands []finding.Action
	for _, name := range known[max(0, len(known)-maxChannels):] {
		commands = append(commands, finding.Change("oc adm upgrade channel %s", name))
	}
	return commands
}

// The name of the finding about the request, and its reasons.
var (
	requestName = finding.NewName("ClusterVersionRequest",
		"CVO's validation of a request (lib/validation), before there is one: whether ClusterVersion is invalid already, and whether "+
			"CVO knows the target. By version alone, CVO accepts only a target that is exactly one of status.availableUpdates; a "+
			"conditional update needs its image. A Ready verdict ends with the command that requests the target. The check concerns "+
			"every update, and warns unless ClusterVersion is invalid; that finding has CVO's own reason. It also reports, for all "+
			"checks of ClusterVersion, a status that is older than the spec.")

	reasonNothingAsked = finding.NewReason("NothingAsked", finding.Explanation{
		Meaning: "The cluster already runs the target, or is being updated to it.",
		Cause:   "status.desired of ClusterVersion is the target.",
	})
	reasonAvailableUpdate = finding.NewReason("AvailableUpdate", finding.Explanation{
		Meaning: "CVO accepts a request for the target by its version alone.",
		Cause:   "The target is exactly one of status.availableUpdates of ClusterVersion.",
	})
	ReasonAmbiguousVersion = finding.NewReason("AmbiguousVersion", finding.Explanation{
		Meaning: "Several available updates have the version of the target, so CVO rejects a request by version alone.",
		Cause:   "The update service lists several images with that version.",
		Remedy:  "Determine which of the images is meant, and run the preflight for it by its pull spec.",
		Command: listUpdates,
	})
	reasonConditionalUpdateOnly = finding.NewReason("ConditionalUpdateOnly", finding.Explanation{
		Meaning: "The target is a conditional update, which CVO accepts only by image.",
		Cause:   "The update service knows risks of the target.",
		Remedy:  "Read the risks of the target, and accept by name the risks that the cluster can take.",
		Command: "oc adm upgrade --include-not-recommended",
	})
	reasonHistoryOnly = finding.NewReason("HistoryOnly", finding.Explanation{
		Meaning: "The target appears only in status.history of ClusterVersion. CVO accepts a request by version alone, but stays at " +
			"the current release.",
		Cause:   "The cluster ran the release before, and the update service does not list it.",
		Remedy:  "Choose an update that the cluster knows, or find out why the update service no longer lists this one.",
		Command: listUpdates,
	})
	ReasonUnknownUpdate = finding.NewReason("UnknownUpdate", finding.Explanation{
		Meaning: "The cluster does not know the target, so whether the update is recommended or supported is unknown.",
		Cause:   "The channel of the cluster does not contain the target, or the update service was unreachable.",
		Remedy:  "Choose an update that the cluster knows, or find out why the update service does not list this one.",
	})
	reasonRequestFailed = finding.NewReason("RequestFailed", finding.Explanation{
		Meaning: "The target was requested before, and CVO cannot carry out the request. Retrying does not help until the cause is " +
			"fixed. The finding is a warning when a precondition failed, because each has a check of its own, and when CVO could not " +
			"retrieve or verify the release, because the preflight does so itself.",
		Cause:   "The condition ReleaseAccepted of ClusterVersion is False and names the version or the image of the target.",
		Remedy:  "Fix the cause in the message, or cancel the request: `oc adm upgrade --clear`.",
		Command: "oc adm upgrade --clear",
	})
	reasonInvalidClusterVersion = finding.NewReason("InvalidClusterVersion", finding.Explanation{
		Meaning: "ClusterVersion is invalid, so `oc adm upgrade` refuses to change it.",
		Cause:   "A field of its spec is invalid, such as an update that is not available.",
		Remedy:  "Fix the field in the message: `oc edit clusterversion version`.",
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
		Name: requestName, Kind: finding.SourceGate, NotHosted: "HostedClusterRequest and HostedClusterVersion evaluate the request",
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
	return finding.New(outcome, reasonRequestFailed,
		"CVO currently fails with the request for %s%s, and each retry fails until the cause is fixed: %s",
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
	return f.Remedy("Fix the field in the message. " + forceIsNotEnough).Do(finding.Change("oc edit clusterversion version"))
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
		"%d available updates have the version %s, so CVO rejects a request by version alone: %s", len(images), target,
		words.List(images, maxImages)).
		Do(finding.Read(listUpdates))
}

// nothingRequested is the finding of a target that is the release of the cluster, or of the update in progress.
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
				"%s is a conditional update: CVO rejects a request by version alone", target).
				Do(finding.Read("oc adm upgrade --include-not-recommended"))
		}
	}
	for _, past := range status.History {
		if past.Version == target {
			return finding.Warn(reasonHistoryOnly,
				"%s is only in status.history of ClusterVersion: CVO accepts a request by version alone, and silently stays at %s", target,
				s.update.From).
				Do(finding.Read(listUpdates))
		}
	}
	from := s.update.From.String() + ", which has no channel"
	if channel := s.version.Spec.Channel; channel != "" {
		from = fmt.Sprintf("%s in channel %q", s.update.From, channel)
	}
	return finding.Warn(ReasonUnknownUpdate,
		"%s is neither an available nor a conditional update from %s, so it is unknown whether it is recommended or supported, and "+
			"which risks it has", target, from).
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
		"CVO's precondition ClusterVersionRollback: the target must not be older than the current release, except for the cluster's "+
			"previous release within the same minor version, which some releases of CVO allow. The finding has CVO's own reason. It "+
			"concerns every update.")

	reasonPreviousRelease = finding.NewReason("PreviousRelease", finding.Explanation{
		Meaning: "The target is the previous release of the cluster, and CVO allows the rollback.",
		Cause:   "The target is an earlier patch release of the same minor version.",
		Remedy:  "Prefer a later release that contains the fix.",
	})
	reasonNotBefore = finding.NewReason("NotBefore", finding.Explanation{
		Meaning: "The update is not a rollback.",
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
			Remedy("Choose a release that is not older than %s. A forced rollback is neither tested nor supported.", s.update.From).
			Do(finding.Targets())}
	case s.update.Kind() == update.Rollback:
		return []finding.Finding{finding.Warn(reasonPreviousRelease,
			"%s is the cluster's previous release; a rollback from %s reverts the fixes made since", s.target(), s.update.From).
			Do(finding.Targets())}
	}
	return []finding.Finding{finding.Pass(s.read, reasonNotBefore, "%s is not before %s, the version in status.desired of ClusterVersion",
		s.target(), s.update.From)}
}
