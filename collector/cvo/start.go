package cvo

import (
	"regexp"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// word matches text that is one word of a shell: versions and images come from outside.
var word = regexp.MustCompile(`^[A-Za-z0-9.:@/_+-]+$`)

// Start is how oc requests a release of the cluster, as the words behind its name, in the way that oc and CVO accept
// (openshift/oc, pkg/cli/admin/upgrade): by version only where that selects this image, and with the flags
// without which oc refuses. It is empty where the cluster runs the image already or is being updated to it, and for
// an image without a digest.
func Start(cluster *configv1.ClusterVersion, version, image string) []string {
	desired := cluster.Status.Desired
	if !word.MatchString(image) || digestOf(image) == "" || digestOf(image) == digestOf(desired.Image) {
		return nil
	}
	words := []string{"adm", "upgrade"}
	if oppose(cluster.Status.Conditions) {
		words = append(words, "--allow-upgrade-with-warnings")
	}
	listed, recommended := listing(cluster.Status, image)
	switch {
	case listed && !recommended:
		words = append(words, "--allow-not-recommended")
	case !listed:
		return append(words, "--allow-explicit-upgrade", "--to-image", image)
	}
	if version == desired.Version || !word.MatchString(version) || releasesOf(cluster.Status, version) != 1 {
		return append(words, "--to-image", image)
	}
	return append(words, "--to", version)
}

// oppose reports whether conditions are such that oc requests no update without --allow-upgrade-with-warnings.
func oppose(conditions []configv1.ClusterOperatorStatusCondition) bool {
	named := []configv1.ClusterStatusConditionType{"Invalid", "Failing", configv1.OperatorProgressing}
	return slices.ContainsFunc(conditions, func(condition configv1.ClusterOperatorStatusCondition) bool {
		return condition.Status == configv1.ConditionTrue && slices.Contains(named, condition.Type)
	})
}

// listing reports whether oc finds an image among the updates that the cluster knows, and whether that is an
// available one. oc does not look at a conditional update that has no condition Recommended, or whose condition
// is True: CVO lists it as an available one.
func listing(status configv1.ClusterVersionStatus, image string) (listed, recommended bool) {
	for _, release := range status.AvailableUpdates {
		if digestOf(release.Image) == digestOf(image) {
			return true, true
		}
	}
	for _, update := range status.ConditionalUpdates {
		condition := meta.FindStatusCondition(update.Conditions, "Recommended")
		if digestOf(update.Release.Image) == digestOf(image) && condition != nil && condition.Status != metav1.ConditionTrue {
			return true, false
		}
	}
	return false, false
}

// releasesOf counts the images that the cluster knows as updates to a version.
func releasesOf(status configv1.ClusterVersionStatus, version string) int {
	images := map[string]bool{}
	for _, release := range status.AvailableUpdates {
		if release.Version == version {
			images[digestOf(release.Image)] = true
		}
	}
	for _, update := range status.ConditionalUpdates {
		if update.Release.Version == version {
			images[digestOf(update.Release.Image)] = true
		}
	}
	return len(images)
}

// digestOf is the digest of a pull spec; empty for one by tag.
func digestOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}
