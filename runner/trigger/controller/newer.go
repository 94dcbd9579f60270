package controller

import (
	"slices"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
)

// newer are the releases that are not older than the one that CVO applies or has applied:
// after an update, its status offers those of the release before until it has asked for
// updates again. A version that is not a semantic one cannot be compared, and is kept.
func newer(offered []configv1.Release, desired configv1.Release) []configv1.Release {
	present, err := semver.Parse(desired.Version)
	if err != nil {
		return offered
	}
	return slices.DeleteFunc(slices.Clone(offered), func(release configv1.Release) bool {
		version, err := semver.Parse(release.Version)
		return err == nil && version.LT(present)
	})
}
