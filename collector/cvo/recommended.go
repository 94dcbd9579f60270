package cvo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recommended is the precondition ClusterVersionRecommendedUpdate. It never
// blocks: a risk that is not accepted is a warning in the history.
func recommended(clusterVersion *configv1.ClusterVersion, target string) *Violation {
	status := clusterVersion.Status
	if slices.ContainsFunc(status.AvailableUpdates, func(release configv1.Release) bool { return release.Version == target }) {
		return nil
	}
	warn := func(reason, format string, args ...any) *Violation {
		return &Violation{
			Precondition: "ClusterVersionRecommendedUpdate", Reason: reason, Weight: Warning, Message: fmt.Sprintf(format, args...),
		}
	}
	from := status.Desired.Version
	if conditional := conditionalTo(status, target); conditional != nil {
		condition := meta.FindStatusCondition(conditional.Conditions, "Recommended")
		switch {
		case condition == nil:
			return warn("UnknownConditionType", "Update from %s to %s has a status.conditionalUpdates entry, but no Recommended condition.", from, target)
		case condition.Status == metav1.ConditionTrue:
			return nil
		case condition.Status == metav1.ConditionFalse:
			return warn(condition.Reason, "Update from %s to %s is not recommended:\n\n%s", from, target, cmp.Or(condition.Message, "no message"))
		}
		return warn(condition.Reason, "Update from %s to %s is Recommended=%s", from, target,
			strings.Join(slices.DeleteFunc([]string{string(condition.Status), condition.Reason, condition.Message}, isEmpty), ": "))
	}
	if clusterVersion.Spec.Channel == "" {
		return warn("NoChannel", "Configured channel is unset, so the recommended status of updating from %s to %s is unknown.", from, target)
	}
	retrieved := find(clusterVersion, configv1.RetrievedUpdates)
	switch {
	case retrieved == nil:
		return warn("UnknownUpdate", "No RetrievedUpdates, so the recommended status of updating from %s to %s is unknown.", from, target)
	case retrieved.Status == configv1.ConditionTrue:
		return warn("UnknownUpdate", "RetrievedUpdates=True%s, so the update from %s to %s is probably neither recommended nor supported.", aside(retrieved.Reason), from, target)
	}
	return warn("UnknownUpdate", "RetrievedUpdates=%s%s, so the recommended status of updating from %s to %s is unknown.", retrieved.Status, aside(retrieved.Reason), from, target)
}

func isEmpty(text string) bool { return text == "" }

// conditionalTo is the first conditional update to a version, or nil.
func conditionalTo(status configv1.ClusterVersionStatus, version string) *configv1.ConditionalUpdate {
	for i := range status.ConditionalUpdates {
		if status.ConditionalUpdates[i].Release.Version == version {
			return &status.ConditionalUpdates[i]
		}
	}
	return nil
}

// Upgradeable is the precondition ClusterVersionUpgradeable: the condition
// Upgradeable=False blocks updates to another minor version. Absent, True and
// Unknown pass. It returns nil for no violation.
func Upgradeable(clusterVersion *configv1.ClusterVersion, target string) *Violation {
	const name = "ClusterVersionUpgradeable"
	condition := find(clusterVersion, configv1.OperatorUpgradeable)
	if condition == nil || condition.Status != configv1.ConditionFalse {
		return nil
	}
	versions, violation := parse(name, clusterVersion, target)
	if violation != nil {
		return violation
	}
	blocked := &Violation{Precondition: name, Reason: condition.Reason, Message: condition.Message, Weight: Blocking}
	if has, certain := fromDesired().in(versions.current); !has && measuredFromCompleted(clusterVersion, versions.target) {
		if !certain && !versions.leavesMinor() && !blocksPatches(clusterVersion, versions) {
			blocked.Weight = Uncertain
			blocked.Message = fmt.Sprintf("some releases of CVO %s measure Upgradeable=False from the last completed release and refuse to retarget the update in progress, others do not: %s",
				minorOf(versions.current), condition.Message)
		}
		return blocked
	}
	if versions.leavesMinor() {
		return blocked
	}
	if unmanages(clusterVersion) {
		return versions.overrides(name)
	}
	return versions.retarget(name, clusterVersion)
}

// unmanages reports whether an override makes an object unmanaged.
func unmanages(clusterVersion *configv1.ClusterVersion) bool {
	return slices.ContainsFunc(clusterVersion.Spec.Overrides, func(o configv1.ComponentOverride) bool { return o.Unmanaged })
}

// blocksPatches reports whether overrides block the update also where CVO measures from status.desired.
func blocksPatches(clusterVersion *configv1.ClusterVersion, versions pair) bool {
	has, _ := patchDespiteOverrides().in(versions.current)
	return unmanages(clusterVersion) && !has
}

func (p pair) leavesMinor() bool { return minorOf(p.current).before(minorOf(p.target)) }

// measuredFromCompleted is the comparison of CVO before it measured from
// status.desired: every other minor version than that of the last completed
// release counts, later or earlier.
func measuredFromCompleted(clusterVersion *configv1.ClusterVersion, target semver.Version) bool {
	completed, err := semver.Parse(CompletedVersion(clusterVersion.Status))
	return err == nil && minorOf(completed) != minorOf(target)
}

// overrides is the violation by a patch update while objects are unmanaged.
func (p pair) overrides(name string) *Violation {
	violation := &Violation{
		Precondition: name, Reason: "ClusterVersionOverridesSet", Weight: Warning,
		Message: fmt.Sprintf("Retarget from %s to %s is not blocked by ClusterVersionOverridesSet. But the cluster-version operator is not managing these resources; they are currently the responsibility of the agent that set the overrides: Disabling ownership via cluster version overrides prevents upgrades between minor or major versions. Please remove overrides before requesting a minor or major version update.",
			p.current, p.target),
	}
	if has, _ := patchDespiteOverrides().in(p.current); !has {
		violation.Weight = Blocking
		violation.Message = "Disabling ownership via cluster version overrides prevents upgrades. Please remove overrides before continuing."
	}
	return violation
}

// retarget warns of a new target within the minor version of an update that is in progress from another one.
func (p pair) retarget(name string, clusterVersion *configv1.ClusterVersion) *Violation {
	progressing := find(clusterVersion, configv1.OperatorProgressing)
	if progressing == nil || progressing.Status != configv1.ConditionTrue || minorOf(p.target) != minorOf(p.current) {
		return nil
	}
	completed, err := semver.Parse(CompletedVersion(clusterVersion.Status))
	if err != nil || !minorOf(completed).before(minorOf(p.current)) {
		return nil
	}
	kind, word := "Minor", "minor"
	if completed.Major < p.current.Major {
		kind, word = "Major", "major"
	}
	return &Violation{
		Precondition: name, Reason: kind + "VersionClusterUpdateInProgress", Weight: Warning,
		Message: fmt.Sprintf("Retarget to %s while a %s version update from %s to %s is in progress", p.target, word, completed, p.current),
	}
}

// find returns a condition of ClusterVersion, or nil.
func find(clusterVersion *configv1.ClusterVersion, kind configv1.ClusterStatusConditionType) *configv1.ClusterOperatorStatusCondition {
	for i := range clusterVersion.Status.Conditions {
		if clusterVersion.Status.Conditions[i].Type == kind {
			return &clusterVersion.Status.Conditions[i]
		}
	}
	return nil
}
