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
