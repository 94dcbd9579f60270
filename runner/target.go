package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
)

// Target says which release to ask about. Exactly one field is set.
type Target struct {
	// Version is looked up in ClusterVersion: status.availableUpdates, then
	// conditionalUpdates, then history.
	Version string
	// Latest takes the newest of status.availableUpdates.
	Latest bool
	// Image is a pull spec by digest.
	Image string
}

// BadInputError is what the caller asked for and cannot have: another request
// may succeed, the same one will not.
type BadInputError struct{ Err error }

// Error implements error.
func (e *BadInputError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *BadInputError) Unwrap() error { return e.Err }

func badInput(format string, args ...any) error {
	return &BadInputError{Err: fmt.Errorf(format, args...)}
}

func (t Target) validate() error {
	given := 0
	for _, set := range []bool{t.Version != "", t.Latest, t.Image != ""} {
		if set {
			given++
		}
	}
	if given != 1 {
		return badInput("name the release to ask about with exactly one of --to, --to-latest and --to-image")
	}
	if t.Version == "" {
		return nil
	}
	if _, err := semver.Parse(t.Version); err != nil {
		return badInput("the version %q is not a semantic version like 4.19.3: %w", t.Version, err)
	}
	return nil
}

// release is a target that was resolved. Its version is what was asked for, and
// empty when the image alone was given: then only the payload can tell.
type release struct {
	version, image string
}

// resolve finds the pull spec of the target.
func (t Target) resolve(clusterVersion *configv1.ClusterVersion) (release, error) {
	if t.Image != "" {
		return release{image: t.Image}, nil
	}
	if t.Latest {
		return latest(clusterVersion)
	}
	known := knownReleases(clusterVersion)
	for _, candidate := range known {
		if candidate.version == t.Version && candidate.image != "" {
			return candidate, nil
		}
	}
	return release{}, badInput("the cluster knows no release %s; it knows %s. Name another, or give its pull spec by digest with --to-image",
		t.Version, listVersions(known))
}

func latest(clusterVersion *configv1.ClusterVersion) (release, error) {
	var newest release
	var newestVersion semver.Version
	for _, available := range clusterVersion.Status.AvailableUpdates {
		version, err := semver.Parse(available.Version)
		if err != nil {
			continue // CVO offers it, but nobody could compare it; --to can still name it
		}
		if newest.image == "" || version.GT(newestVersion) {
			newest, newestVersion = release{version: available.Version, image: available.Image}, version
		}
	}
	if newest.image == "" {
		return release{}, badInput("ClusterVersion %q has no available updates in channel %q; name a release with --to or --to-image",
			clusterVersion.Name, clusterVersion.Spec.Channel)
	}
	return newest, nil
}

// knownReleases lists what a version can mean, in the order of preference.
func knownReleases(clusterVersion *configv1.ClusterVersion) []release {
	var known []release
	for _, available := range clusterVersion.Status.AvailableUpdates {
		known = append(known, release{version: available.Version, image: available.Image})
	}
	for _, conditional := range clusterVersion.Status.ConditionalUpdates {
		known = append(known, release{version: conditional.Release.Version, image: conditional.Release.Image})
	}
	for _, past := range clusterVersion.Status.History {
		known = append(known, release{version: past.Version, image: past.Image})
	}
	return known
}

func listVersions(known []release) string {
	const most = 10
	var versions []string
	for _, candidate := range known {
		if !slices.Contains(versions, candidate.version) {
			versions = append(versions, candidate.version)
		}
	}
	if len(versions) == 0 {
		return "none"
	}
	if len(versions) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(versions[:most], ", "), len(versions)-most)
	}
	return strings.Join(versions, ", ")
}

// currentVersion is the release that the cluster runs: the last one that it
// completed, and what it was installed with before the first is complete.
func currentVersion(clusterVersion *configv1.ClusterVersion) (release, error) {
	for _, past := range clusterVersion.Status.History {
		if past.State == configv1.CompletedUpdate {
			return release{version: past.Version, image: past.Image}, nil
		}
	}
	if desired := clusterVersion.Status.Desired; desired.Version != "" {
		return release{version: desired.Version, image: desired.Image}, nil
	}
	return release{}, errors.New("ClusterVersion does not say which release the cluster runs: its status has neither history nor desired")
}
