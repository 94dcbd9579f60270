package cvo

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
)

// Upgradeable is the precondition ClusterVersionUpgradeable. Of the condition
// Upgradeable only False counts, and it keeps from leaving the minor version.
// Absent, True and Unknown pass. It returns nil where CVO does not object.
func Upgradeable(clusterVersion *configv1.ClusterVersion, target string) *Objection {
	const name = "ClusterVersionUpgradeable"
	condition := find(clusterVersion, configv1.OperatorUpgradeable)
	if condition == nil || condition.Status != configv1.ConditionFalse {
		return nil
	}
	versions, objection := parse(name, clusterVersion, target)
	if objection != nil {
		return objection
	}
	blocked := &Objection{Precondition: name, Reason: condition.Reason, Message: condition.Message, Weight: Blocking}
	if has, certain := fromDesired().in(versions.current); !has && measuredFromCompleted(clusterVersion, versions.target) {
		if !certain && !versions.leavesMinor() {
			blocked.Weight = Uncertain
			blocked.Message = fmt.Sprintf("some releases of CVO %s measure Upgradeable=False from the last completed release and refuse to retarget the update in progress, others do not: %s",
				minorOf(versions.current), condition.Message)
		}
		return blocked
	}
	if versions.leavesMinor() {
		return blocked
	}
	if slices.ContainsFunc(clusterVersion.Spec.Overrides, func(o configv1.ComponentOverride) bool { return o.Unmanaged }) {
		return versions.overrides(name)
	}
	return versions.retarget(name, clusterVersion)
}

// leavesMinor is true for what lies ahead in another minor or major version.
func (p pair) leavesMinor() bool { return minorOf(p.current).before(minorOf(p.target)) }

// measuredFromCompleted is the comparison of CVO before it measured from
// status.desired: any other minor version than that of the last completed
// release is another one, ahead or behind.
func measuredFromCompleted(clusterVersion *configv1.ClusterVersion, target semver.Version) bool {
	completed, err := semver.Parse(CompletedVersion(clusterVersion.Status))
	return err == nil && minorOf(completed) != minorOf(target)
}

// overrides is the objection to a patch update while something is unmanaged.
func (p pair) overrides(name string) *Objection {
	objection := &Objection{
		Precondition: name, Reason: "ClusterVersionOverridesSet", Weight: Warning,
		Message: fmt.Sprintf("Retarget from %s to %s is not blocked by ClusterVersionOverridesSet. But the cluster-version operator is not managing these resources; they are currently the responsibility of the agent that set the overrides",
			p.current, p.target),
	}
	if has, _ := patchDespiteOverrides().in(p.current); !has {
		objection.Weight = Blocking
		objection.Message = "Disabling ownership via cluster version overrides prevents upgrades. Please remove overrides before continuing."
	}
	return objection
}

// retarget warns of a new target within the minor version of an update in
// progress that came from another one.
func (p pair) retarget(name string, clusterVersion *configv1.ClusterVersion) *Objection {
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
	return &Objection{
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
