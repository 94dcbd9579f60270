package cvo

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GiantHop is the precondition ClusterVersionGiantHop: an update spans at most one
// minor version, and the only update of the major version is from 4.y to 5.0. CVO
// has it since 4.19; before, a violation is Uncertain (4.18) or Unchecked, since
// the rule is older than the precondition. It returns nil for no violation.
func GiantHop(clusterVersion *configv1.ClusterVersion, target string) *Violation {
	const name = "ClusterVersionGiantHop"
	versions, violation := parse(name, clusterVersion, target)
	if violation != nil {
		return violation
	}
	violation = versions.giantHop()
	if violation == nil {
		return nil
	}
	violation.Precondition = name
	has, certain := noGiantHops().in(versions.current)
	switch {
	case has:
		violation.Weight = Blocking
	case certain:
		violation.Weight = Unchecked
	default:
		violation.Weight = Uncertain
	}
	return violation
}

func (p pair) giantHop() *Violation {
	if p.target.Major > p.current.Major {
		return p.giantMajor()
	}
	if p.target.Major < p.current.Major || p.target.Minor <= p.current.Minor+1 {
		return nil
	}
	return &Violation{
		Reason: "MultipleMinorVersionsUpdate",
		Message: fmt.Sprintf("%s is more than one minor version beyond the current target %s (%d.%d > %d.(%d+1)), and only updates "+
			"within the current minor version or to the next minor version are supported.",
			p.target, p.current, p.target.Major, p.target.Minor, p.current.Major, p.current.Minor),
	}
}

func (p pair) giantMajor() *Violation {
	supported := "only updates within the current major version are supported."
	if five, _ := majorFive().in(p.current); five && p.current.Major == 4 && p.target.Major == 5 {
		if p.target.Minor == 0 {
			return nil
		}
		supported = "only updates within the current major version or to 5.0 are supported."
	}
	return &Violation{
		Reason: "MajorVersionUpdate",
		Message: fmt.Sprintf("%s has a larger major version than the current target %s (%d > %d), and %s",
			p.target, p.current, p.target.Major, p.current.Major, supported),
	}
}

// pair is the release that the cluster runs or is being updated to, and the target.
type pair struct{ current, target semver.Version }

// parse makes the pair that preconditions compare. A current version that is not
// SemVer is only a warning: an update may fix it.
func parse(precondition string, clusterVersion *configv1.ClusterVersion, target string) (pair, *Violation) {
	current, err := semver.Parse(clusterVersion.Status.Desired.Version)
	if err != nil {
		return pair{}, &Violation{Precondition: precondition, Reason: "InvalidCurrentVersion", Message: err.Error(), Weight: Warning}
	}
	desired, err := semver.Parse(target)
	if err != nil {
		return pair{}, &Violation{Precondition: precondition, Reason: "InvalidDesiredVersion", Message: err.Error(), Weight: Blocking}
	}
	return pair{current, desired}, nil
}

// Rollback is the precondition ClusterVersionRollback: CVO rejects a release that is earlier than the current one,
// except the previous release of the cluster in the same minor version. It returns nil for no violation.
func Rollback(clusterVersion *configv1.ClusterVersion, target string) *Violation {
	const name = "ClusterVersionRollback"
	versions, violation := parse(name, clusterVersion, target)
	if violation != nil {
		return violation
	}
	if !versions.target.LT(versions.current) {
		return nil
	}
	low := func(format string, args ...any) *Violation {
		text := fmt.Sprintf("%s is less than the current target %s", versions.target, versions.current)
		return &Violation{Precondition: name, Reason: "LowDesiredVersion", Message: text + fmt.Sprintf(format, args...), Weight: Blocking}
	}
	previous, image, ok := previousIn(clusterVersion.Status)
	switch allowed, certain := previousRelease().in(versions.current); {
	case ok && versions.target.EQ(previous) && minorOf(previous) == minorOf(versions.current) && !certain:
		violation := low(" and is the release before it; some releases of CVO %s allow that and some do not", minorOf(versions.current))
		violation.Weight = Uncertain
		return violation
	case !allowed && certain:
		return low(", but rollbacks and downgrades are not recommended")
	case !ok:
		return low(", and the cluster has no previous Semantic Version")
	case !versions.target.EQ(previous):
		return low(", and the only supported rollback is to the cluster's previous version %s (%s)", previous, image)
	case minorOf(previous) != minorOf(versions.current):
		return low(" and matches the cluster's previous version, but rollbacks that change major or minor versions are not recommended")
	}
	return nil
}

// previousIn is the first release in the history that differs from the present
// one, in version or image. It is false for a version that is not SemVer.
func previousIn(status configv1.ClusterVersionStatus) (version semver.Version, image string, ok bool) {
	for _, past := range status.History {
		if past.Version == status.Desired.Version && past.Image == status.Desired.Image {
			continue
		}
		previous, err := semver.Parse(past.Version)
		return previous, past.Image, err == nil
	}
	return semver.Version{}, "", false
}

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
			return warn("UnknownConditionType", "Update from %s to %s has a status.conditionalUpdates entry, but no Recommended condition.", from,
				target)
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
		return warn("UnknownUpdate", "RetrievedUpdates=True%s, so the update from %s to %s is probably neither recommended nor supported.",
			aside(retrieved.Reason), from, target)
	}
	return warn("UnknownUpdate", "RetrievedUpdates=%s%s, so the recommended status of updating from %s to %s is unknown.", retrieved.Status,
		aside(retrieved.Reason), from, target)
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
			blocked.Message = fmt.Sprintf("some releases of CVO %s measure Upgradeable=False from the last completed release and refuse to "+
				"retarget the update in progress, others do not: %s",
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

// measuredFromCompleted is the comparison of CVO before it measured from status.desired: every minor version that
// differs from the last completed release counts, later or earlier.
func measuredFromCompleted(clusterVersion *configv1.ClusterVersion, target semver.Version) bool {
	completed, err := semver.Parse(CompletedVersion(clusterVersion.Status))
	return err == nil && minorOf(completed) != minorOf(target)
}

// overrides is the violation by a patch update while objects are unmanaged.
func (p pair) overrides(name string) *Violation {
	violation := &Violation{
		Precondition: name, Reason: "ClusterVersionOverridesSet", Weight: Warning,
		Message: fmt.Sprintf("Retarget from %s to %s is not blocked by ClusterVersionOverridesSet. But the cluster-version operator is "+
			"not managing these resources; they are currently the responsibility of the agent that set the overrides: Disabling ownership "+
			"via cluster version overrides prevents upgrades between minor or major versions. Please remove overrides before requesting a "+
			"minor or major version update.",
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

// word matches text that is one word of a shell: versions and images come from outside.
var word = regexp.MustCompile(`^[A-Za-z0-9.:@/_+-]+$`)

// Start returns the arguments of the oc command that requests a release of the cluster, in the form that oc and
// CVO accept (openshift/oc, pkg/cli/admin/upgrade): by version only if that selects this image, and with the flags
// that oc requires. It is empty if the cluster already runs the image or is being updated to it, and for an image
// without a digest.
func Start(cluster *configv1.ClusterVersion, version, image string) []string {
	desired := cluster.Status.Desired
	if !word.MatchString(image) || digestOf(image) == "" || digestOf(image) == digestOf(desired.Image) {
		return nil
	}
	words := []string{"adm", "upgrade"}
	if oppose(cluster.Status.Conditions) {
		words = append(words, "--allow-upgrade-with-warnings")
	}
	listed, recommended := listing(cluster.Status, image)
	switch {
	case listed && !recommended:
		words = append(words, "--allow-not-recommended")
	case !listed:
		return append(words, "--allow-explicit-upgrade", "--to-image", image)
	}
	if version == desired.Version || !word.MatchString(version) || releasesOf(cluster.Status, version) != 1 {
		return append(words, "--to-image", image)
	}
	return append(words, "--to", version)
}

// oppose reports whether conditions are such that oc requests no update without --allow-upgrade-with-warnings.
func oppose(conditions []configv1.ClusterOperatorStatusCondition) bool {
	named := []configv1.ClusterStatusConditionType{"Invalid", "Failing", configv1.OperatorProgressing}
	return slices.ContainsFunc(conditions, func(condition configv1.ClusterOperatorStatusCondition) bool {
		return condition.Status == configv1.ConditionTrue && slices.Contains(named, condition.Type)
	})
}

// listing reports whether oc finds an image among the updates that the cluster knows, and whether that is an
// available one. oc does not look at a conditional update that has no condition Recommended, or whose condition
// is True: CVO lists it as an available one.
func listing(status configv1.ClusterVersionStatus, image string) (listed, recommended bool) {
	for _, release := range status.AvailableUpdates {
		if digestOf(release.Image) == digestOf(image) {
			return true, true
		}
	}
	for _, update := range status.ConditionalUpdates {
		condition := meta.FindStatusCondition(update.Conditions, "Recommended")
		if digestOf(update.Release.Image) == digestOf(image) && condition != nil && condition.Status != metav1.ConditionTrue {
			return true, false
		}
	}
	return false, false
}

// releasesOf counts the images that the cluster knows as updates to a version.
func releasesOf(status configv1.ClusterVersionStatus, version string) int {
	images := map[string]bool{}
	for _, release := range status.AvailableUpdates {
		if release.Version == version {
			images[digestOf(release.Image)] = true
		}
	}
	for _, update := range status.ConditionalUpdates {
		if update.Release.Version == version {
			images[digestOf(update.Release.Image)] = true
		}
	}
	return len(images)
}

// digestOf is the digest of a pull spec; empty for one by tag.
func digestOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}
