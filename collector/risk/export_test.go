package risk

import (
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Listed is what the message of Recommended implies for the first of the risks of an
// update, for fuzzing.
func Listed(message string, risks ...configv1.ConditionalUpdateRisk) metav1.ConditionStatus {
	return conditions{update: configv1.ConditionalUpdate{Risks: risks}}.listed(risks[0], message)
}
