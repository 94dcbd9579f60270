package openshift

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// Observe reports that the spec of ClusterVersion was processed, as CVO does after each
// change.
func Observe(ctx context.Context, config *rest.Config) error {
	return changeStatus(ctx, config, func(*configv1.ClusterVersion) {})
}

// Complete reports that the cluster has completed the update to a release, and that no other one is
// available.
func Complete(ctx context.Context, config *rest.Config, version, image string) error {
	return changeStatus(ctx, config, func(current *configv1.ClusterVersion) {
		now := metav1.Now()
		present := configv1.UpdateHistory{State: configv1.CompletedUpdate, Version: version, Image: image, StartedTime: now, CompletionTime: &now, Verified: true}
		status := &current.Status
		status.Desired = configv1.Release{Version: version, Image: image}
		status.History = append([]configv1.UpdateHistory{present}, status.History...)
		status.AvailableUpdates, status.ConditionalUpdates = []configv1.Release{}, nil
	})
}

// changeStatus changes the status of ClusterVersion, which then is of the present spec.
func changeStatus(ctx context.Context, config *rest.Config, change func(*configv1.ClusterVersion)) error {
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
		change(current)
		current.Status.ObservedGeneration = current.Generation
		_, err = versions.UpdateStatus(ctx, current, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("could not write the status of ClusterVersion: %w", err)
	}
	return nil
}
