package cvo

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Request is a change of spec.desiredUpdate.
type Request struct {
	ClusterVersion *configv1.ClusterVersion
	// Version and Image are the fields of spec.desiredUpdate. Without an image the
	// update is requested by version alone.
	Version, Image string
	Force          bool
	// AcceptRisks are the names in spec.desiredUpdate.acceptRisks that the request adds.
	AcceptRisks []string
	// PayloadVersion is the version in the release image; empty when unknown.
	PayloadVersion string
	// Signed is true when CVO can verify the signature of the image; nil when unknown.
	Signed *bool
}

// acceptsRisks reports whether this CVO supports accepted risks: only with the
// feature gate ClusterUpdateAcceptRisks does it publish the risks in
// status.conditionalUpdateRisks. Without it the API server drops the field
// spec.desiredUpdate.acceptRisks.
func (r Request) acceptsRisks() bool { return len(r.ClusterVersion.Status.ConditionalUpdateRisks) > 0 }

// becomesAvailable reports whether the accepted risks of the request turn the
// conditional update into an available one. A risk that could not be evaluated
// prevents that even when it is accepted (pkg/cvo/availableupdates.go).
func (r Request) becomesAvailable() bool {
	conditional := conditionalTo(r.ClusterVersion.Status, r.Version)
	if !r.acceptsRisks() || conditional == nil || conditional.Release.Image == "" {
		return false
	}
	if meta.IsStatusConditionTrue(conditional.Conditions, "Recommended") {
		return true
	}
	for _, name := range conditional.RiskNames {
		status := r.applies(name)
		if status != metav1.ConditionFalse && (status != metav1.ConditionTrue || !r.accepts(name)) {
			return false
		}
	}
	return len(conditional.RiskNames) > 0
}

func (r Request) accepts(name string) bool {
	if slices.Contains(r.AcceptRisks, name) {
		return true
	}
	desired := r.ClusterVersion.Spec.DesiredUpdate
	return desired != nil && slices.ContainsFunc(desired.AcceptRisks, func(risk configv1.AcceptRisk) bool { return risk.Name == name })
}

func (r Request) applies(name string) metav1.ConditionStatus {
	for _, risk := range r.ClusterVersion.Status.ConditionalUpdateRisks {
		if condition := meta.FindStatusCondition(risk.Conditions, "Applies"); risk.Name == name && condition != nil {
			return condition.Status
		}
	}
	return metav1.ConditionUnknown
}

// HasProcessed reports whether the status of ClusterVersion reflects its current spec.
//
// CVO raises status.observedGeneration when it applies the release next, which may be minutes after a change of
// the spec that does not change the release (pkg/cvo/status.go, pkg/cvo/sync_worker.go). It reports an update that
// is selected before that: the condition ReleaseAccepted then names the update, in a status that was written after
// the last change of the spec.
func HasProcessed(clusterVersion *configv1.ClusterVersion) bool {
	if clusterVersion.Status.ObservedGeneration >= clusterVersion.Generation {
		return true
	}
	// The times have no fraction of a second: two writes in one second have no known order.
	return namesSelected(clusterVersion) && lastWrite(clusterVersion, isStatus).After(SpecChange(clusterVersion))
}

// namesSelected reports whether the condition ReleaseAccepted is about the update that is
// selected; false if none is.
func namesSelected(clusterVersion *configv1.ClusterVersion) bool {
	desired := clusterVersion.Spec.DesiredUpdate
	if desired == nil || desired.Version == "" && desired.Image == "" {
		return false
	}
	name := fmt.Sprintf("image=%q", desired.Image)
	if desired.Image == "" {
		name = fmt.Sprintf("version=%q image=", desired.Version)
	}
	for _, condition := range clusterVersion.Status.Conditions {
		if condition.Type == "ReleaseAccepted" {
			return strings.Contains(condition.Message, name)
		}
	}
	return false
}

// Failed returns the condition ReleaseAccepted if it is False and concerns the version or the image; else nil.
// Without an image, the images by which the cluster knows the version count: a request by image has no version in
// the message. The cluster-version operator then does not carry out the request for it (pkg/cvo/status.go,
// sync_worker.go).
func Failed(clusterVersion *configv1.ClusterVersion, version, image string) *configv1.ClusterOperatorStatusCondition {
	images := []string{image}
	if image == "" {
		images = imagesOf(clusterVersion.Status, version)
	}
	for i := range clusterVersion.Status.Conditions {
		condition := &clusterVersion.Status.Conditions[i]
		if condition.Type != "ReleaseAccepted" || condition.Status != configv1.ConditionFalse {
			continue
		}
		if names(condition.Message, version, images) {
			return condition
		}
	}
	return nil
}

func imagesOf(status configv1.ClusterVersionStatus, version string) []string {
	var images []string
	for _, release := range status.AvailableUpdates {
		if release.Version == version {
			images = append(images, release.Image)
		}
	}
	for _, conditional := range status.ConditionalUpdates {
		if conditional.Release.Version == version {
			images = append(images, conditional.Release.Image)
		}
	}
	for _, past := range status.History {
		if past.Version == version {
			images = append(images, past.Image)
		}
	}
	return images
}

// names reports whether the message of ReleaseAccepted is about the version or one of the images. It begins
// with the fields version and image, of which one may be empty; what follows may name other releases. A
// message without these fields is about any image that it has.
func names(message, version string, images []string) bool {
	field := func(name, value string) bool {
		at := strings.Index(message, name+`="`)
		return at >= 0 && value != "" && strings.HasPrefix(message[at+len(name)+2:], value+`"`)
	}
	if field("version", version) {
		return true
	}
	fields := strings.Contains(message, `image="`)
	return slices.ContainsFunc(images, func(image string) bool {
		return field("image", image) || !fields && hasWord(message, image)
	})
}

// hasWord reports whether a text has a word, which is not only the beginning of a longer one.
func hasWord(text, word string) bool {
	if word == "" {
		return false
	}
	for {
		at := strings.Index(text, word)
		if at < 0 {
			return false
		}
		text = text[at+len(word):]
		if rest := strings.TrimLeft(text, ".-_"); rest == "" || !isAlphanumeric(rest[0]) {
			return true
		}
	}
}

func isAlphanumeric(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}

// SpecChange is when the spec was last changed, by the clock of the API server: no later
// than the last change of the metadata or spec by any client.
func SpecChange(clusterVersion *configv1.ClusterVersion) time.Time {
	return lastWrite(clusterVersion, func(subresource string) bool { return subresource == "" })
}

func isStatus(subresource string) bool { return subresource == "status" }

// lastWrite is when a client last changed the object through these subresources; its creation if none did.
func lastWrite(clusterVersion *configv1.ClusterVersion, through func(subresource string) bool) time.Time {
	last := clusterVersion.CreationTimestamp.Time
	for _, manager := range clusterVersion.ManagedFields {
		if through(manager.Subresource) && manager.Time != nil && manager.Time.After(last) {
			last = manager.Time.Time
		}
	}
	return last
}

// validate is CVO's validation of spec.desiredUpdate (lib/validation). Force does
// not bypass it. Conditions caused by an earlier request do not count, since the
// new request replaces it.
func validate(request Request) (prediction Prediction, done bool) {
	desired := field.NewPath("spec", "desiredUpdate")
	path := desired.Child("version")
	if request.Version == "" && request.Image == "" {
		return invalid(field.Required(desired, "must specify architecture, version, or image"), ""), true
	}
	if _, err := semver.Parse(request.Version); request.Version != "" && err != nil {
		return invalid(field.Invalid(path, request.Version, "must be a semantic version (1.2.3[-...])"), ""), true
	}
	if clusterVersion := request.ClusterVersion; !HasProcessed(clusterVersion) {
		return unknown(
			"the status of ClusterVersion has generation %d, but its spec has generation %d: CVO has not processed the last change",
			clusterVersion.Status.ObservedGeneration, clusterVersion.Generation), true
	}
	if request.Image != "" {
		return Prediction{}, false
	}
	switch count := availableTo(request.ClusterVersion.Status, request.Version); {
	case count > 1:
		return invalid(field.Invalid(path, request.Version, "there are multiple possible payloads for this version, specify the exact image"),
			""), true
	case count == 1 || request.becomesAvailable() || past(request.ClusterVersion.Status, request.Version):
		return Prediction{}, false
	}
	return invalid(field.Invalid(path, request.Version, "when image is empty the update must be an available update"), request.whyNot()), true
}

// invalid has the message of the condition Invalid of ClusterVersion (pkg/cvo/status.go).
func invalid(err *field.Error, why string) Prediction {
	return refuses("InvalidClusterVersion", "The cluster version is invalid: %s%s", err.Error(), why)
}

func availableTo(status configv1.ClusterVersionStatus, version string) int {
	count := 0
	for _, release := range status.AvailableUpdates {
		if release.Version == version && release.Image != "" {
			count++
		}
	}
	return count
}

func past(status configv1.ClusterVersionStatus, version string) bool {
	return slices.ContainsFunc(status.History, func(update configv1.UpdateHistory) bool {
		return update.Version == version && update.Image != ""
	})
}

// imageOf is the image that CVO selects for a version alone; empty for none.
func imageOf(request Request) string {
	for _, release := range request.ClusterVersion.Status.AvailableUpdates {
		if release.Version == request.Version && release.Image != "" {
			return release.Image
		}
	}
	if request.becomesAvailable() {
		return conditionalTo(request.ClusterVersion.Status, request.Version).Release.Image
	}
	return ""
}

// whyNot adds what CVO's own message lacks.
func (r Request) whyNot() string {
	if conditionalTo(r.ClusterVersion.Status, r.Version) == nil {
		return ""
	}
	const cause = "it is a conditional update, and CVO accepts one by version and image only"
	if len(r.AcceptRisks) == 0 {
		return fmt.Sprintf(" (%s)", cause)
	}
	if !r.acceptsRisks() {
		return fmt.Sprintf(" (%s; accepted risks make no difference without the feature gate ClusterUpdateAcceptRisks)", cause)
	}
	return fmt.Sprintf(" (%s, unless every risk that applies is accepted and every risk could be evaluated)", cause)
}
