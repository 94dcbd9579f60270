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

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/projection"
)

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
	// Waiting states why the preflight does not run though it is its time.
	Waiting string
	// Accepted is true where the cluster runs the release of an administrator, or updates to it.
	Accepted bool
}

// Subjects resolves the targets of at most MaxObjects objects, the oldest first. Of those
// of administrators whose time has not ended, the oldest MaxRequests run. The selection is
// that of runner.Options for a mode of the images.
func Subjects(objects []v1alpha1.UpdatePreflight, clusterVersion *configv1.ClusterVersion, selection func(image.Mode) string, now time.Time) []Subject {
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
			subject.Waiting = "the cluster runs this release, or updates to it"
			subjects = append(subjects, subject)
			continue
		}
		if subject.Target.Object.Name != "" && (closes.IsZero() || now.Before(closes)) {
			if requests++; requests > MaxRequests {
				subject.Waiting = fmt.Sprintf("the oldest %d UpdatePreflights of administrators run: delete those that are not needed", MaxRequests)
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

// Changes are what makes the controller's own UpdatePreflights those of its targets.
type Changes struct {
	Create []v1alpha1.UpdatePreflight
	// Relabel have the new label.
	Relabel []v1alpha1.UpdatePreflight
	// Delete has at most MaxWrites; More is true where others are to be deleted later.
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
