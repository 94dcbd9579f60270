package snapshot

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodDisruptionBudgets are all PodDisruptionBudgets, sorted by namespace and name. Of the
// labels and annotations they have those that name an operator or a Helm release.
func (c *Cluster) PodDisruptionBudgets(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
	return once(ctx, c, "budgets", func(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
		return list(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.Kubernetes.PolicyV1().PodDisruptionBudgets(corev1.NamespaceAll).List(ctx, options)
		}, func(budget *policyv1.PodDisruptionBudget) {
			only(budget.Labels, "olm.owner")
			only(budget.Annotations, "meta.helm.sh/release-name")
		})
	})
}

// only deletes all entries but one.
func only(of map[string]string, key string) {
	maps.DeleteFunc(of, func(other, _ string) bool { return other != key })
}
