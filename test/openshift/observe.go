package openshift

import (
	"context"
	"fmt"
	"time"

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

// Completion is an update of a cluster, from the release that it ran before.
type Completion struct {
	Version, Image     string
	Started, Completed time.Time
}

// Complete reports that the cluster has completed an update, and that no other one is available: the
// ClusterVersion, and each ClusterOperator that states a version, with the end of its rollout.
func Complete(ctx context.Context, config *rest.Config, update Completion) error {
	if err := completeOperators(ctx, config, update); err != nil {
		return err
	}
	return changeStatus(ctx, config, func(current *configv1.ClusterVersion) {
		present := configv1.UpdateHistory{
			State: configv1.CompletedUpdate, Version: update.Version, Image: update.Image, Verified: true,
			StartedTime: metav1.NewTime(update.Started), CompletionTime: new(metav1.NewTime(update.Completed)),
		}
		status := &current.Status
		status.Desired = configv1.Release{Version: update.Version, Image: update.Image}
		status.History = append([]configv1.UpdateHistory{present}, status.History...)
		status.AvailableUpdates, status.ConditionalUpdates = []configv1.Release{}, nil
	})
}

func completeOperators(ctx context.Context, config *rest.Config, update Completion) error {
	client, err := configclient.NewForConfig(config)
	if err != nil {
		return err
	}
	operators := client.ConfigV1().ClusterOperators()
	all, err := operators.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range all.Items {
		operator := &all.Items[i]
		if len(operator.Status.Versions) == 0 {
			continue
		}
		operator.Status.Versions = OperatorVersions(update.Version)
		for j := range operator.Status.Conditions {
			if operator.Status.Conditions[j].Type == configv1.OperatorProgressing {
				operator.Status.Conditions[j].LastTransitionTime = metav1.NewTime(update.Completed)
			}
		}
		if _, err := operators.UpdateStatus(ctx, operator, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("could not write the status of ClusterOperator %s: %w", operator.Name, err)
		}
	}
	return nil
}

// OperatorVersions are the versions that an operator of a release states.
func OperatorVersions(version string) []configv1.OperandVersion {
	return []configv1.OperandVersion{{Name: "operator", Version: version}}
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
