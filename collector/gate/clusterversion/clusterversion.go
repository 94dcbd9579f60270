// Package clusterversion answers: which condition of ClusterVersion or of a ClusterOperator blocks the update?
//
// Each function returns one check. Names repeat the preconditions and risks of the cluster-version operator (CVO).
// [Failing] and [RetrievedUpdates] are about what `oc adm upgrade` checks in addition; their findings may be
// accepted by name, as with `oc adm upgrade recommend --accept`.
package clusterversion

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/gate/measure"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	reasonInvalidCurrentVersion = finding.NewReason("InvalidCurrentVersion", finding.Explanation{
		Meaning: "The version of the cluster is not a semantic version, so it cannot be compared with the target.",
		Cause:   "A custom release set status.desired.version of ClusterVersion.",
		Remedy:  "Check which release the cluster runs: `oc get clusterversion version -o yaml`.",
	})
	reasonNotReported = finding.NewReason("NotReported", finding.Explanation{
		Meaning: "A condition of ClusterVersion is absent or Unknown, so the check is inconclusive.",
		Cause:   "CVO is not running, or has not evaluated the condition yet.",
		Remedy:  "Check that CVO is running: `oc -n openshift-cluster-version get pods`.",
	})
	reasonUnexplained = finding.NewReason("Unexplained", finding.Explanation{
		Meaning: "A condition without a reason blocks the update or causes a warning.",
		Cause:   "The operator or CVO set the condition without a reason.",
		Remedy:  "Read the conditions of ClusterVersion and of the ClusterOperators: `oc get clusterversion,clusteroperators -o yaml`.",
	})
)

type situation struct {
	read    gap.Extent
	version *configv1.ClusterVersion
	// update is the update as CVO measures it: not from the last completed release
	// but from status.desired, which is the newer release while an update is in
	// progress.
	update update.Update
	// requested is the update from the last completed release.
	requested update.Update
}

// judgement evaluates a situation and returns at least one finding.
type judgement func(situation) []finding.Finding

// onClusterVersion is the Run of a check that reads only the ClusterVersion.
// Findings without objects are about the ClusterVersion.
func onClusterVersion(judge judgement) func(context.Context, check.Subject) ([]finding.Finding, error) {
	return func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
		version, err := s.ClusterVersion(ctx)
		if apierrors.IsNotFound(err) {
			return s.WithoutClusterVersion(ctx)
		}
		if err != nil {
			return nil, err
		}
		desired, err := semver.Parse(version.Status.Desired.Version)
		if err != nil {
			return []finding.Finding{invalidVersion(version, err)}, nil
		}
		findings := judge(situation{
			read: gap.ExtentOf(ctx), version: version, update: update.Update{From: desired, To: s.Update.To},
			requested: s.Update,
		})
		for i, f := range findings {
			if f.Objects == nil {
				findings[i] = f.About(check.ClusterVersionObject())
			}
		}
		return findings, nil
	}
}

func invalidVersion(version *configv1.ClusterVersion, err error) finding.Finding {
	return finding.Unknown(reasonInvalidCurrentVersion,
		"status.desired of ClusterVersion %q has the version %q, which is not a semantic version: %v", version.Name,
		version.Status.Desired.Version, err).
		Remedy("Check which release the cluster runs. CVO itself only warns of such a version.").
		Do(finding.Read("oc get clusterversion version -o yaml")).
		About(check.ClusterVersionObject())
}

// current evaluates a status that may be older than the spec, which RequestValid reports. If it is older, only
// failures count, and only while no release other than status.desired is requested. A change of spec.channel,
// spec.upstream or the accepted risks changes the known updates and RetrievedUpdates, and a change of
// spec.desiredUpdate changes Invalid: neither can open a gate.
func current(judge judgement) judgement {
	return func(s situation) []finding.Finding {
		if _, stale := s.stale(); !stale {
			return judge(s)
		}
		if !s.requestsAnother() {
			failures := slices.DeleteFunc(judge(s), func(f finding.Finding) bool { return f.Outcome != preflight.Fail })
			if len(failures) > 0 {
				return failures
			}
		}
		return []finding.Finding{finding.Skipped(s.read, check.ReasonStaleStatus,
			"the status of ClusterVersion is out of date, so the check is inconclusive; the finding %s blocks the update", requestName)}
	}
}

// stale is the only finding about a status that is older than the spec; it is false for a current status.
func (s situation) stale() (finding.Finding, bool) {
	if cvo.HasProcessed(s.version) {
		return finding.Finding{}, false
	}
	f, _ := check.Stale(check.ClusterVersionObject(), s.version.Status.ObservedGeneration, s.version.Generation)
	return measure.Changed(f, f.Outcome, "These may still reflect the former spec.channel, spec.upstream or spec.desiredUpdate with "+
		"its accepted risks: the available and conditional updates, the release in progress, and the conditions RetrievedUpdates, "+
		"Invalid, Progressing and Failing.").
		Do(check.CVOPods()), true
}

// requestsAnother reports whether the spec requests a release other than status.desired, from which updates are
// measured.
func (s situation) requestsAnother() bool {
	request, desired := s.version.Spec.DesiredUpdate, s.version.Status.Desired
	return request != nil &&
		((request.Version != "" && request.Version != desired.Version) || (request.Image != "" && request.Image != desired.Image))
}

// condition returns a condition of ClusterVersion; its status is empty where there is none.
func (s situation) condition(kind configv1.ClusterStatusConditionType) configv1.ClusterOperatorStatusCondition {
	for _, condition := range s.version.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return configv1.ClusterOperatorStatusCondition{Type: kind}
}

func (s situation) target() string { return s.update.To.String() }

func (s situation) minor() string { return update.Line(s.update.From) }

// measure is how a gate is measured which CVO applies by the condition Upgradeable.
func (s situation) measure() measure.Measure {
	return measure.Of(measure.ByUpgradeable, s.update.From, s.requested)
}

// notConcerned is the result of a check that blocks only updates to another minor version.
func (s situation) notConcerned(condition string) []finding.Finding {
	return []finding.Finding{finding.Skipped(s.read, check.ReasonNotConcerned, "%s does not block updates within %s, such as %s", condition,
		s.minor(), s.target())}
}

// violated is the finding of a precondition of CVO that the update violates, with
// CVO's own reason, and its message followed by notes.
func violated(violation cvo.Violation, notes ...string) finding.Finding {
	outcome := preflight.Fail
	switch violation.Weight {
	case cvo.Blocking:
	case cvo.Unchecked:
		notes = append([]string{"The CVO of this cluster does not check this yet."}, notes...)
	case cvo.Warning:
		outcome = preflight.Warn
	case cvo.Uncertain:
		outcome = preflight.Unknown
	}
	message := strings.Join(append([]string{violation.Message}, notes...), " ")
	return finding.New(outcome, cmp.Or(finding.ReportedReason(violation.Reason), reasonUnexplained), "%s", message)
}

func orAbsent(status configv1.ConditionStatus) string { return cmp.Or(string(status), "absent") }

var (
	nameClusterVersionUpgradeable = finding.NewName("ClusterVersionUpgradeable",
		"CVO's precondition ClusterVersionUpgradeable: the condition Upgradeable=False of ClusterVersion blocks updates to another "+
			"minor or major version, whatever was accepted. The finding has CVO's own reason, or UpgradeableFalse for several causes. "+
			"CVO accepts the update when the condition is Unknown, which means that it could not evaluate one of the causes; this "+
			"check is inconclusive. A condition whose only cause is the preflight's own ClusterOperator does not count.")

	reasonUpgradeableFalse = finding.NewReason("UpgradeableFalse", finding.Explanation{
		Meaning: "ClusterVersion has the condition Upgradeable=False, for several causes. CVO rejects updates to another minor version.",
		Cause:   "The message lists the causes.",
		Remedy:  "Fix each cause; acknowledge it if it is an admin gate: `oc adm upgrade`.",
	})
)

// Upgradeable is the check ClusterVersionUpgradeable.
func Upgradeable() check.Check {
	return check.Check{
		Name: nameClusterVersionUpgradeable, Kind: finding.SourceGate,
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(current(judgeUpgradeable)),
	}
}

func judgeUpgradeable(s situation) []finding.Finding {
	condition := s.condition(configv1.OperatorUpgradeable)
	violation := cvo.Upgradeable(s.version, s.target())
	switch {
	case violation != nil && isOwnViolation(s, *violation):
		return []finding.Finding{finding.Skipped(s.read, check.ReasonOwnSignal,
			"Upgradeable=False of ClusterVersion only repeats the last verdict of the preflight, so it does not count: %s",
			condition.Message)}
	case violation != nil && violation.Weight != cvo.Warning: // ClusterVersionOverrides and ClusterVersionUpdating have the warnings
		return []finding.Finding{s.notUpgradeable(*violation)}
	case !s.update.LeavesMinor():
		return s.notConcerned(fmt.Sprintf("Upgradeable=%s of ClusterVersion", orAbsent(condition.Status)))
	case condition.Status == "" || condition.Status == configv1.ConditionTrue:
		return []finding.Finding{finding.Pass(s.read, reasonUpgradeable,
			"the condition Upgradeable of ClusterVersion, which CVO removes when nothing blocks, is %s", orAbsent(condition.Status))}
	}
	return []finding.Finding{finding.Unknown(cmp.Or(finding.ReportedReason(condition.Reason), reasonEvaluationFailed),
		"CVO could not evaluate whether the cluster can leave %s: Upgradeable=%s of ClusterVersion: %s", s.minor(), condition.Status,
		cmp.Or(condition.Message, "no message")).
		Remedy("Check what CVO could not evaluate. CVO itself would accept the update.").
		Do(cvoLog())}
}

// isOwnViolation reports whether the preflight's own ClusterOperator is the only cause of a
// violation: no override is set, no condition of another cause is, and the message has
// none. In doubt the condition counts.
func isOwnViolation(s situation, violation cvo.Violation) bool {
	condition := s.condition(configv1.OperatorUpgradeable)
	unmanaged := func(override configv1.ComponentOverride) bool { return override.Unmanaged }
	another := func(other configv1.ClusterOperatorStatusCondition) bool {
		return other.Type != configv1.OperatorUpgradeable && strings.HasPrefix(string(other.Type), "Upgradeable") &&
			other.Status == configv1.ConditionFalse
	}
	return violation.Weight != cvo.Warning && violation.Reason == condition.Reason &&
		ownsignal.Upgradeable(condition.Reason, condition.Message) &&
		!slices.ContainsFunc(s.version.Spec.Overrides, unmanaged) && !slices.ContainsFunc(s.version.Status.Conditions, another)
}

// notUpgradeable keeps CVO's message. Up to 4.22 the causes have conditions of
// their own; those that the message lacks are appended. A reason that names no
// cause is replaced.
func (s situation) notUpgradeable(violation cvo.Violation) finding.Finding {
	if slices.Contains([]string{"MultipleReasons", "RiskNameNotCompatibleWithReasonProperty"}, violation.Reason) {
		violation.Reason = reasonUpgradeableFalse.String() // as in oc adm upgrade recommend
	}
	causes := map[string]string{}
	for _, condition := range s.version.Status.Conditions {
		if !strings.HasPrefix(string(condition.Type), "Upgradeable") || condition.Status != configv1.ConditionFalse {
			continue
		}
		cause := strings.TrimPrefix(condition.Reason+": "+cmp.Or(condition.Message, "no message"), ": ")
		causes[string(condition.Type)] = cause
		if condition.Message != "" && !strings.Contains(violation.Message, condition.Message) {
			violation.Message += "\n* " + cause
		}
	}
	violation.Message = cmp.Or(violation.Message,
		fmt.Sprintf("Upgradeable=False of ClusterVersion keeps the cluster in %s, without a message", s.minor()))
	return violated(violation).
		Observed(causes).
		Remedy("Fix the causes in the message; acknowledge those that are admin gates. This blocks updates that leave %s; until then, "+
			"update to the newest release within it.", s.minor()).
		Do(finding.Read("oc adm upgrade"), finding.Targets())
}

var (
	nameResourceDeletionInProgress = finding.NewName("ResourceDeletionInProgress",
		"Blocks updates to another minor or major version while CVO deletes objects that the release no longer has "+
			"(pkg/risk/deletion). CVO publishes the list only in a condition of ClusterVersion: UpgradeableDeletesInProgress up to "+
			"4.22, and as part of Upgradeable since.")

	reasonResourceDeletesInProgress = finding.NewReason("ResourceDeletesInProgress", finding.Explanation{
		Meaning: "CVO is deleting objects that the release no longer has. Until it is done, the cluster cannot leave its minor version.",
		Cause:   "Most often, a finalizer blocks the deletion of an object.",
		Remedy:  "Wait. If the deletion hangs, check what blocks it, most likely a finalizer.",
		Command: "oc get KIND NAME -o yaml",
	})
	reasonEvaluationFailed = finding.NewReason("EvaluationFailed", finding.Explanation{
		Meaning: "CVO could not evaluate whether the cluster can be updated.",
		Cause:   "CVO had an error; see its log.",
		Remedy:  "Read the log of CVO: `oc -n openshift-cluster-version logs deployment/cluster-version-operator`.",
	})
	reasonNothingDeleted = finding.NewReason("NothingDeleted", finding.Explanation{
		Meaning: "CVO is not deleting objects.",
		Cause:   "No condition of ClusterVersion reports a deletion.",
	})
)

// Deletion is the check ResourceDeletionInProgress.
func Deletion() check.Check {
	return check.Check{
		Name: nameResourceDeletionInProgress, Kind: finding.SourceGate,
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(current(judgeDeletion)),
	}
}

var (
	// deletions is the message of all releases of CVO since 4.9.
	deletions = regexp.MustCompile(`not allowed while resource deletions are in progress; resources=([^\n]*)`)
	// deleted is one object in that message.
	deleted = regexp.MustCompile(`([a-zA-Z0-9.]+) "(?:([a-z0-9.-]+)/)?([A-Za-z0-9.:_-]+)"`)
)

func judgeDeletion(s situation) []finding.Finding {
	m := s.measure()
	if m.Effect == measure.None || m.Effect == measure.Warns {
		return s.notConcerned("a deletion in progress")
	}
	return m.Apply([]finding.Finding{s.deletion(m.Within)})
}

func (s situation) deletion(minor string) finding.Finding {
	own, all := s.condition("UpgradeableDeletesInProgress"), s.condition(configv1.OperatorUpgradeable)
	resources := deletions.FindStringSubmatch(own.Message + "\n" + all.Message)
	switch {
	case own.Status == configv1.ConditionFalse || (all.Status == configv1.ConditionFalse && resources != nil):
		f := finding.Fail(reasonResourceDeletesInProgress,
			"CVO is deleting objects that the release no longer has; until it is done, the cluster cannot leave %s: %s", minor,
			cmp.Or(own.Message, all.Message))
		if resources != nil {
			f = f.Observed(map[string]string{"resources": resources[1]}).Do(inspectDeleted(resources[1])...)
		}
		return f
	case all.Status == configv1.ConditionUnknown:
		if s.update.LeavesMinor() { // one cause is one finding
			return finding.Skipped(s.read, reasonEvaluationFailed,
				"the condition Upgradeable of ClusterVersion, in which CVO reports deletions in progress, is Unknown: see the finding "+
					"ClusterVersionUpgradeable")
		}
		return finding.Unknown(reasonEvaluationFailed,
			"the condition Upgradeable of ClusterVersion, in which CVO reports deletions in progress, is Unknown").
			Remedy("Check what CVO could not evaluate.").Do(cvoLog())
	}
	return finding.Pass(s.read, reasonNothingDeleted, "ClusterVersion reports no deletion in progress")
}

// inspectDeleted are the commands that print the first few of the objects in CVO's message.
func inspectDeleted(resources string) []finding.Action {
	const most = 5
	var actions []finding.Action
	for _, object := range deleted.FindAllStringSubmatch(resources, most) {
		kind, namespace, name := strings.ToLower(object[1]), object[2], object[3]
		actions = append(actions, finding.Read("oc get %s %s -o yaml", kind, name).Namespaced(namespace))
	}
	return actions
}

func cvoLog() finding.Action {
	return finding.Read("oc -n openshift-cluster-version logs deployment/cluster-version-operator")
}

var (
	nameClusterVersionOverrides = finding.NewName("ClusterVersionOverrides",
		"Blocks updates to another minor or major version, and up to 4.21 also patch updates, while spec.overrides of ClusterVersion "+
			"makes objects unmanaged (CVO pkg/risk/overrides): an update does not include them. Otherwise it warns. The check reads "+
			"only the spec, so it does not depend on a current status.")

	reasonClusterVersionOverridesSet = finding.NewReason("ClusterVersionOverridesSet", finding.Explanation{
		Meaning: "spec.overrides of ClusterVersion makes objects unmanaged, so an update does not include them.",
		Cause:   "An administrator set the overrides.",
		Remedy: "Remove the overrides; CVO then reverts changes of these objects: `oc patch clusterversion version --type " +
			"json --patch '[{\"op\":\"remove\",\"path\":\"/spec/overrides\"}]'`.",
	})
	reasonNothingUnmanaged = finding.NewReason("NothingUnmanaged", finding.Explanation{
		Meaning: "CVO manages all objects of the release.",
		Cause:   "spec.overrides of ClusterVersion makes no object unmanaged.",
	})
)

// maxOverrides bounds the objects that a message names.
const maxOverrides = 10

// Overrides is the check ClusterVersionOverrides.
func Overrides() check.Check {
	return check.Check{
		Name: nameClusterVersionOverrides, Kind: finding.SourceGate,
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(judgeOverrides),
	}
}

func judgeOverrides(s situation) []finding.Finding {
	var names []string
	objects := []finding.Object{check.ClusterVersionObject()}
	for _, override := range s.version.Spec.Overrides {
		if !override.Unmanaged {
			continue
		}
		object := finding.Object{
			APIVersion: cmp.Or(override.Group, "v1"), Kind: override.Kind, Namespace: override.Namespace,
			Name: override.Name,
		}
		names, objects = append(names, check.Describe(object)), append(objects, object)
	}
	if len(names) == 0 {
		return []finding.Finding{finding.Pass(s.read, reasonNothingUnmanaged, "spec.overrides of ClusterVersion makes nothing unmanaged")}
	}
	outcome, effect := s.overridesBlock()
	return []finding.Finding{finding.New(outcome, reasonClusterVersionOverridesSet,
		"spec.overrides of ClusterVersion makes %s unmanaged (%s), so an update does not include them; this %s",
		words.Count(len(names), "object"), words.List(names, maxOverrides), effect).
		Remedy("Remove the overrides. CVO then reverts changes of these objects.").
		Do(finding.Change(`oc patch clusterversion version --type json --patch [{"op":"remove","path":"/spec/overrides"}]`)).
		About(objects...)}
}

// overridesBlock is the effect of overrides on the update.
func (s situation) overridesBlock() (preflight.Outcome, string) {
	switch {
	case s.update.LeavesMinor():
		return preflight.Fail, "blocks updates that leave " + s.minor()
	case s.update.Kind() == update.Patch && cvo.OverridesBlockPatches(s.update.From.String()):
		return preflight.Fail, "also blocks updates within " + s.minor() + ", since CVO refuses them up to 4.21"
	}
	return preflight.Warn, "does not block updates within " + s.minor() + ", such as " + s.target()
}
