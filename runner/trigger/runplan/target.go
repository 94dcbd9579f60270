package runplan

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// MaxAhead bounds the targets that are run ahead.
const MaxAhead = 10

// Target is a release whose preflight is to run, and the reason.
type Target struct {
	update.Release
	// Requester is record.ByUser for the request of an administrator.
	Requester record.Requester
	// Selection states what the run covers, as runner.Options.Selection does; empty for
	// that of the controller.
	Selection string
	// Object is the UpdatePreflight of a request; zero for others.
	Object Object
	// Hosted is the hosted cluster that is to be updated; zero for the cluster itself.
	Hosted v1alpha1.HostedCluster
}

// Object is what a run depends on of the UpdatePreflight that requests it.
type Object struct {
	UID  types.UID
	Name string
	// Accepted are the names of the accepted findings.
	Accepted []string
	// Images is the mode of the images; empty for that of the controller.
	Images image.Mode
}

// Covered is what a run covers: a release, and a selection.
type Covered struct{ digest, selection string }

// Covered is what a verdict on the target is about.
func (t Target) Covered() Covered { return Covered{t.Digest(), t.Selection} }

// Selected is the update that spec.desiredUpdate selects and CVO has not accepted:
// its image, or that of the available or conditional update with its version, differs
// from status.desired. It is false where no update is selected, such as for a
// desiredUpdate with only acceptRisks, and where the image has no digest.
func Selected(clusterVersion *configv1.ClusterVersion) (Target, bool) {
	desired := clusterVersion.Spec.DesiredUpdate
	if desired == nil {
		return Target{}, false
	}
	release := update.Release{Version: desired.Version, Image: desired.Image}
	if release.Image == "" {
		release.Image = imageOf(clusterVersion.Status, desired.Version)
	}
	digest := release.Digest()
	if digest == "" || digest == acceptedDigest(clusterVersion) {
		return Target{}, false
	}
	return Target{Release: release, Requester: record.BySelection}, true
}

// imageOf is the image of the available or conditional update with that version;
// empty if there is none.
func imageOf(status configv1.ClusterVersionStatus, version string) string {
	if version == "" {
		return ""
	}
	for _, release := range slices.Concat(status.AvailableUpdates, conditional(status)) {
		if release.Version == version {
			return release.Image
		}
	}
	return ""
}

func conditional(status configv1.ClusterVersionStatus) []configv1.Release {
	releases := make([]configv1.Release, 0, len(status.ConditionalUpdates))
	for _, offered := range status.ConditionalUpdates {
		releases = append(releases, offered.Release)
	}
	return releases
}

// acceptedDigest is the digest of the release that CVO applies or has applied.
func acceptedDigest(clusterVersion *configv1.ClusterVersion) string {
	return update.Release{Image: clusterVersion.Status.Desired.Image}.Digest()
}

// Offered are the targets of the runs ahead, at most that many and at most MaxAhead:
// the newest version of each minor version of the available updates, newest first, and
// then those of the conditional updates. An update whose version is not a semantic
// version, or whose image has no digest, is not run ahead.
func Offered(clusterVersion *configv1.ClusterVersion, most int) []Target {
	var targets []Target
	seen := map[string]bool{acceptedDigest(clusterVersion): true}
	for _, list := range [][]configv1.Release{clusterVersion.Status.AvailableUpdates, conditional(clusterVersion.Status)} {
		for _, release := range newestPerMinor(newer(list, clusterVersion.Status.Desired)) {
			if digest := release.Digest(); !seen[digest] {
				seen[digest] = true
				targets = append(targets, Target{Release: release, Requester: record.Ahead})
			}
		}
	}
	return targets[:max(0, min(len(targets), most, MaxAhead))]
}

// newestPerMinor is the newest release of each minor version, newest first.
func newestPerMinor(releases []configv1.Release) []update.Release {
	type versioned struct {
		update.Release
		version semver.Version
	}
	var sorted []versioned
	for _, offered := range releases {
		release := update.Release{Version: offered.Version, Image: offered.Image}
		version, err := semver.Parse(release.Version)
		if err == nil && release.Digest() != "" {
			sorted = append(sorted, versioned{release, version})
		}
	}
	slices.SortStableFunc(sorted, func(a, b versioned) int {
		return cmp.Or(b.version.Compare(a.version), cmp.Compare(a.Image, b.Image))
	})
	var newest []update.Release
	seen := map[string]bool{}
	for _, release := range sorted {
		if line := update.Line(release.version); !seen[line] {
			seen[line] = true
			newest = append(newest, release.Release)
		}
	}
	return newest
}

// is reports whether a condition of ClusterVersion has that status.
func is(clusterVersion *configv1.ClusterVersion, condition configv1.ClusterStatusConditionType, status configv1.ConditionStatus) bool {
	return slices.ContainsFunc(clusterVersion.Status.Conditions, func(c configv1.ClusterOperatorStatusCondition) bool {
		return c.Type == condition && c.Status == status
	})
}

// Progressing reports whether CVO applies an update.
func Progressing(clusterVersion *configv1.ClusterVersion) bool {
	return is(clusterVersion, configv1.OperatorProgressing, configv1.ConditionTrue)
}

// offersUnknown is true while CVO cannot retrieve the updates: what it lists is not
// what is offered.
func offersUnknown(clusterVersion *configv1.ClusterVersion) bool {
	return is(clusterVersion, configv1.RetrievedUpdates, configv1.ConditionFalse)
}

// SameInputs reports whether a plan for either state of ClusterVersion is the same.
func SameInputs(a, b *configv1.ClusterVersion) bool {
	return a.Generation == b.Generation &&
		equality.Semantic.DeepEqual(a.Status.Desired, b.Status.Desired) &&
		equality.Semantic.DeepEqual(a.Status.AvailableUpdates, b.Status.AvailableUpdates) &&
		equality.Semantic.DeepEqual(conditional(a.Status), conditional(b.Status)) &&
		Progressing(a) == Progressing(b) && offersUnknown(a) == offersUnknown(b)
}

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
