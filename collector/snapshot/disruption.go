package snapshot

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
)

// PodDisruptionBudgets are all PodDisruptionBudgets, sorted by namespace and name. Of the
// labels and annotations they have those that name an operator or a Helm release.
func (c *Cluster) PodDisruptionBudgets(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
	return once(ctx, c, "budgets", func(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
		r := &reader[policyv1.PodDisruptionBudget]{cluster: c, resource: policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")}
		r.rules = allBut[policyv1.PodDisruptionBudget]("metadata.labels[olm.owner]", "metadata.annotations[meta.helm.sh/release-name]")
		return r.all(ctx)
	})
}
