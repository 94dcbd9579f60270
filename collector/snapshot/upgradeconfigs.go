package snapshot

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// UpgradeConfig is what the managed-upgrade-operator is told to do
// (upgrade.managed.openshift.io/v1alpha1), as far as a check looks at it.
type UpgradeConfig struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		// UpgradeAt is an RFC 3339 time, as the operator reads it; the API
		// takes any text.
		UpgradeAt string `json:"upgradeAt"`
		// CapacityReservation asks for extra nodes during the update.
		CapacityReservation bool `json:"capacityReservation"`
		Desired             struct {
			// Version may be empty where an image is named.
			Version string `json:"version"`
		} `json:"desired"`
	} `json:"spec"`
}

// UpgradeConfigs are all of them, by namespace and name. Where the API is not
// served, the error is NotFound, also for those who could not read it anyway.
func (c *Cluster) UpgradeConfigs(ctx context.Context) ([]UpgradeConfig, error) {
	return once(c, "upgradeConfigs", func() ([]UpgradeConfig, error) {
		resource := schema.GroupVersionResource{Group: "upgrade.managed.openshift.io", Version: "v1alpha1", Resource: "upgradeconfigs"}
		configs, err := listAs(ctx, c.api.Dynamic, resource, func(*UpgradeConfig) {})
		if !apierrors.IsForbidden(err) {
			return configs, err
		}
		// Permission is looked at first, and most clusters do not have the API:
		// what is served everybody may ask.
		_, unserved := c.api.Kubernetes.Discovery().ServerResourcesForGroupVersion(resource.GroupVersion().String())
		if apierrors.IsNotFound(unserved) {
			return nil, unserved
		}
		return nil, err
	})
}
