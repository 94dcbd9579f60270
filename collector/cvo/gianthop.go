package cvo

import (
	"fmt"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
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
		Message: fmt.Sprintf("%s is more than one minor version beyond the current target %s (%d.%d > %d.(%d+1)), and only updates within the current minor version or to the next minor version are supported.",
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

// Rollback is the precondition ClusterVersionRollback: an earlier release than the
// present one is refused, except the previous release of the cluster in the same
// minor version. It returns nil for no violation.
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
