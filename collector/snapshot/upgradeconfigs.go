package snapshot

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// UpgradeConfig is an update scheduled for the managed-upgrade-operator
// (upgrade.managed.openshift.io/v1alpha1), with the fields that checks read.
type UpgradeConfig struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		// UpgradeAt is an RFC 3339 time for the operator; the API accepts any text.
		UpgradeAt string `json:"upgradeAt"`
		// CapacityReservation reserves extra nodes during the update.
		CapacityReservation bool `json:"capacityReservation"`
		Desired             struct {
			// Version may be empty when an image is set.
			Version string `json:"version"`
		} `json:"desired"`
	} `json:"spec"`
}

// UpgradeConfigs are all UpgradeConfigs, sorted by namespace and name. Where the API
// is not served, the error is NotFound, also without permission to read it.
func (c *Cluster) UpgradeConfigs(ctx context.Context) ([]UpgradeConfig, error) {
	return once(ctx, c, "upgradeConfigs", func(ctx context.Context) ([]UpgradeConfig, error) {
		resource := schema.GroupVersionResource{Group: "upgrade.managed.openshift.io", Version: "v1alpha1", Resource: "upgradeconfigs"}
		configs, err := listAs(ctx, c.api.Dynamic, resource, func(*UpgradeConfig) {})
		if !apierrors.IsForbidden(err) {
			return configs, err
		}
		// The API server checks permissions first, and most clusters do not have the
		// API. Every user may list the served APIs.
		_, unserved := c.api.Kubernetes.Discovery().ServerResourcesForGroupVersion(resource.GroupVersion().String())
		if apierrors.IsNotFound(unserved) {
			return nil, unserved
		}
		return nil, err
	})
}
