package signature

import (
	"context"

	configv1client "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Override is what the cluster trusts, with its keyrings and its stores each
// replaced where given has some. Where given has both, the cluster is not read.
func Override(ctx context.Context, core corev1client.ConfigMapsGetter, config configv1client.ConfigV1Interface, given Trust) (Trust, error) {
	if len(given.Keyrings) > 0 && len(given.Stores) > 0 {
		return given, nil
	}
	trust, err := FromCluster(ctx, core, config)
	if err != nil {
		return Trust{}, err
	}
	if len(given.Keyrings) > 0 {
		trust.Keyrings = given.Keyrings
	}
	if len(given.Stores) > 0 {
		trust.Stores = given.Stores
	}
	return trust, nil
}
