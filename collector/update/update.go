// Package update answers: what kind of update is it from one release to another?
//
// Most gates block only some kinds.
package update

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

// Kind is the distance between two releases.
type Kind string

// The kinds of update. Minor is the next minor version, Major a later major version,
// SkipLevel more than one minor version.
const (
	Same      Kind = "Same"
	Patch     Kind = "Patch"
	Minor     Kind = "Minor"
	Major     Kind = "Major"
	SkipLevel Kind = "SkipLevel"
	Rollback  Kind = "Rollback"
)

// Update is a change of the cluster from one release to another.
type Update struct {
	From semver.Version
	To   semver.Version
}

// Parse makes an Update of two versions as in ClusterVersion. A version that is not
// SemVer is an error that names it.
func Parse(from, to string) (Update, error) {
	current, err := semver.Parse(from)
	if err != nil {
		return Update{}, fmt.Errorf("the cluster's version %q is not a semantic version: %w", from, err)
	}
	target, err := semver.Parse(to)
	if err != nil {
		return Update{}, fmt.Errorf("the target's version %q is not a semantic version: %w", to, err)
	}
	return Update{From: current, To: target}, nil
}

// Known reports whether the versions are known; false for the zero value.
func (u Update) Known() bool { return !u.To.EQ(semver.Version{}) }

// Kind compares the two versions by SemVer precedence.
func (u Update) Kind() Kind {
	switch {
	case u.To.EQ(u.From):
		return Same
	case u.To.LT(u.From):
		return Rollback
	case u.To.Major > u.From.Major:
		return Major
	case u.To.Minor > u.From.Minor+1:
		return SkipLevel
	case u.To.Minor > u.From.Minor:
		return Minor
	default:
		return Patch
	}
}

// LeavesMinor is true for the kinds that CVO's gates for minor versions block: Minor,
// SkipLevel and Major (cluster-version-operator pkg/internal/constants.go,
// IsMinorOrMajorVersionUpdate).
func (u Update) LeavesMinor() bool {
	switch u.Kind() {
	case Minor, SkipLevel, Major:
		return true
	case Same, Patch, Rollback:
		return false
	}
	return true
}

// Release names one release of OpenShift.
type Release struct {
	// Version is a semantic version; empty where only the image is known.
	Version string
	// Image is a pull spec, by digest wherever a release is read or run.
	Image string
}

// Digest is the digest ("sha256:…") of the image; empty for a pull spec by tag.
func (r Release) Digest() string {
	_, digest, _ := strings.Cut(r.Image, "@")
	return digest
}

// KindOf is the kind of update between two versions; empty for versions that cannot be compared.
func KindOf(from, to string) string {
	parsed, err := Parse(from, to)
	if err != nil {
		return ""
	}
	return string(parsed.Kind())
}

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
