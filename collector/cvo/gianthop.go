package cvo

import (
	"fmt"

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
