package cvo

import (
	"fmt"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
)

// pair is the release that the cluster is at or on its way to, and the target.
type pair struct{ current, target semver.Version }

// parse makes the pair that preconditions compare. A current version that is
// not SemVer is a warning only: an update may be what puts it right.
func parse(precondition string, clusterVersion *configv1.ClusterVersion, target string) (pair, *Objection) {
	current, err := semver.Parse(clusterVersion.Status.Desired.Version)
	if err != nil {
		return pair{}, &Objection{Precondition: precondition, Reason: "InvalidCurrentVersion", Message: err.Error(), Weight: Warning}
	}
	desired, err := semver.Parse(target)
	if err != nil {
		return pair{}, &Objection{Precondition: precondition, Reason: "InvalidDesiredVersion", Message: err.Error(), Weight: Blocking}
	}
	return pair{current, desired}, nil
}

// Rollback is the precondition ClusterVersionRollback: what lies before the
// current target is out of reach, but for the release before it in the same
// minor version. It returns nil where CVO does not object.
func Rollback(clusterVersion *configv1.ClusterVersion, target string) *Objection {
	const name = "ClusterVersionRollback"
	versions, objection := parse(name, clusterVersion, target)
	if objection != nil {
		return objection
	}
	if !versions.target.LT(versions.current) {
		return nil
	}
	low := func(format string, args ...any) *Objection {
		text := fmt.Sprintf("%s is less than the current target %s", versions.target, versions.current)
		return &Objection{Precondition: name, Reason: "LowDesiredVersion", Message: text + fmt.Sprintf(format, args...), Weight: Blocking}
	}
	previous, image, ok := previousIn(clusterVersion.Status)
	switch allowed, certain := previousRelease().in(versions.current); {
	case ok && versions.target.EQ(previous) && minorOf(previous) == minorOf(versions.current) && !certain:
		objection := low(" and is the release before it; some releases of CVO %s allow that and some do not", minorOf(versions.current))
		objection.Weight = Uncertain
		return objection
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

// previousIn finds the first release in the history that differs from the
// current target, in version or image. One that is not SemVer is none.
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
