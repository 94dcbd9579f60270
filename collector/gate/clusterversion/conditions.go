package clusterversion

import (
	"cmp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	nameFailing = finding.NewName("Failing",
		"The condition Failing of ClusterVersion: CVO cannot reconcile the current release. The finding has CVO's "+
			"own reason. It concerns every update. CVO does not refuse to update such a cluster, `oc adm upgrade` "+
			"does. The finding may be accepted by name, as with `oc adm upgrade recommend`, since the target may have "+
			"the fix. While an update is in progress it is a warning for another target in the same minor version, "+
			"which is most likely meant as the fix.")

	reasonAsExpected = finding.NewReason("AsExpected", finding.Explanation{
		Meaning: "Reported when CVO reconciles the current release without failing.",
		Cause:   "The condition Failing of ClusterVersion is False.",
	})
	reasonFailing = finding.NewReason("Failing", finding.Explanation{
		Meaning: "Reported when CVO fails to reconcile the current release and gives no reason of its own.",
		Cause:   "The condition Failing of ClusterVersion is True.",
		Remedy:  "Fix what the message names: `oc adm upgrade`.",
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
			Remedy("Fix what the message names. If the target has the fix, accept the risk.").
			Do(finding.Read("oc adm upgrade"), finding.Accept("Failing"))}
	case configv1.ConditionUnknown:
	}
	return []finding.Finding{finding.Unknown(cmp.Or(finding.ReportedReason(condition.Reason), reasonNotReported),
		"the condition Failing of ClusterVersion is %s: %s", orAbsent(condition.Status), cmp.Or(condition.Message, "unknown whether CVO fails")).
		Remedy("Check that CVO is running, or accept the risk.").
		Do(check.CVOPods(), finding.Accept("Failing"))}
}

var (
	nameCannotRetrieveUpdates = finding.NewName("CannotRetrieveUpdates",
		"The condition RetrievedUpdates of ClusterVersion: whether the updates and risks that the cluster knows "+
			"are current. Otherwise it is unknown whether there are risks; the finding has CVO's own reason. It "+
			"concerns every update. A disconnected cluster may never retrieve them, so the finding may be accepted by "+
			"name, as with `oc adm upgrade recommend`.")

	reasonRetrieved = finding.NewReason("Retrieved", finding.Explanation{
		Meaning: "Reported when the cluster has the updates and risks of its channel.",
		Cause:   "The condition RetrievedUpdates of ClusterVersion is True.",
	})
	reasonNotRetrieved = finding.NewReason("NotRetrieved", finding.Explanation{
		Meaning: "Reported when CVO could not retrieve the updates of the channel, and gives no reason of its own.",
		Cause:   "The update service cannot be reached, or no channel is set.",
		Remedy: "Let the cluster reach its update service: `oc adm upgrade`. Without an update service, read the known " +
			"issues of the release and accept the risk: `oc preflight accept CannotRetrieveUpdates`.",
	})
)

// RetrievedUpdates is the check CannotRetrieveUpdates.
func RetrievedUpdates() check.Check {
	return check.Check{
		Name: nameCannotRetrieveUpdates, Kind: finding.SourceRisk, NotHosted: "HyperShift does not require that an update service lists the update",
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(current(judgeRetrieved)),
	}
}

func judgeRetrieved(s situation) []finding.Finding {
	condition := s.condition(configv1.RetrievedUpdates)
	if condition.Status == configv1.ConditionTrue {
		return []finding.Finding{finding.Pass(s.read, reasonRetrieved, "the cluster has the updates and risks of channel %q", s.version.Spec.Channel)}
	}
	f := finding.Unknown(cmp.Or(finding.ReportedReason(condition.Reason), reasonNotRetrieved),
		"RetrievedUpdates of ClusterVersion is %s, so the updates and risks that the cluster knows may be out of date: %s",
		orAbsent(condition.Status), cmp.Or(condition.Message, "no message")).
		Remedy("Set the channel, and let the cluster reach its update service. If it has none, read the known issues of the release and accept the risk.").
		Do(finding.Read("oc adm upgrade"))
	if s.version.Spec.Channel == "" {
		f = f.Do(Channels(s.version)...)
	}
	return []finding.Finding{f.Do(finding.Accept("CannotRetrieveUpdates"))}
}

var (
	nameImplicitCapabilities = finding.NewName("ImplicitlyEnabledCapabilities",
		"The condition ImplicitlyEnabledCapabilities of ClusterVersion (CVO pkg/cvo/status.go and lib/capability, since "+
			"4.11): capabilities that are enabled although spec.capabilities does not name them. It is part of the check "+
			"ClusterVersionRequest, concerns every update, and only warns.")

	reasonImplicitlyEnabled = finding.NewReason("CapabilitiesImplicitlyEnabled", finding.Explanation{
		Meaning: "Reported when capabilities are enabled that spec.capabilities of ClusterVersion does not enable: CVO does not " +
			"disable one that was enabled before, and an update enables those to which objects of the cluster moved.",
		Cause:   "The cluster was installed or updated with them, and spec.capabilities was changed or is narrower.",
		Remedy:  "Add the capabilities that the message names to spec.capabilities.additionalEnabledCapabilities, so that the spec states what the cluster has.",
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
	return finding.Warn(reasonImplicitlyEnabled, "the capabilities of the cluster are not those of spec.capabilities of ClusterVersion, and an update keeps them: ImplicitlyEnabledCapabilities is %s",
		words.Condition(condition.Status, words.External(condition.Reason), cmp.Or(words.Line(condition.Message, maxStated), "no message"))).
		Named(nameImplicitCapabilities).Do(finding.Read("oc get clusterversion version -o jsonpath={.spec.capabilities}")), true
}

// maxChannels bounds the channels of which a command is printed.
const maxChannels = 3

// Channels are commands that set a channel which has the running release: the last supported ones that the cluster knows.
// Where it knows none, that of its minor version is one; whether that of a later one has the release is not known.
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
