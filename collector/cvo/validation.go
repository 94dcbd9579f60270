package cvo

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
		return unknown("the status of ClusterVersion is of generation %d, but its spec is of generation %d: CVO has not processed the last change",
			clusterVersion.Status.ObservedGeneration, clusterVersion.Generation), true
	}
	if request.Image != "" {
		return Prediction{}, false
	}
	switch count := availableTo(request.ClusterVersion.Status, request.Version); {
	case count > 1:
		return invalid(field.Invalid(path, request.Version, "there are multiple possible payloads for this version, specify the exact image"), ""), true
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
