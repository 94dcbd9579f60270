package update

import (
	"fmt"

	"github.com/blang/semver/v4"
)

// The newest minor versions of each major version whose Kubernetes is known.
const (
	last4 = 23
	last5 = 2
)

// Kubernetes is the y of the Kubernetes version 1.y of an OpenShift release. It is
// false when unknown.
//
// 4.y has 1.(y+13) since 4.3, which skipped one; 5.0 has the same as 4.23, and 5.y
// continues from there (cluster-kube-apiserver-operator
// pkg/operator/kubeletversionskewcontroller, in its tests).
func Kubernetes(release semver.Version) (minor uint64, known bool) {
	switch {
	case release.Major == 4 && release.Minor >= 1 && release.Minor <= 2:
		return release.Minor + 12, true
	case release.Major == 4 && release.Minor >= 3 && release.Minor <= last4:
		return release.Minor + 13, true
	case release.Major == 5 && release.Minor <= last5:
		return release.Minor + 36, true
	}
	return 0, false
}

// Next is the next minor version, one hop later: 5.0 follows 4.23. It is false when unknown.
func Next(release semver.Version) (next semver.Version, known bool) {
	next = semver.Version{Major: release.Major, Minor: release.Minor + 1}
	if release.Major == 4 && release.Minor == last4 {
		next = semver.Version{Major: 5}
	}
	_, known = Kubernetes(next)
	return next, known
}

// FirstWith is the first OpenShift release with Kubernetes 1.minor or later. It is false when unknown.
func FirstWith(minor uint64) (release string, known bool) {
	for release := (semver.Version{Major: 4, Minor: 1}); ; {
		has, _ := Kubernetes(release)
		if has >= minor {
			return Line(release), true
		}
		if release, known = Next(release); !known {
			return "", false
		}
	}
}

// supportedSkew is how many minor versions a kubelet may be older than the API
// server of an OpenShift release: every second release of 4, and two of three of
// 5, can be skipped without a reboot.
func supportedSkew(release semver.Version) (minors uint64, known bool) {
	switch release.Major {
	case 4:
		return 2 - release.Minor%2, true
	case 5:
		return 1 + release.Minor%3, true
	}
	return 0, false
}

// OldestKubelet is the oldest kubelet, 1.minor, that a release supports. It is false when unknown.
func OldestKubelet(release semver.Version) (minor uint64, known bool) {
	kubernetes, known := Kubernetes(release)
	skew, policy := supportedSkew(release)
	return kubernetes - skew, known && policy
}

// Line is the minor version of a release: 4.18 for 4.18.3.
func Line(release semver.Version) string {
	return fmt.Sprintf("%d.%d", release.Major, release.Minor)
}
