package acceptance

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
)

// maxRange bounds the text of a range of versions, and thereby the versions in it, in bytes.
const maxRange = 256

// rangeOfVersions is the documented syntax of semver.ParseRange, with a space around
// every comparison: that function drops words of one letter, and panics later for an
// empty side of "||".
var rangeOfVersions = regexp.MustCompile(`^` + comparisons + `( +\|\| +` + comparisons + `)*$`)

const (
	comparisons = comparison + `( +` + comparison + `)*`
	comparison  = `(>=|<=|>|<|==|=|!=|!)?([0-9]+\.x(\.x)?|[0-9]+\.[0-9]+\.x|[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-WYZa-wyz.-]+)?)`
)

// versionLike is a version or a wildcard in a range.
var versionLike = regexp.MustCompile(`[0-9][0-9A-Za-z.+-]*`)

// parseVersions returns the range, and its landmarks. An empty text means all versions, and the range is nil.
func parseVersions(text string) (semver.Range, []semver.Version, error) {
	if text == "" {
		return nil, nil, nil
	}
	if len(text) > maxRange {
		return nil, nil, fmt.Errorf("the range of versions has %d characters, and %d are the limit", len(text), maxRange)
	}
	if !rangeOfVersions.MatchString(text) {
		return nil, nil, fmt.Errorf("versions %q is not a range like \">=4.18.0 <4.19.0\"", text)
	}
	within, err := semver.ParseRange(text)
	if err != nil {
		return nil, nil, fmt.Errorf("versions %q is not a range like \">=4.18.0 <4.19.0\": %w", text, oneLine(err))
	}
	marks := landmarks(text)
	if !slices.ContainsFunc(marks, within) {
		return nil, nil, fmt.Errorf("versions %q is an empty range: no version is in it", text)
	}
	return within, marks, nil
}

// overlaps reports whether both accept the same risk for any one target of any one cluster.
func (a Acceptance) overlaps(b Acceptance) bool {
	if a.Risk != b.Risk || a.apart(b) {
		return false
	}
	shared := func(id string) bool {
		return slices.ContainsFunc(b.Clusters, func(other string) bool { return strings.EqualFold(id, other) })
	}
	if len(a.Clusters) > 0 && len(b.Clusters) > 0 && !slices.ContainsFunc(a.Clusters, shared) {
		return false
	}
	if a.versions == nil || b.versions == nil {
		return true
	}
	return slices.ContainsFunc(a.landmarks, b.versions.AND(a.versions)) || slices.ContainsFunc(b.landmarks, a.versions.AND(b.versions))
}

// landmarks are versions that include one of every nonempty range made of the bounds
// in the text. Such a range begins with the least version of all, at a bound, or right
// after one; and every version has a next one.
func landmarks(text string) []semver.Version {
	marks := []semver.Version{{Pre: []semver.PRVersion{{IsNum: true}}}}
	for _, bound := range bounds(text) {
		marks = append(marks, bound, after(bound))
	}
	return marks
}

// bounds are the versions in the text. A wildcard, as in 4.18.x, has the first version
// that it matches, and the first after it that it does not match.
func bounds(text string) []semver.Version {
	var found []semver.Version
	for _, word := range versionLike.FindAllString(text, -1) {
		if version, err := semver.Parse(word); err == nil {
			found = append(found, version)
			continue
		}
		parts := strings.Split(word, ".")
		major, err := strconv.ParseUint(parts[0], 10, 64)
		if err != nil {
			continue
		}
		found = append(found, semver.Version{Major: major}, semver.Version{Major: major + 1})
		if len(parts) < 2 {
			continue
		}
		if minor, err := strconv.ParseUint(parts[1], 10, 64); err == nil {
			found = append(found, semver.Version{Major: major, Minor: minor}, semver.Version{Major: major, Minor: minor + 1})
		}
	}
	return found
}

// after is the least version after this one: a pre-release comes before one with
// further parts, and after every release comes the first pre-release of the next
// patch.
func after(version semver.Version) semver.Version {
	first := semver.PRVersion{IsNum: true}
	if len(version.Pre) > 0 {
		version.Pre = append(slices.Clone(version.Pre), first)
		return version
	}
	version.Patch++
	version.Pre = []semver.PRVersion{first}
	return version
}
