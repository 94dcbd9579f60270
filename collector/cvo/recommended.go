package cvo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recommended is the precondition ClusterVersionRecommendedUpdate. It never
// blocks: a risk that is not accepted is a warning in the history.
func recommended(clusterVersion *configv1.ClusterVersion, target string) *Violation {
	status := clusterVersion.Status
	if slices.ContainsFunc(status.AvailableUpdates, func(release configv1.Release) bool { return release.Version == target }) {
		return nil
	}
	warn := func(reason, format string, args ...any) *Violation {
		return &Violation{
			Precondition: "ClusterVersionRecommendedUpdate", Reason: reason, Weight: Warning, Message: fmt.Sprintf(format, args...),
		}
	}
	from := status.Desired.Version
	if conditional := conditionalTo(status, target); conditional != nil {
		condition := meta.FindStatusCondition(conditional.Conditions, "Recommended")
		switch {
		case condition == nil:
			return warn("UnknownConditionType", "Update from %s to %s has a status.conditionalUpdates entry, but no Recommended condition.", from, target)
		case condition.Status == metav1.ConditionTrue:
			return nil
		case condition.Status == metav1.ConditionFalse:
			return warn(condition.Reason, "Update from %s to %s is not recommended:\n\n%s", from, target, cmp.Or(condition.Message, "no message"))
		}
		return warn(condition.Reason, "Update from %s to %s is Recommended=%s", from, target,
			strings.Join(slices.DeleteFunc([]string{string(condition.Status), condition.Reason, condition.Message}, isEmpty), ": "))
	}
	if clusterVersion.Spec.Channel == "" {
		return warn("NoChannel", "Configured channel is unset, so the recommended status of updating from %s to %s is unknown.", from, target)
	}
	retrieved := find(clusterVersion, configv1.RetrievedUpdates)
	switch {
	case retrieved == nil:
		return warn("UnknownUpdate", "No RetrievedUpdates, so the recommended status of updating from %s to %s is unknown.", from, target)
	case retrieved.Status == configv1.ConditionTrue:
		return warn("UnknownUpdate", "RetrievedUpdates=True%s, so the update from %s to %s is probably neither recommended nor supported.", aside(retrieved.Reason), from, target)
	}
	return warn("UnknownUpdate", "RetrievedUpdates=%s%s, so the recommended status of updating from %s to %s is unknown.", retrieved.Status, aside(retrieved.Reason), from, target)
}

func isEmpty(text string) bool { return text == "" }

// conditionalTo is the first conditional update to a version, or nil.
func conditionalTo(status configv1.ClusterVersionStatus, version string) *configv1.ConditionalUpdate {
	for i := range status.ConditionalUpdates {
		if status.ConditionalUpdates[i].Release.Version == version {
			return &status.ConditionalUpdates[i]
		}
	}
	return nil
}
