package openshift

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func applyClusterVersion(ctx context.Context, openshift configclient.Interface, state State) error {
	client := openshift.ConfigV1().ClusterVersions()
	current, err := client.Get(ctx, "version", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		current, err = client.Create(ctx, &configv1.ClusterVersion{
			ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: state.clusterVersionSpec(),
		}, metav1.CreateOptions{})
	case err == nil:
		current.Spec = state.clusterVersionSpec()
		current, err = client.Update(ctx, current, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("could not write ClusterVersion: %w", err)
	}
	current.Status = state.clusterVersionStatus()
	current.Status.ObservedGeneration = current.Generation // as CVO does
	if _, err := client.UpdateStatus(ctx, current, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("could not write the status of ClusterVersion: %w", err)
	}
	return nil
}

func (s State) clusterVersionSpec() configv1.ClusterVersionSpec {
	channel := s.Channel
	if channel == "" {
		channel = "stable"
	}
	return configv1.ClusterVersionSpec{
		ClusterID: cmp.Or(s.ID, ClusterID), Channel: channel, Upstream: configv1.URL(s.Upstream),
		DesiredUpdate: s.Desired, Overrides: s.Overrides,
	}
}

func (s State) clusterVersionStatus() configv1.ClusterVersionStatus {
	now := metav1.NewTime(s.Since)
	if s.Since.IsZero() {
		now = metav1.Now()
	}
	present := configv1.UpdateHistory{
		State: configv1.CompletedUpdate, Version: s.Version, Image: s.Image, StartedTime: now, CompletionTime: &now, Verified: true,
	}
	if s.Updating {
		present.State, present.CompletionTime = configv1.PartialUpdate, nil
	}
	status := configv1.ClusterVersionStatus{
		Desired:     configv1.Release{Version: s.Version, Image: s.Image},
		History:     append([]configv1.UpdateHistory{present}, s.Past...),
		VersionHash: "0",
		// OLM is a known capability that is not enabled.
		Capabilities: configv1.ClusterVersionCapabilitiesStatus{
			KnownCapabilities: []configv1.ClusterVersionCapability{configv1.ClusterVersionCapabilityOperatorLifecycleManager},
		},
		Conditions:             s.conditions(now),
		AvailableUpdates:       []configv1.Release{},
		ConditionalUpdates:     s.Conditional,
		ConditionalUpdateRisks: s.Risks,
	}
	for version, image := range s.Available {
		status.AvailableUpdates = append(status.AvailableUpdates, configv1.Release{Version: version, Image: image})
	}
	return status
}

// conditions returns the conditions of the state, and for other types those of a healthy
// cluster.
func (s State) conditions(now metav1.Time) []configv1.ClusterOperatorStatusCondition {
	conditions := slices.Clone(s.Conditions)
	for i := range conditions {
		if conditions[i].LastTransitionTime.IsZero() {
			conditions[i].LastTransitionTime = now
		}
	}
	progressing := configv1.ConditionFalse
	if s.Updating {
		progressing = configv1.ConditionTrue
	}
	for _, healthy := range []configv1.ClusterOperatorStatusCondition{
		{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: now},
		{Type: configv1.OperatorProgressing, Status: progressing, LastTransitionTime: now},
		{Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue, LastTransitionTime: now},
		{Type: "Failing", Status: configv1.ConditionFalse, LastTransitionTime: now},
	} {
		isSameType := func(condition configv1.ClusterOperatorStatusCondition) bool { return condition.Type == healthy.Type }
		if !slices.ContainsFunc(s.Conditions, isSameType) {
			conditions = append(conditions, healthy)
		}
	}
	return conditions
}

func applyInfrastructure(ctx context.Context, openshift configclient.Interface, topology configv1.TopologyMode) error {
	client := openshift.ConfigV1().Infrastructures()
	err := client.Delete(ctx, "cluster", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("could not replace the Infrastructure: %w", err)
	}
	if topology == "" {
		return nil
	}
	created, err := client.Create(ctx, &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("could not write the Infrastructure: %w", err)
	}
	created.Status.ControlPlaneTopology = topology
	created.Status.InfrastructureTopology = configv1.HighlyAvailableTopologyMode
	if _, err := client.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("could not write the status of the Infrastructure: %w", err)
	}
	return nil
}

func applyOperators(ctx context.Context, openshift configclient.Interface, operators []configv1.ClusterOperator) error {
	client := openshift.ConfigV1().ClusterOperators()
	if err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("could not replace the ClusterOperators: %w", err)
	}
	for _, operator := range operators {
		status := operator.Status
		created, err := client.Create(ctx, &operator, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("could not write ClusterOperator %s: %w", operator.Name, err)
		}
		created.Status = status
		if _, err := client.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("could not write the status of ClusterOperator %s: %w", operator.Name, err)
		}
	}
	return nil
}
