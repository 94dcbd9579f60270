package runner

import (
	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

// Target selects the target release. Exactly one field is set.
type Target struct {
	// Version is looked up in ClusterVersion: status.availableUpdates, then
	// conditionalUpdates, then history.
	Version string
	// Latest selects the newest of status.availableUpdates.
	Latest bool
	// Image is a pull spec by digest.
	Image string

	// release is known already for a later update of a path.
	release update.Release
}

func (t Target) given() int {
	given := 0
	for _, set := range []bool{t.Version != "", t.Latest, t.Image != ""} {
		if set {
			given++
		}
	}
	return given
}

// validate returns an error for an invalid selection, before a request to the cluster.
// An empty selection is left to resolve, whose error lists the known releases.
func (t Target) validate() error {
	if t.given() > 1 {
		return input.Errorf("more than one target release is named: name a version, the latest or an image")
	}
	if t.Version == "" {
		return nil
	}
	if _, err := semver.Parse(t.Version); err != nil {
		return input.Errorf("the version %q is not a semantic version like 4.19.3: %w", t.Version, err)
	}
	return nil
}

// resolve finds the release.
func (t Target) resolve(clusterVersion *configv1.ClusterVersion) (update.Release, error) {
	known := scene.KnownReleases(clusterVersion)
	switch {
	case t.given() == 0:
		return update.Release{}, input.Errorf("no target release is named; the cluster knows %s", scene.ListVersions(known))
	case t.release.Image != "":
		return t.release, nil
	case t.Image != "":
		return update.Release{Image: t.Image}, nil
	case t.Latest:
		return latest(clusterVersion)
	}
	for _, candidate := range known {
		if candidate.Version == t.Version && candidate.Image != "" {
			return candidate, nil
		}
	}
	return update.Release{}, input.Errorf("the cluster knows no release %s; it knows %s%s: name another one, or its image by digest",
		t.Version, scene.ListVersions(known), notRetrieved(clusterVersion))
}

// notRetrieved is why the cluster may know no updates, in CVO's words; empty where it has
// retrieved them.
func notRetrieved(clusterVersion *configv1.ClusterVersion) string {
	for _, condition := range clusterVersion.Status.Conditions {
		if condition.Type == configv1.RetrievedUpdates && condition.Status == configv1.ConditionFalse {
			return ", since its updates could not be retrieved: RetrievedUpdates is " + words.Condition(condition.Status, words.Line(condition.Reason, maxCause), words.Line(condition.Message, maxCause))
		}
	}
	return ""
}

// maxCause bounds the words of CVO in an error, in bytes.
const maxCause = 512

func latest(clusterVersion *configv1.ClusterVersion) (update.Release, error) {
	var newest update.Release
	var newestVersion semver.Version
	for _, available := range clusterVersion.Status.AvailableUpdates {
		version, err := semver.Parse(available.Version)
		if err != nil {
			continue // cannot be compared; it can still be named by its version
		}
		if newest.Image == "" || version.GT(newestVersion) {
			newest, newestVersion = update.Release{Version: available.Version, Image: available.Image}, version
		}
	}
	if newest.Image == "" {
		return update.Release{}, input.Errorf("ClusterVersion %q has no available updates in channel %q%s; name a release by its version or image",
			clusterVersion.Name, clusterVersion.Spec.Channel, notRetrieved(clusterVersion))
	}
	return newest, nil
}
