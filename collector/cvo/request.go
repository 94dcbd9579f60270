package cvo

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Request is a change of spec.desiredUpdate.
type Request struct {
	// ClusterVersion is the present one of the cluster.
	ClusterVersion *configv1.ClusterVersion
	// Version and Image are those of spec.desiredUpdate. Without an image the
	// update is requested by version alone.
	Version, Image string
	// Force is spec.desiredUpdate.force.
	Force bool
	// AcceptRisks are the names in spec.desiredUpdate.acceptRisks that the request
	// adds to those of the cluster.
	AcceptRisks []string
	// PayloadVersion is the version in the release image; empty when unknown.
	PayloadVersion string
	// Signed is true when CVO can verify the signature of the image; nil when
	// unknown.
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

// accepts reports whether a risk is accepted, by the request or in the cluster.
func (r Request) accepts(name string) bool {
	if slices.Contains(r.AcceptRisks, name) {
		return true
	}
	desired := r.ClusterVersion.Spec.DesiredUpdate
	return desired != nil && slices.ContainsFunc(desired.AcceptRisks, func(risk configv1.AcceptRisk) bool { return risk.Name == name })
}

// applies is the condition Applies of a risk.
func (r Request) applies(name string) metav1.ConditionStatus {
	for _, risk := range r.ClusterVersion.Status.ConditionalUpdateRisks {
		if condition := meta.FindStatusCondition(risk.Conditions, "Applies"); risk.Name == name && condition != nil {
			return condition.Status
		}
	}
	return metav1.ConditionUnknown
}
