package runplan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/projection"
)

// MaxAhead bounds the targets that are run ahead.
const MaxAhead = 10

// Target is a release whose preflight is to run, and the reason.
type Target struct {
	update.Release
	// Requester is record.ByUser for the request of an administrator.
	Requester record.Requester
	// Selection is the coverage of the run, as in runner.Options.Selection; empty for the controller's.
	Selection string
	// Object is the UpdatePreflight of a request; zero for others.
	Object Object
	// Hosted is the hosted cluster to update; zero for the cluster itself.
	Hosted v1alpha1.HostedCluster
}

// Object is the part of an UpdatePreflight on which its run depends.
type Object struct {
	UID  types.UID
	Name string
	// Accepted are the names of the accepted findings.
	Accepted []string
	// Images is the mode of the images; empty for the controller's.
	Images image.Mode
}

// Covered is the subject of a run: a release, and a selection.
type Covered struct{ digest, selection string }

// Covered returns the subject of a verdict on the target.
func (t Target) Covered() Covered { return Covered{t.Digest(), t.Selection} }

// Selected returns the update that spec.desiredUpdate selects and CVO has not accepted: its image, or the image of the
// available or conditional update with its version, differs from status.desired. It returns false if no update is
// selected, such as for a desiredUpdate with only acceptRisks, and if the image has no digest.
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

// Offered returns the targets of the runs ahead, at most that many and at most MaxAhead: the newest version of each
// minor version among the available updates, newest first, and then among the conditional updates. An update whose
// version is not a semantic version, or whose image has no digest, does not run ahead.
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

// SameInputs reports whether both states of ClusterVersion result in the same plan.
func SameInputs(a, b *configv1.ClusterVersion) bool {
	return a.Generation == b.Generation &&
		equality.Semantic.DeepEqual(a.Status.Desired, b.Status.Desired) &&
		equality.Semantic.DeepEqual(a.Status.AvailableUpdates, b.Status.AvailableUpdates) &&
		equality.Semantic.DeepEqual(conditional(a.Status), conditional(b.Status)) &&
		Progressing(a) == Progressing(b) && offersUnknown(a) == offersUnknown(b)
}

// newer returns the releases that are not older than the one that CVO applies or has applied: after an update, its
// status offers the updates of the release before until it has asked for updates again. A version that is not a
// semantic version cannot be compared, and is kept.
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

const (
	// MaxRequests bounds the UpdatePreflights of administrators that run. With the runs
	// ahead they are fewer than the runs that are kept, or they would run again and again.
	MaxRequests = 8
	// MaxObjects bounds the UpdatePreflights that have a status.
	MaxObjects = 500
	// MaxWrites bounds the deletions and the statuses that are written before the cluster is
	// observed again: hundreds of objects that others made must not delay a verdict.
	MaxWrites = 50
)

// Subject is an UpdatePreflight with the release that it selects.
type Subject struct {
	Object *v1alpha1.UpdatePreflight
	// Target is zero where the release is unknown, and Unknown states why.
	Target  Target
	Unknown string
	// Waiting is why the preflight does not run although it is due.
	Waiting string
	// Accepted is true if the cluster runs the release that an administrator requested, or is updating to it.
	Accepted bool
}

// Subjects resolves the targets of at most MaxObjects objects, the oldest first. Among the administrators' objects
// whose time has not ended, the oldest MaxRequests run. The selection comes from runner.Options for a mode of the
// images.
func Subjects(objects []v1alpha1.UpdatePreflight, clusterVersion *configv1.ClusterVersion, selection func(image.Mode) string,
	now time.Time,
) []Subject {
	sorted := slices.SortedFunc(slices.Values(objects), func(a, b v1alpha1.UpdatePreflight) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	// The controller's own are bounded, and come first.
	slices.SortStableFunc(sorted, func(a, b v1alpha1.UpdatePreflight) int { return rank(a) - rank(b) })
	subjects := make([]Subject, 0, min(len(sorted), MaxObjects))
	requests := 0
	for i := range sorted[:min(len(sorted), MaxObjects)] {
		subject := subjectOf(&sorted[i], clusterVersion, selection)
		_, closes := projection.Times(sorted[i].Spec)
		if subject.Target.Object.Name != "" && subject.Target.Digest() == acceptedDigest(clusterVersion) {
			subject.Accepted = true
			subject.Waiting = "the cluster runs this release, or is updating to it"
			subjects = append(subjects, subject)
			continue
		}
		if subject.Target.Object.Name != "" && (closes.IsZero() || now.Before(closes)) {
			if requests++; requests > MaxRequests {
				subject.Waiting = fmt.Sprintf("the oldest %d UpdatePreflights of administrators run: delete those "+
					"that are not needed", MaxRequests)
			}
		}
		subjects = append(subjects, subject)
	}
	return subjects
}

func rank(object v1alpha1.UpdatePreflight) int {
	if object.Owned() {
		return 0
	}
	return 1
}

// subjectOf resolves the target of an object.
func subjectOf(object *v1alpha1.UpdatePreflight, clusterVersion *configv1.ClusterVersion, selection func(image.Mode) string) Subject {
	release, unknown := resolve(object.Spec.Target, clusterVersion)
	subject := Subject{Object: object, Unknown: unknown}
	switch {
	case unknown != "":
	case object.Owned():
		subject.Target = Target{Release: release, Requester: record.Requester(object.Labels[v1alpha1.LabelRequester])}
	default:
		mode := image.Mode(object.Spec.Images)
		subject.Target = Target{
			Release: release, Requester: record.ByUser, Selection: selection(mode),
			Object: Object{UID: object.UID, Name: object.Name, Accepted: object.Spec.AcceptedFindings, Images: mode},
		}
	}
	return subject
}

// resolve is the release that a target selects, or why there is none.
func resolve(target v1alpha1.Target, clusterVersion *configv1.ClusterVersion) (release update.Release, unknown string) {
	status := clusterVersion.Status
	switch {
	case target.Image != "":
		release = update.Release{Image: target.Image}
		release.Version = versionOf(status, release.Digest())
		unknown = fmt.Sprintf("the image %q has no digest", target.Image)
	case target.Version != "":
		release = update.Release{Version: target.Version, Image: imageOf(status, target.Version)}
		if release.Image == "" && status.Desired.Version == target.Version {
			release.Image = status.Desired.Image // the cluster runs it, or updates to it
		}
		unknown = fmt.Sprintf("ClusterVersion has no available or conditional update %s with a digest", target.Version)
	default:
		if newest := newestPerMinor(status.AvailableUpdates); len(newest) > 0 {
			release = newest[0]
		}
		unknown = "ClusterVersion has no available update with a digest"
	}
	if release.Digest() == "" {
		return update.Release{}, unknown
	}
	return release, ""
}

// versionOf is the version of the available or conditional update with that digest, or of
// the release of the cluster; empty if there is none.
func versionOf(status configv1.ClusterVersionStatus, digest string) string {
	for _, known := range slices.Concat(status.AvailableUpdates, conditional(status), []configv1.Release{status.Desired}) {
		if (update.Release{Image: known.Image}).Digest() == digest {
			return known.Version
		}
	}
	return ""
}

// RequestsOf are the requests of administrators, given the verdicts of their targets.
func RequestsOf(subjects []Subject, decided Verdicts) []Request {
	var requests []Request
	for _, subject := range subjects {
		if subject.Target.Object.Name == "" || subject.Waiting != "" {
			continue
		}
		opens, closes := projection.Times(subject.Object.Spec)
		last, found := decided[subject.Target.Covered()]
		requests = append(requests, Request{
			Target: subject.Target, Since: later(opens, subject.Object.CreationTimestamp.Time), Until: closes,
			MeetsTerms: !found || projection.MeetsTerms(last, subject.Object),
		})
	}
	return requests
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Changes make the controller's own UpdatePreflights match its targets.
type Changes struct {
	Create []v1alpha1.UpdatePreflight
	// Relabel have the new label.
	Relabel []v1alpha1.UpdatePreflight
	// Delete has at most MaxWrites; More is true if others must be deleted later.
	Delete []v1alpha1.UpdatePreflight
	More   bool
}

// Reconciled are the changes for these targets. Nothing is deleted while the offers are
// unknown, nor, while the cluster updates, the object of the release that it updates to.
func Reconciled(objects []v1alpha1.UpdatePreflight, targets []Target, clusterVersion *configv1.ClusterVersion) Changes {
	var changes Changes
	taken := map[string]bool{}
	missing := map[string]Target{}
	for _, target := range targets {
		missing[target.Digest()] = target
	}
	for _, object := range objects {
		taken[object.Name] = true
		digest := update.Release{Image: object.Spec.Target.Image}.Digest()
		target, wanted := missing[digest]
		switch {
		case !object.Owned() || !object.DeletionTimestamp.IsZero():
		case wanted && owns(object, target):
			delete(missing, digest)
			if label := string(target.Requester); object.Labels[v1alpha1.LabelRequester] != label {
				changed := *object.DeepCopy()
				changed.Labels[v1alpha1.LabelRequester] = label
				changes.Relabel = append(changes.Relabel, changed)
			}
		case offersUnknown(clusterVersion) || Progressing(clusterVersion) && digest == acceptedDigest(clusterVersion):
		default:
			delete(missing, digest) // an edited object is replaced when it is gone
			changes.Delete = append(changes.Delete, object)
		}
	}
	for _, target := range targets {
		if _, wanted := missing[target.Digest()]; wanted {
			delete(missing, target.Digest())
			changes.Create = append(changes.Create, created(target, taken))
		}
	}
	most := min(len(changes.Delete), MaxWrites)
	changes.Delete, changes.More = changes.Delete[:most], len(changes.Delete) > most
	return changes
}

// owns reports whether the object is the one that the controller creates for a target: an
// edited one is replaced.
func owns(object v1alpha1.UpdatePreflight, target Target) bool {
	return equality.Semantic.DeepEqual(object.Spec, created(target, map[string]bool{}).Spec)
}

// created is the object for a target, with a name that is not taken; the name then is.
func created(target Target, taken map[string]bool) v1alpha1.UpdatePreflight {
	name := nameOf(target.Version)
	if name == "" || taken[name] {
		name = strings.TrimPrefix(name+"-", "-") + label.ReleaseValue(target.Digest())
	}
	spec := v1alpha1.UpdatePreflightSpec{Target: v1alpha1.Target{Image: target.Image}, Images: string(image.Manifests)}
	if target.Hosted != (v1alpha1.HostedCluster{}) {
		spec.HostedCluster, name = &target.Hosted, hostedName(target)
	}
	taken[name] = true
	return v1alpha1.UpdatePreflight{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelRequester: string(target.Requester)}},
		Spec:       spec,
	}
}

// hostedName is the name of the object of a hosted cluster and a release. Other hosted clusters may
// have the same name or release, so it ends in digits of all.
func hostedName(target Target) string {
	const digits = 5 // bytes
	sum := sha256.Sum256([]byte(target.Hosted.Namespace + "/" + target.Hosted.Name + "/" + target.Digest()))
	return nameOf(target.Hosted.Name+"-"+target.Version) + "-" + hex.EncodeToString(sum[:digits])
}

// nameOf is the name of the object of a version, as of RFC 1123: 4.19.0-rc.1. It is empty
// for a version without letters and digits.
func nameOf(version string) string {
	const most = 48 // leaves room for the digits of a digest
	name := regexp.MustCompile(`[^a-z0-9.-]+`).ReplaceAllString(strings.ToLower(version), "-")
	name = regexp.MustCompile(`[.-]*[.][.-]*`).ReplaceAllString(name, ".")
	return strings.Trim(name[:min(len(name), most)], ".-")
}
