package cvo

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
)

// GiantHop is the precondition ClusterVersionGiantHop: no more than one minor
// version at a time, and over the major version only from 4.y to 5.0. CVO has it
// since 4.19; before, an objection is Uncertain (4.18) or Unchecked, since the
// rule is older than the precondition. It returns nil where there is none.
func GiantHop(clusterVersion *configv1.ClusterVersion, target string) *Objection {
	const name = "ClusterVersionGiantHop"
	versions, objection := parse(name, clusterVersion, target)
	if objection != nil {
		return objection
	}
	objection = versions.giantHop()
	if objection == nil {
		return nil
	}
	objection.Precondition = name
	has, certain := noGiantHops().in(versions.current)
	switch {
	case has:
		objection.Weight = Blocking
	case certain:
		objection.Weight = Unchecked
	default:
		objection.Weight = Uncertain
	}
	return objection
}

func (p pair) giantHop() *Objection {
	if p.target.Major > p.current.Major {
		return p.giantMajor()
	}
	if p.target.Major < p.current.Major || p.target.Minor <= p.current.Minor+1 {
		return nil
	}
	return &Objection{
		Reason: "MultipleMinorVersionsUpdate",
		Message: fmt.Sprintf("%s is more than one minor version beyond the current target %s (%d.%d > %d.(%d+1)), and only updates within the current minor version or to the next minor version are supported.",
			p.target, p.current, p.target.Major, p.target.Minor, p.current.Major, p.current.Minor),
	}
}

func (p pair) giantMajor() *Objection {
	supported := "only updates within the current major version are supported."
	if five, _ := majorFive().in(p.current); five && p.current.Major == 4 && p.target.Major == 5 {
		if p.target.Minor == 0 {
			return nil
		}
		supported = "only updates within the current major version or to 5.0 are supported."
	}
	return &Objection{
		Reason: "MajorVersionUpdate",
		Message: fmt.Sprintf("%s has a larger major version than the current target %s (%d > %d), and %s",
			p.target, p.current, p.target.Major, p.current.Major, supported),
	}
}
