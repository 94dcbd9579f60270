package openshift

import (
	"context"
	"fmt"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// Observe reports that the spec of ClusterVersion was processed, as CVO does after each
// change.
func Observe(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{} // about fields of other feature sets
	client, err := configclient.NewForConfig(config)
	if err != nil {
		return err
	}
	versions := client.ConfigV1().ClusterVersions()
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := versions.Get(ctx, "version", metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Status.ObservedGeneration = current.Generation
		_, err = versions.UpdateStatus(ctx, current, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("could not write the observed generation of ClusterVersion: %w", err)
	}
	return nil
}
